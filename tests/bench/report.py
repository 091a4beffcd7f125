#!/usr/bin/env python3
"""Runs Caftan beside PyTorch's own RPC agent, ZeroMQ and raw sockets, in turns, and prints ratios against the targets.

    report.py --bin build/bench/tests/bench                  a quiet machine, about two minutes
    report.py --bin build/bench/tests/bench --state busy     beside two low-priority busy loops
    report.py --bin build/bench/tests/bench --state both     one after the other, fewer rounds each

Exit code: 0 when every side that is built ran, and Caftan's are; else 1. Never because of a time that was measured.
docs/performance.md explains the measures and the tables.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from sides import NOT_BUILT, BusyLoops, Side
from targets import target_rows

MIB = 262_144  # float32 elements in 1 MiB

CALLERS = ("raw unix", "caftan shm", "caftan shm off", "caftan unix", "reference default", "zeromq ipc", "raw tcp", "caftan tcp",
           "reference shm", "zeromq tcp", "caftan loopback", "raw futex")
PAUSES = {"0": "", "30 us": " think_us=30", "1 ms": " think_us=1000", "1 ms asleep": " think_us=1000 rest=sleep"}


def make_plan(seconds):
    """Returns rows of (title, request, sides or None for all that offer the measure, every round?)."""
    rows = []
    for pause, keys in PAUSES.items():
        rows.append((f"echo of 4 floats, pause {pause}", f"sync{keys} seconds={seconds}", None, True))
    rows += [
        ("echo of an int", f"sync_int seconds={seconds}", None, True),
        ("echo of 4 floats, brief", f"sync_brief seconds={seconds}", None, True),
        ("method through a reference", f"method seconds={seconds}", None, True),
        ("remote + to_here", f"remote seconds={seconds}", None, True),
        ("one hop forward + backward", f"hop seconds={seconds}", None, True),
        ("echo of 1 MiB", f"sync floats={MIB} seconds={seconds}", None, True),
        ("echo of 16 MiB", f"sync floats={16 * MIB} seconds={1.5 * seconds}", None, True),
        ("fresh result of 1 MiB", f"fresh floats={MIB} seconds={seconds}", None, True),
        ("fresh result of 16 MiB", f"fresh floats={16 * MIB} seconds={1.5 * seconds}", None, True),
        ("64 in flight", f"pipelined calls=10000000 seconds={seconds}", None, True),
        ("64 in flight, an int", f"pipelined_int calls=10000000 seconds={seconds}", None, True),
        ("64 in flight, a note", f"pipelined_note calls=10000000 seconds={seconds}", None, True),
        ("one-way notes", f"tell_int calls=10000000 seconds={seconds}", None, True),
        ("16 calls in a row", f"row seconds={seconds}", None, True),
        ("broadcast to 16", f"broadcast seconds={seconds}", None, True),
        ("16 calls in a row, 256 KiB", f"row floats=65536 seconds={seconds}", None, True),
        ("broadcast to 16, 256 KiB", f"broadcast floats=65536 seconds={seconds}", None, True),
        ("64 in flight, brief", f"pipelined_brief calls=10000000 seconds={seconds}", None, True),
        ("copy of 16 MiB", f"copy floats={16 * MIB} calls=10000 seconds={seconds}", None, True),
        ("idle", "idle seconds=1", None, False),
        ("10,000 idle references", "rrefs calls=10000 seconds=20", None, False),
        ("start of 5 processes", "start calls=5 seconds=10", None, False),
        ("killed peer", "killed", None, False),  # last: the side has no peer afterwards
    ]
    return rows


def make_sides(folder):
    def program(name):
        return str(folder / name)

    sides = [Side(f"raw {kind}", [program("raw_floor"), kind]) for kind in ("unix", "tcp", "futex", "memcpy")]
    sides += [Side(f"zeromq {kind}", [program("zeromq_floor"), kind]) for kind in ("ipc", "tcp")]
    sides += [Side(f"reference {kind}", [program("reference_agent"), kind], spins_when_idle=True)
              for kind in ("default", "shm")]
    sides += [Side(f"caftan {kind}", [program("caftan_bench"), kind]) for kind in ("shm", "unix", "tcp", "loopback")]
    sides.append(Side("caftan shm off", [program("caftan_bench"), "shm", "off"]))
    sides += [Side(f"caftan group {kind}", [program("group_bench"), kind]) for kind in ("shm", "unix")]
    sides.append(Side("caftan start", [program("start_bench")]))
    order = {name: place for place, name in enumerate(CALLERS)}
    return sorted(sides, key=lambda side: order.get(side.name, len(order)))


def add_up(answers):
    """Merges the answers that one side gave to one row in several rounds."""
    merged = dict(answers[-1])
    total = sum(answer.get("calls", 0) for answer in answers)
    for key in ("spins", "spins_won"):
        if any(key in answer for answer in answers):
            merged[key] = sum(answer.get(key, 0) for answer in answers)
    for key in ("mean_us", "cpu_own_us", "cpu_peer_us", "calls_per_s", "gb_per_s"):
        if key in merged:
            weights = [answer.get("calls", 1) for answer in answers]
            merged[key] = sum(a[key] * w for a, w in zip(answers, weights)) / max(sum(weights), 1)
    merged["calls"] = total
    if "histogram" in merged:
        counts = {}
        for answer in answers:
            for ns, count in answer["histogram"]:
                counts[ns] = counts.get(ns, 0) + count
        for key, share in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)):
            merged[key] = quantile(counts, total, share)
        merged["p50_rounds"] = [answer["p50_us"] for answer in answers]
        del merged["histogram"]
    return merged


def quantile(counts, total, share):
    seen = 0
    for ns in sorted(counts):
        seen += counts[ns]
        if seen >= share * total:
            return ns / 1e3
    return 0.0


def measure(options, state, deadline):
    """Runs all rows in one state; returns {(row, side): merged answer} and the sides' failures."""
    sides = [side for side in make_sides(options.bin) if not options.only or options.only in side.name]
    answers = {}
    busy = BusyLoops(2, options.limit + 60) if state == "busy" else None
    try:
        for side in sides:
            side.start()
        rounds = options.rounds
        for turn in range(rounds):
            for title, request, only, every_round in make_plan(options.seconds):
                if not every_round and turn != rounds - 1:
                    continue
                for side in sides:
                    word = request.split()[0]
                    if not side.offers(word) or (only and side.name not in only):
                        continue
                    if time.monotonic() > deadline:
                        print("report: the time limit is reached; the rest is left out", file=sys.stderr)
                        return finish(answers), {s.name: s.failure for s in sides if s.failure}
                    answer = side.ask(request, timeout_s=30.0)
                    if answer is not None:
                        answers.setdefault((title, side.name), []).append(answer)
                        if options.json:
                            options.json.write(json.dumps({"state": state, "round": turn, **answer}) + "\n")
        return finish(answers), {side.name: side.failure for side in sides if side.failure}
    finally:
        for side in sides:
            side.end()
        if busy:
            busy.end()


