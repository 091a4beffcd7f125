#!/usr/bin/env python3
"""Runs configs/batch_parameter_server_resnet50.toml and compares the time of a round with what its parts take alone: the
gradients of all trainers without Caftan, and the round's bytes at the speed of a raw socket.

    batch_server.py --bin build/bench/tests/bench

Exit code: 0 when all programs ran, else 1. Never because of a time that was measured. docs/performance.md explains the
measures and the table.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from statistics import median

from report import describe_machine, number, print_table
from sides import Side
from targets import distance

FILE = Path(__file__).resolve().parents[2] / "configs/batch_parameter_server_resnet50.toml"
LIMIT = 1.3
ECHO_FLOATS = 16_777_216  # 64 MiB, the largest message of the raw side
SKIPPED = 1               # rounds at the start: the first one waits for the models to be made


def make_sides(options):
    application = tomllib.loads(FILE.read_text())
    trainer = application["roles"]["trainer"]
    compute = [str(options.bin / "batch_server_bench"), "compute", application["roles"]["server"]["config"]["model"],
               str(trainer["replicas"]), str(trainer["config"]["batch"])]
    return Side("compute alone", compute), Side("raw unix", [str(options.bin / "raw_floor"), "unix"])


def round_seconds(run):
    """Returns the seconds of each round, from the mean of all rounds so far that the server reports after each."""
    with (run / "metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "seconds_per_round"]
    if any(row["count"] != "1" for row in rows):
        raise ValueError("two rounds in one row of metrics.csv: they are too short for output.every")
    ends = [number * float(row["last"]) for number, row in enumerate(rows, 1)]
    return [end - start for start, end in zip([0.0, *ends], ends)]


def run_application(options):
    """Returns the seconds of the rounds of one run, or None with a line on stderr."""
    with tempfile.TemporaryDirectory(prefix="caftan-") as folder:
        command = [str(options.bin / "batch_server_bench"), "run", str(FILE), f"output.dir={folder}", "output.every=100ms",
                   "output.progress=none", f"roles.server.config.rounds={options.length + SKIPPED}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"batch_server: {error}", file=sys.stderr)
            return None
        if done.returncode != 0:
            print(f"batch_server: the application ended with {done.returncode}: {done.stderr}", file=sys.stderr)
            return None
        rounds = round_seconds(Path(folder) / "latest")
        return rounds[SKIPPED:] if len(rounds) == options.length + SKIPPED else None


def ask(side, request):
    """Starts the side for one request alone: its processes hold as much memory as those of the application."""
    side.start()
    try:
        return side.ask(request, timeout_s=300.0)
    finally:
        side.end()


def measure(options):
    """Returns one dict for each turn, with seconds of a round, of computing and of moving its bytes."""
    turns = []
    deadline = time.monotonic() + options.limit
    for _ in range(options.rounds):
        if turns and time.monotonic() > deadline:
            break
        compute, raw = make_sides(options)
        compute.START_TIMEOUT_S = 120.0
        computed = ask(compute, f"compute calls={options.length}")
        echoed = ask(raw, f"sync floats={ECHO_FLOATS} calls=50 seconds=3")
        rounds = run_application(options)
        if computed is None or echoed is None or not rounds:
            return turns, False
        turn = {"rounds_s": rounds, "computes_s": computed["round_s"], "bytes": computed["bytes"],
                "bytes_per_s": 2 * 4 * ECHO_FLOATS / (1e-6 * echoed["p50_us"])}
        turn["bound_s"] = median(turn["computes_s"]) + turn["bytes"] / turn["bytes_per_s"]
        turns.append(turn)
        if options.json:
            options.json.write(json.dumps(turn) + "\n")
    return turns, True


def print_turns(turns):
    rows = []
    for turn in turns:
        moved = turn["bytes"] / turn["bytes_per_s"]
        rows.append([number(median(turn["rounds_s"])), f"{number(min(turn['rounds_s']))} - {number(max(turn['rounds_s']))}",
                     number(median(turn["computes_s"])),
                     f"{number(min(turn['computes_s']))} - {number(max(turn['computes_s']))}",
                     f"{turn['bytes'] / 1e6:.0f}", f"{turn['bytes_per_s'] / 1e9:.2f}", number(moved),
                     f"{median(turn['rounds_s']) / turn['bound_s']:.3f}"])
    print_table(["a round, s", "of the run", "compute alone, s", "of the rounds", "MB of a round", "raw unix, GB/s",
                 "bytes / speed, s", "ratio"], rows)


def print_target(turns):
    ratio = median(median(turn["rounds_s"]) / turn["bound_s"] for turn in turns) if turns else None
    values = [median(turn[key] if key == "bound_s" else median(turn[key]) for turn in turns) if turns else None
              for key in ("rounds_s", "bound_s")]
    print_table(["measure", "value, s", "compared with", "ratio", "target", "distance"],
                [["round of five trainers, ResNet-50", number(values[0]),
                  f"compute alone + bytes / speed {number(values[1])}", "-" if ratio is None else f"{ratio:.3f}",
                  f"<= {LIMIT}", distance(ratio, LIMIT)]])


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=3, help="turns: each computes, echoes and runs the application")
    parser.add_argument("--length", type=int, default=6, help="rounds of the model in a turn")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds after which no turn begins")
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every turn, one JSON object a line")
    options = parser.parse_args()
    if options.rounds < 1 or not 1 <= options.length <= 1000 or options.limit <= 0:
        parser.error("--rounds must be at least 1, --length 1 to 1000, --limit positive")
    return options


def main():
    options = parse_options()
    print(describe_machine())
    print(f"\n## {FILE.name}: {options.rounds} turns of {options.length} rounds, the first round of a run left out\n")
    turns, complete = measure(options)
    print_turns(turns)
    print_target(turns)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
