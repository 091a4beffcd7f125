#!/usr/bin/env python3
"""Runs Caftan's distributed autograd beside the reference's own engine, in turns, and prints ratios against the targets.

    autograd.py --bin build/bench/tests/bench
    autograd.py --bin build/bench/tests/bench --only sync,hop --rounds 25

Exit code: 0 when every side ran, else 1. Never because of a time that was measured. docs/performance.md explains the
measures and the tables.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

from report import add_up, describe_machine, number, print_table
from sides import Side
from targets import distance

CAFTAN = "caftan unix"
REFERENCES = ("reference default", "reference shm")
FAN = ", 4 workers"
MEASURES = {
    "sync": "echo of 4 floats",
    "context": "context made and released",
    "forward": "context, one call, release",
    "hop": "one hop, forward + backward",
    "step": "one hop, forward + backward + step",
    "chain": "8 calls in a row, forward + backward",
    "nested": "8 nested calls, forward + backward",
    "fan": "fan-out to 4 workers, forward + backward",
    "rnn": "RNN iteration with step",
}
# Recorded messages that a pass of these marks.
MARKED = {"hop": 2, "chain": 16, "nested": 16}


def make_sides(folder):
    ours, theirs = str(folder / "autograd_bench"), str(folder / "reference_autograd")
    sides = [Side(CAFTAN, [ours])]
    sides += [Side(name, [theirs, name.split()[1]], spins_when_idle=True) for name in REFERENCES]
    sides.append(Side(CAFTAN + FAN, [ours, "4"]))
    sides += [Side(name + FAN, [theirs, name.split()[1], "4"], spins_when_idle=True) for name in REFERENCES]
    return sides


def measure(options):
    """Returns {(measure, side without the number of workers): merged answer}, the frames and the sides' failures."""
    sides = make_sides(options.bin)
    answers = {}
    deadline = time.monotonic() + options.limit
    try:
        for side in sides:
            side.start()
        for turn in range(options.rounds):
            for name in options.only or MEASURES:
                # Measures that are compared run one right after the other, because the machine's speed changes with time.
                for side, key in [(s, name + suffix) for s in sides for suffix in ("", "_fast")]:
                    if not side.offers(key) or time.monotonic() > deadline:
                        continue
                    answer = side.ask(f"{key} calls=1000000 seconds={options.seconds}", timeout_s=60.0)
                    if answer is not None:
                        answers.setdefault((key, side.name.removesuffix(FAN)), []).append(answer)
                        if options.json:
                            options.json.write(json.dumps({"round": turn, **answer}) + "\n")
        frames = sides[0].ask("frames", timeout_s=60.0)
    finally:
        for side in sides:
            side.end()
    return {key: add_up(a) for key, a in answers.items()}, frames or {}, {s.name: s.failure for s in sides if s.failure}


def rounds(results, name, side):
    answer = results.get((name, side))
    return [] if answer is None else answer["p50_rounds"]


def ratio_row(name, values, base_name, bases, limit, target):
    """A row from the medians of each turn: the ratio is the median of the turns' ratios."""
    ratios = [value / base for value, base in zip(values, bases)]
    if not ratios:
        return [name, "not measured", base_name, "-", target, "-"]
    ratio = median(ratios)
    return [name, number(median(values)), f"{base_name} {number(median(bases))}", f"{ratio:.3f}", target,
            distance(ratio, limit) if limit else "-"]


def print_times(results):
    rows = []
    for name, title in MEASURES.items():
        for key, side in [(name, CAFTAN), (name + "_fast", CAFTAN)] + [(name, side) for side in REFERENCES]:
            answer = results.get((key, side))
            if answer is None:
                continue
            mode = "" if side != CAFTAN or (name + "_fast", CAFTAN) not in results else \
                " FAST" if key.endswith("_fast") else " SMART"
            rounds = answer["p50_rounds"]
            rows.append([title, side + mode, number(answer["p50_us"]), number(answer["p99_us"]),
                         f"{number(min(rounds))} - {number(max(rounds))}", number(answer["cpu_own_us"]),
                         number(answer["cpu_peer_us"]), f"{answer['calls']:,}"])
    print_table(["microseconds", "side", "p50", "p99", "p50 of the rounds", "CPU caller", "CPU peers", "runs"], rows)


def print_targets(results, frames):
    rows = []
    for name, title in MEASURES.items():
        if not rounds(results, name, CAFTAN):
            continue
        for side in REFERENCES if name != "sync" else ():
            limit = 1 / 5 if name == "hop" and side == "reference default" else None
            rows.append(ratio_row(title, rounds(results, name, CAFTAN), side, rounds(results, name, side), limit,
                                  "<= 1/5" if limit else "none"))

    def marks(name):
        return [smart - fast for smart, fast in zip(rounds(results, name, CAFTAN),
                                                    rounds(results, name + "_fast", CAFTAN))]

    rows.append(ratio_row("SMART - FAST, one hop", marks("hop"), "small call", rounds(results, "sync", CAFTAN), 1.2,
                          "<= 1.2"))
    rows.append(ratio_row("SMART - FAST, RNN", marks("rnn"), "iteration", rounds(results, "rnn", CAFTAN), 0.05,
                          "<= 5 %"))
    for name, marked in MARKED.items():
        smart, fast = frames.get(name), frames.get(name + "_fast")
        more = None if smart is None else smart - fast
        rows.append([f"messages of a pass, {MEASURES[name].split(',')[0]} ({marked} marked)", number(smart),
                     f"FAST {number(fast)}", f"{number(more)} more", f"<= {marked + 1} more",
                     distance(more, marked + 1)])
    print_table(["measure", "value, us", "compared with", "ratio", "target", "distance"], rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of one measurement")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for everything")
    parser.add_argument("--only", type=lambda text: text.split(","), help="measures: " + ",".join(MEASURES))
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every answer, one JSON object a line")
    options = parser.parse_args()
    if options.only and not set(options.only) <= set(MEASURES):
        parser.error("--only takes " + ",".join(MEASURES))
    if options.rounds < 1 or not 0.05 <= options.seconds <= 10 or options.limit <= 0:
        parser.error("--rounds must be at least 1, --seconds 0.05 to 10, --limit positive")
    return options


def main():
    options = parse_options()
    print(describe_machine())
    print(f"\n## Autograd: default settings, {options.rounds} rounds of {options.seconds:g} s, sides in turns\n")
    results, frames, failures = measure(options)
    print_times(results)
    print_targets(results, frames)
    for name, why in failures.items():
        print(f"{name}: {why}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
