#!/usr/bin/env python3
"""Counts the instructions of one small call, one 4-float call, one method and one hop forward + backward with callgrind, and
prints them beside the figures in the tree.

    instructions.py --bin build/bench/tests/bench
    instructions.py --bin build/bench/tests/bench --renew  # writes today's figures to instructions.json
    instructions.py --bin build/bench/tests/bench --only hop --profiles build/profiles  # keeps what callgrind wrote

caftan_bench runs under callgrind, both processes of it; each measure stands between two marks (caftan_bench_mark), at which
callgrind ends one profile and begins the next. What is printed is the median of the rounds. Instructions depend on the
compiler, on libtorch and on the processor (libc and libtorch choose their routines by it), so figures compare on one
machine. Renewing the figures is a commit of its own. Exit code: 0, or 1 when a program failed. docs/performance.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

FIGURES = Path(__file__).with_name("instructions.json")
MEASURES = {"int": "call with an int", "sync": "call with 4 floats", "method": "method through a reference",
            "hop": "one hop, forward + backward"}
CALLS = {"int": 500, "sync": 500, "method": 500, "hop": 100}
ENDS = ("caller", "callee")


def total_of(profile):
    """Returns the instructions of one profile of callgrind."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile.read_text(errors="replace"), re.M)
    if not found:
        raise ValueError(f"{profile}: callgrind wrote no total")
    return int(found[1])


def count(program, names, folder):
    """Runs the program once; returns {measure: {end: instructions per call}}."""
    command = ["valgrind", "--tool=callgrind", "--fair-sched=try", "--dump-before=caftan_bench_mark",
               f"--callgrind-out-file={folder}/profile.%p", str(program), "unix"]
    requests = "".join(f"count_{name} calls={CALLS[name]}\n" for name in names)
    run = subprocess.run(command, input=requests, capture_output=True, text=True, timeout=600, check=False,
                         env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or len(lines) != 1 + len(names):
        raise ValueError(f"{program} under callgrind: exit code {run.returncode}\n{run.stdout[-500:]}{run.stderr[-1500:]}")
    processes = {"caller": lines[0]["pid"], "callee": lines[0]["peers"][0]}
    counted = {}
    for number, name in enumerate(names):
        # The first profile of a process is all before its first mark; the one behind each odd mark is a measure.
        profiles = {end: folder / f"profile.{pid}.{2 * number + 2}" for end, pid in processes.items()}
        counted[name] = {end: total_of(profile) / CALLS[name] for end, profile in profiles.items()}
    return counted


def measured(options, folder):
    rounds = []
    for number in range(options.rounds):
        part = folder / f"round{number + 1}"
        part.mkdir(parents=True, exist_ok=True)
        rounds.append(count(options.bin / "caftan_bench", options.only, part))
    return {name: {end: round(median(r[name][end] for r in rounds)) for end in ENDS} for name in options.only}


def change(today, before):
    return "-" if not before else f"{100 * (today - before) / before:+.1f} %"


def rows(today, before):
    yield ("instructions of one", "caller", "callee", "both", "in the tree", "change")
    for name, ends in today.items():
        both = sum(ends.values())
        known = sum(before[name].values()) if name in before else 0
        yield (MEASURES[name], f"{ends['caller']:,}", f"{ends['callee']:,}", f"{both:,}", f"{known:,}" if known else "-",
               change(both, known))


def show(table):
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                        for at, (cell, width) in enumerate(zip(row, widths))))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of caftan_bench")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(MEASURES),
                        help="some of: " + ",".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--renew", action="store_true", help="writes today's figures to the tree")
    parser.add_argument("--profiles", type=Path, help="folder that keeps callgrind's files")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.only if name not in MEASURES]
    if unknown or options.rounds < 1:
        parser.error(f"no measure {unknown[0]!r}; there are: {' '.join(MEASURES)}" if unknown else "--rounds is at least 1")
    return options


def main(arguments):
    options = parse(arguments)
    before = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            today = measured(options, options.profiles or Path(folder))
    except (OSError, ValueError, subprocess.TimeoutExpired) as failure:
        print(f"instructions: {failure}", file=sys.stderr)
        return 1
    show(list(rows(today, before)))
    if options.renew:
        FIGURES.write_text(json.dumps({**before, **today}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
