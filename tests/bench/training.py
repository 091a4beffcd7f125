#!/usr/bin/env python3
"""Trains a small net in each consistency mode with one and two trainers, beside a plain loop of torch, in turns, and prints
images per second against the targets.

    training.py --bin build/bench/tests/bench
    training.py --bin build/bench/tests/bench --only plain_1,versioned_1 --rounds 15

Exit code: 0 when the program ran and computed what the plain loop computes, else 1. Never because of a time that was
measured. docs/performance.md explains the measures and the tables.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

from report import describe_machine, number, print_table
from sides import Side
from targets import distance

MODES = ("locked", "versioned", "sync")
MEASURES = [f"{kind}_{trainers}" for trainers in (1, 2) for kind in ("plain", *MODES)]
FILE_MODE = "versioned"  # of configs/parameter_server.toml
SAME = 0.01              # how far the mean losses of two trainings may differ that are to compute the same


def title(name):
    kind, count = name.split("_")
    plural = "" if count == "1" else "s"
    return f"{count} plain loop{plural}" if kind == "plain" else f"{kind}, {count} trainer{plural}"


def measure(options):
    """Returns {measure: answers, one for each round} and why the program failed, if it did."""
    side = Side("training", [str(options.bin / "training_bench")])
    answers = {}
    deadline = time.monotonic() + options.limit
    chosen = [name for name in MEASURES if not options.only or name in options.only]
    try:
        side.start()
        for name in chosen:  # the first request makes the models
            side.ask(f"{name} calls=1", timeout_s=60.0)
        for turn in range(options.rounds):
            if time.monotonic() > deadline:
                print("training: the time limit is reached; the rest is left out", file=sys.stderr)
                break
            for name in chosen if turn % 2 == 0 else reversed(chosen):
                answer = side.ask(f"{name} calls={options.steps}", timeout_s=120.0)
                if answer is not None:
                    answers.setdefault(name, []).append(answer)
                    if options.json:
                        options.json.write(json.dumps({"round": turn, **answer}) + "\n")
    finally:
        side.end()
    return answers, side.failure


def rates(answers, name):
    return [answer["images_per_s"] for answer in answers.get(name, [])]


def print_rates(answers):
    rows = []
    for name in MEASURES:
        if name not in answers:
            continue
        of = rates(answers, name)
        rows.append([title(name), number(median(of)), f"{number(min(of))} - {number(max(of))}",
                     number(median(answer["cpu_ms"] for answer in answers[name])),
                     f"{answers[name][0]['loss']:.5f}", f"{answers[name][-1]['loss']:.5f}",
                     f"{sum(answer['calls'] for answer in answers[name]):,}"])
    print_table(["training", "images/s", "of the rounds", "CPU of a gradient, ms", "loss, first round", "last round",
                 "gradients"], rows)


def row(answers, name, base, limit, target, at_least=True):
    """A row whose ratio is the median of the turns' ratios: faster is above 1, or, where not `at_least`, slower."""
    pairs = list(zip(rates(answers, name), rates(answers, base)))
    if not pairs:
        return [title(name), "not measured", title(base), "-", target, "-"]
    ratio = median(value / of if at_least else of / value for value, of in pairs)
    return [title(name), number(median(rates(answers, name))),
            f"{title(base)} {number(median(rates(answers, base)))}", f"{ratio:.3f}", target,
            distance(ratio, limit, at_least) if limit else "-"]


def print_targets(answers):
    rows = [row(answers, f"{mode}_1", "plain_1", 0.9, ">= 0.9") for mode in MODES]
    rows += [row(answers, f"{mode}_2", f"{mode}_1", 1.6, ">= 1.6") for mode in MODES if mode != "locked"]
    rows.append(row(answers, "locked_2", "locked_1", None, "none"))
    rows.append(row(answers, "plain_2", "plain_1", None, "none: what two cores can"))
    rows.append(row(answers, f"{FILE_MODE}_1", "locked_1", 1.1, "costs <= 1.1", at_least=False))
    print_table(["training", "images/s", "compared with", "ratio", "target", "distance"], rows)


def difference(answers):
    """Returns what is wrong if the training with one trainer did not compute what the plain loop did."""
    if "plain_1" not in answers:
        return None
    plain = answers["plain_1"][0]["loss"]
    for mode in MODES:
        loss = answers[f"{mode}_1"][0]["loss"] if f"{mode}_1" in answers else plain
        if not abs(loss - plain) <= SAME * plain:
            return f"{mode} with one trainer has a loss of {loss:.5f}, the plain loop over the same batches {plain:.5f}"
    return None


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each measure")
    parser.add_argument("--steps", type=int, default=60, help="of each trainer in a turn")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds for everything")
    parser.add_argument("--only", type=lambda text: text.split(","), help="measures: " + ",".join(MEASURES))
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every answer, one JSON object a line")
    options = parser.parse_args()
    if options.only and not set(options.only) <= set(MEASURES):
        parser.error("--only takes " + ",".join(MEASURES))
    if options.rounds < 1 or not 1 <= options.steps <= 10_000 or options.limit <= 0:
        parser.error("--rounds must be at least 1, --steps 1 to 10000, --limit positive")
    return options


def main():
    options = parse_options()
    print(describe_machine())
    print(f"\n## Training: a net of 1.2 million parameters, batches of 32 drawings, one torch thread a process, "
          f"{options.rounds} rounds of {options.steps} steps, in turns\n")
    answers, failure = measure(options)
    print_rates(answers)
    print_targets(answers)
    failure = failure or difference(answers)
    if failure:
        print(f"training: {failure}")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
