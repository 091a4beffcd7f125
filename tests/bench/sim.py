#!/usr/bin/env python3
"""Runs the benchmarks of simulations and prints their measures against the targets of the design.

    sim.py --bin build/bench/tests/bench
    sim.py --bin build/bench/tests/bench --events 1e7

Exit code: 0 when the programs ran, else 1. Never because of a time that was measured. docs/performance.md explains the
measures.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from report import describe_machine, print_table
from targets import distance

MEASURE = re.compile(r"(?P<name>.*): (?P<value>[\d.]+)(?P<unit> \w+)? \(target (?P<bound><=|>=) (?P<limit>[\d.]+)\)")
SCALES = (1_000, 10_000, 100_000, 1_000_000)  # processes


def run(words, limit):
    """Yields the lines of a program; raises RuntimeError when it fails."""
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as program:
        try:
            for line in program.stdout:
                yield line.rstrip("\n")
            program.wait(timeout=limit)
        finally:
            if program.poll() is None:
                program.kill()
    if program.returncode != 0:
        raise RuntimeError(f"{Path(words[0]).name}: exit code {program.returncode}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--events", type=float, default=1e8, help="of the largest number of processes; a tenth for the others")
    parser.add_argument("--limit", type=float, default=60, help="seconds for the end of a program behind its last line")
    options = parser.parse_args()
    if options.events < 1e6:
        parser.error("--events must be at least 1e6")
    return options


def main():
    options = parse_options()
    programs = options.bin.resolve().parents[1] / "bench"
    commands = [[programs / "sim_bench"]]
    commands += [[programs / "sim_bench", "scale", processes, options.events / (1 if processes == SCALES[-1] else 10)]
                 for processes in SCALES]
    commands.append([programs / "simulation_bench"])
    print(describe_machine() + "\n")
    rows = []
    try:
        for command in commands:
            for line in run(command, options.limit):
                found = MEASURE.fullmatch(line)
                if not found:
                    print(line, flush=True)
                    continue
                at_least = found["bound"] == ">="
                rows.append([found["name"], found["value"] + (found["unit"] or ""), f"{found['bound']} {found['limit']}",
                             distance(float(found["value"]), float(found["limit"]), at_least)])
                print(f"{found['name']}: {rows[-1][1]}", flush=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print()
    print_table(["measure", "value", "target", "distance"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
