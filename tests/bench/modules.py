#!/usr/bin/env python3
"""Runs calls of a module at another worker beside those of a method through a reference, in turns, and counts the messages
in which the references to its parameters are listed.

    modules.py --bin build/bench/tests/bench

Exit code: 0 when the program ran, else 1. Never because of a time that was measured. docs/performance.md explains the
measures and the tables.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from autograd import ratio_row, rounds
from report import add_up, describe_machine, number, print_table
from sides import Side
from targets import distance

SIDE = "caftan unix"
SIZES = {"4 floats": 4, "64 KiB": 16_384, "1 MiB": 262_144}
KINDS = {"method": "method through a reference", "forward": "forward of a RemoteModule"}


def requests(options, turn):
    """Yields (row, request); the two that are compared run one right after the other, each first in every second turn."""
    for size, floats in SIZES.items():
        for kind in KINDS if turn % 2 == 0 else reversed(KINDS):
            yield f"{kind}, {size}", f"{kind} floats={floats} calls=1000000 seconds={options.seconds}"
    yield "list", f"list calls=1000000 seconds={options.seconds}"


def measure(options):
    """Returns {(row, side): merged answer}, the answer of the listing and why the side failed, if it did."""
    side = Side(SIDE, [str(options.bin / "modules_bench")])
    answers = {}
    deadline = time.monotonic() + options.limit
    try:
        side.start()
        listing = side.ask("listing", timeout_s=60.0)
        for turn in range(options.rounds):
            for row, request in requests(options, turn):
                answer = side.ask(request, timeout_s=60.0) if time.monotonic() < deadline else None
                if answer is None:
                    continue
                answers.setdefault((row, SIDE), []).append(answer)
                if options.json:
                    options.json.write(json.dumps({"round": turn, **answer}) + "\n")
    finally:
        side.end()
    return {key: add_up(values) for key, values in answers.items()}, listing or {}, side.failure


def print_times(results):
    rows = []
    for (row, _), answer in results.items():
        kind, _, size = row.partition(", ")
        title = f"{KINDS[kind]}, {size}" if kind in KINDS else "parameters of a ResNet-50 listed"
        rows.append([title, number(answer["p50_us"]), number(answer["p99_us"]),
                     f"{number(min(answer['p50_rounds']))} - {number(max(answer['p50_rounds']))}",
                     number(answer["cpu_own_us"]), number(answer["cpu_peer_us"]), f"{answer['calls']:,}"])
    print_table(["microseconds", "p50", "p99", "p50 of the rounds", "CPU caller", "CPU owner", "runs"], sorted(rows))


def print_targets(results, listing):
    rows = [ratio_row(f"{KINDS['forward']}, {size}", rounds(results, f"forward, {size}", SIDE), "method",
                      rounds(results, f"method, {size}", SIDE), 1.1, "<= 1.1") for size in SIZES]
    for name, title in (("first", "for the first time"), ("again", "once more")):
        sent = [listing.get(f"{name}_{who}") for who in ("from_caller", "from_owner")]
        trips = None if None in sent else max(sent)  # a round trip is a message there and one back
        rows.append([f"round trips until {listing.get('parameters')} parameters are listed, {title}", number(trips),
                     f"{number(listing.get(f'{name}_until_confirmed'))} messages until confirmed", "-", "<= 3",
                     distance(trips, 3)])
    print_table(["measure", "value", "compared with", "ratio", "target", "distance"], rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each measure")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of one measurement")
    parser.add_argument("--limit", type=float, default=220.0, help="seconds for everything")
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every answer, one JSON object a line")
    options = parser.parse_args()
    if options.rounds < 1 or not 0.05 <= options.seconds <= 10 or options.limit <= 0:
        parser.error("--rounds must be at least 1, --seconds 0.05 to 10, --limit positive")
    return options


def main():
    options = parse_options()
    print(describe_machine())
    print(f"\n## Modules: default settings, {options.rounds} rounds of {options.seconds:g} s, in turns, microseconds\n")
    results, listing, failure = measure(options)
    print_times(results)
    print_targets(results, listing)
    if failure:
        print(f"{SIDE}: {failure}")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
