"""Compares what may wake the other end of a ring in shared memory: a byte on a Unix socket, an eventfd, a futex.

Each turn asks the three bells one after the other, free and with both ends pinned to one core and to two, and is sorted
by the machine's mood in that turn: the futex between two cores below or above 12 us for a wake-up.
"""

import argparse
import statistics
import sys
from pathlib import Path

from report import describe_machine, number, print_table
from sides import BusyLoops, Side

BELLS = ("socket", "eventfd", "futex")
PLACES = (("free", ""), ("one core", "_same"), ("two cores", "_apart"))
MOOD_US = 12.0


def take_turn(side, seconds, think):
    """Returns {(bell, place): answer} and the time of a wake-up between two cores, or None when the side failed."""
    answers = {}
    for place, suffix in PLACES:
        for bell in BELLS:
            answer = side.ask(f"{bell}{suffix} seconds={seconds} calls=1000000 think_us={think}", timeout_s=30.0)
            if answer is None:
                return None, None
            answers[bell, place] = answer
    return answers, answers["futex", "two cores"]["p50_us"] / 2


def cores_text(answers):
    shares = {}
    for answer in answers:
        for pair, share in answer["cores"].items():
            shares[pair] = shares.get(pair, 0.0) + share / len(answers)
    common = sorted(shares.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{pair} {share:.0%}" for pair, share in common)


def print_mood(title, turns):
    rows = []
    for place, _ in PLACES:
        for bell in BELLS:
            answers = [turn[bell, place] for turn in turns]
            figures = [number(statistics.median(answer[key] for answer in answers))
                       for key in ("p50_us", "p99_us", "cpu_own_us")]
            spread = [answer["p50_us"] for answer in answers]
            rows.append([place, bell, *figures, f"{number(min(spread))} - {number(max(spread))}", cores_text(answers)])
    print(f"### {title}: {len(turns)} turns\n")
    print_table(["both ends", "bell", "p50, us", "p99, us", "CPU caller, us", "p50 of the turns", "cores caller-peer"],
                rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.1, help="length of one measurement")
    parser.add_argument("--busy", action="store_true", help="beside two busy loops at nice 19")
    options = parser.parse_args()
    if options.turns < 1 or not 0.01 <= options.seconds <= 10:
        parser.error("--turns must be at least 1, --seconds 0.01 to 10")
    print(describe_machine())
    busy = BusyLoops(2, 600) if options.busy else None
    side = Side("raw bells", [str(options.bin / "raw_floor"), "bells"])
    side.start()
    try:
        for think in (0, 30):
            moods = {"good": [], "bad": []}
            for _ in range(options.turns):
                answers, wake_us = take_turn(side, options.seconds, think)
                if answers is None:
                    return 1
                moods["good" if wake_us < MOOD_US else "bad"].append(answers)
            print(f"\n## A round trip of 64 bytes, pause {think} us{', beside two busy loops' if busy else ''}\n")
            for mood, turns in moods.items():
                if turns:
                    print_mood(f"{mood} mood", turns)
                else:
                    print(f"The {mood} mood did not come.\n")
    finally:
        side.end()
        if busy:
            busy.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
