#!/usr/bin/env python3
"""Runs each scenario of scale_bench in four sizes and compares what one unit costs: time, CPU time, messages, memory.

    scale.py --bin build/bench/tests/bench
    scale.py --bin build/bench/tests/bench --only references,calls
    scale.py --bin build/bench/tests/bench --scale 0.01           a hundredth of each size

Exit code: 0 when every scenario ran, else 1. Never because of a cost that was measured. docs/performance.md explains the
scenarios and the table.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from report import describe_machine, number, print_table
from targets import distance

# The full sizes. The smallest size is a tenth of it.
SCENARIOS = {
    "workers": (200, "workers in one process"),
    "processes": (64, "processes on this host, a worker in each"),
    "connections": (1_000, "connections at one worker"),
    "references": (1_000_000, "references of a user to values of an owner"),
    "calls": (100_000, "open calls of a user at an owner"),
    "contexts": (100_000, "open autograd contexts of a user, in which an owner takes part"),
}
PARTS = (0.1, 0.2, 0.5, 1.0)
LARGEST_GROWTH = 1.2
MOST_RUNS = 5  # of one size
KINDS = {"wall_us": "time, us", "cpu_us": "CPU, us", "messages": "messages", "live": "live, B", "resident": "resident, B"}


def sizes_of(scenario, scale):
    """Returns the sizes, ascending; small ones that are equal once."""
    return sorted({max(2, round(SCENARIOS[scenario][0] * part * scale)) for part in PARTS})


class Progress:
    """One line on a terminal that is written anew; elsewhere nothing, since each scenario prints its table."""

    def __init__(self):
        self._is_shown = sys.stderr.isatty()

    def show(self, text):
        if self._is_shown:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self):
        self.show("")


def run_once(program, scenario, size, progress, limit_s):
    """Returns ({(part, cost): value}, None), or (None, why the program failed)."""
    process = subprocess.Popen([program, scenario, str(size)], stdout=subprocess.PIPE, text=True, start_new_session=True,
                               env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    costs = {}
    begun = time.monotonic()
    try:
        progress.show(f"{scenario} of {size:,}")
        for line in process.stdout:
            answer = json.loads(line)
            if "progress" in answer:
                progress.show(f"{scenario} of {size:,}: {answer['progress']} {answer['done']:,} of {answer['of']:,}")
                if time.monotonic() - begun > limit_s:
                    return None, f"took more than {limit_s:.0f} s"
                continue
            for cost, value in answer.items():
                if cost not in ("part", "units"):
                    costs[answer["part"], cost] = value
        code = process.wait(limit_s)
        return (costs, None) if code == 0 else (None, f"ended with code {code}")
    except subprocess.TimeoutExpired:
        return None, f"took more than {limit_s:.0f} s"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        progress.clear()


def measure(options, scenario, progress):
    """Returns {size: {(part, cost): median of the runs}} and why the program failed, if it did. Small sizes are run several
    times, until that has taken as long as a large one may."""
    measured = {}
    for size in sizes_of(scenario, options.scale):
        runs = []
        begun = time.monotonic()
        while not runs or (len(runs) < MOST_RUNS and time.monotonic() - begun < options.seconds):
            costs, why = run_once(str(options.bin / "scale_bench"), scenario, size, progress, options.limit)
            if why:
                return measured, f"{scenario} of {size:,}: {why}"
            runs.append(costs)
            if options.json:
                named = {f"{part}: {cost}": value for (part, cost), value in costs.items()}
                options.json.write(json.dumps({"scenario": scenario, "size": size, **named}) + "\n")
        measured[size] = {key: median(run[key] for run in runs) for key in runs[0]}
    return measured, None


def title_of(cost):
    """Returns the words for a cost as scale_bench names it: `live_user` is the live memory at the user's."""
    kind, _, place = cost.partition("_")
    if cost in KINDS:
        return KINDS[cost]
    name, _, unit = KINDS[kind].partition(", ")
    return f"{name} at {place}, {unit}" if place != "all" else KINDS[kind]


def growth_of(values):
    """Returns the largest of the later values in units of the first one; None without a later one, or where the first one
    is not positive: memory that was there already costs nothing."""
    if len(values) < 2 or values[0] <= 0:
        return None
    return max(values[1:]) / values[0]


def rows_of(measured):
    sizes = list(measured)
    rows = []
    for part, cost in measured[sizes[0]]:
        values = [measured[size][part, cost] for size in sizes]
        growth = growth_of(values)
        rows.append([part, title_of(cost), *map(number, values), "-" if growth is None else f"{growth:.2f}",
                     distance(growth, LARGEST_GROWTH)])
    return rows


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, with commas: " + ", ".join(SCENARIOS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes, 0.001 to 10")
    parser.add_argument("--seconds", type=float, default=4.0,
                        help=f"a size is run again until its runs have taken so long, at most {MOST_RUNS} times")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one run of one size")
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every run, one JSON object a line")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    for scenario in options.only:
        if scenario not in SCENARIOS:
            parser.error(f"no scenario '{scenario}'; there are: {', '.join(SCENARIOS)}")
    if not 0.001 <= options.scale <= 10 or options.seconds < 0 or options.limit <= 0:
        parser.error("--scale must be 0.001 to 10, --seconds at least 0, --limit positive")
    return options


def main(arguments=None):
    options = parse_options(arguments)
    print(describe_machine())
    progress = Progress()
    failed = False
    for scenario in options.only:
        measured, why = measure(options, scenario, progress)
        if measured:
            print(f"\n## {SCENARIOS[scenario][1]}: what one costs, with so many\n")
            print_table(["one", "cost", *(f"{size:,}" for size in measured), "growth", f"target {LARGEST_GROWTH}"],
                        rows_of(measured))
        if why:
            print(why)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