def finish(answers):
    return {key: add_up(values) for key, values in answers.items()}


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def spins_won(answer):
    """Of the caller's waits of a row: those that spun and found what they waited for, of those that spun."""
    return f"{answer['spins_won']:,} of {answer['spins']:,}" if answer.get("spins") else "-"


def print_table(heading, rows):
    widths = [max(len(str(row[column])) for row in [heading, *rows]) for column in range(len(heading))]
    for place, row in enumerate([heading, *rows]):
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |")
        if place == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print()


def print_results(results):
    order = {name: place for place, name in enumerate(CALLERS)}
    titles = list(dict.fromkeys(title for title, _ in results))
    latency = []
    rates = []
    for title in titles:
        for name in sorted((s for t, s in results if t == title), key=lambda s: order.get(s, len(order))):
            answer = results[title, name]
            if "p50_us" in answer:
                rounds = answer["p50_rounds"]
                figures = [number(answer[key]) for key in ("p50_us", "p99_us", "p999_us", "mean_us")]
                latency.append([title, name, *figures,
                                f"{number(min(rounds))} - {number(max(rounds))}", number(answer["cpu_own_us"]),
                                number(answer["cpu_peer_us"]), f"{answer['calls']:,}", spins_won(answer)])
            elif "calls_per_s" in answer:
                rates.append([title, name, number(answer["calls_per_s"] / 1e3) + " k/s", number(answer["cpu_own_us"]),
                              number(answer["cpu_peer_us"])])
            else:
                skip = {"side", "measure", "calls", "wall_s"}
                text = ", ".join(f"{k} {number(v) if isinstance(v, (int, float)) else v}"
                                 for k, v in answer.items() if k not in skip)
                rates.append([title, name, text, "-", "-"])
    print_table(["microseconds", "side", "p50", "p99", "p99.9", "mean", "p50 of the rounds", "CPU caller", "CPU peer",
                 "calls", "spins won"], latency)
    print_table(["rate or amount", "side", "value", "CPU caller, us", "CPU peer, us"], rates)


def describe_machine():
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, commit {commit or 'none'}"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--state", choices=("quiet", "busy", "both"), default="quiet")
    parser.add_argument("--rounds", type=int, default=None, help="turns of each side (3; 2 with --state both)")
    parser.add_argument("--seconds", type=float, default=0.35, help="length of one measurement")
    parser.add_argument("--limit", type=float, default=220.0, help="seconds for everything")
    parser.add_argument("--only", default="", help="sides whose name holds this text, for example caftan")
    parser.add_argument("--json", type=argparse.FileType("w"), help="file for every answer, one JSON object a line")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 2 if options.state == "both" else 3
    if options.rounds < 1 or not 0.05 <= options.seconds <= 10 or options.limit <= 0:
        parser.error("--rounds must be at least 1, --seconds 0.05 to 10, --limit positive")
    return options


def main():
    options = parse_options()
    deadline = time.monotonic() + options.limit
    print(describe_machine())
    failed = False
    for state in ("quiet", "busy") if options.state == "both" else (options.state,):
        title = "quiet machine" if state == "quiet" else "beside two busy loops at nice 19"
        print(f"\n## {title}: default settings, {options.rounds} rounds of {options.seconds:g} s, sides in turns\n")
        results, failures = measure(options, state, deadline)
        print_results(results)
        print_table(["measure", "value", "compared with", "ratio", "target", "distance"], target_rows(results))
        for name, why in failures.items():
            print(f"{name}: {why}")
        failed = failed or any(why != NOT_BUILT or name.startswith("caftan") for name, why in failures.items())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
