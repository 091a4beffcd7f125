#!/usr/bin/env python3
"""Runs the benchmark programs of another commit and today's in turns, and says of each measure whether it was lost.

    against.py --before build/against/COMMIT/build/bench --today build/bench --commit COMMIT [NAME] [--turns N]

Each turn starts the programs afresh and takes each measure of both versions, one right after the other; which of them is
first alternates. Of the ratios today / before of a measure stand here the median and its 95 % interval (two of the
ratios, by the ranks of the sign test). Exit code: 0 when no measure was lost, 1 when one was or a program failed, 2 for a
wrong command line, 130 after Ctrl-C. docs/performance.md explains the table.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from autograd import FAN, MEASURES
from paired import FEWEST_TURNS, judge, ratio
from report import describe_machine, make_plan, print_table
from sides import Side

# The figures of a reply that are compared. The other figures repeat the request, or say the same less exactly.
COSTS = ("p50_us", "p99_us", "cpu_us", "own_percent", "peer_percent", "own_live_bytes", "own_resident_bytes",
         "peer_live_bytes", "peer_resident_bytes", "make_and_fetch_us", "run_ms", "since_signal_ms")
RATES = ("calls_per_s",)
SIDES = {
    "report": [(f"caftan {kind}", "caftan_bench", [kind]) for kind in ("unix", "tcp", "loopback")] +
              [("caftan start", "start_bench", [])],
    "autograd": [("caftan unix", "autograd_bench", []), ("caftan unix" + FAN, "autograd_bench", ["4"])],
}
SECONDS = 0.2
PROGRAM_LIMIT_S = 300


def requests_of(program):
    """Returns (title, request) of each measure that a program's sides may offer."""
    if program == "report":
        plan = [(title, request) for title, request, _, _ in make_plan(SECONDS)]
        # `start` makes one start per turn, because there are many turns.
        return [(title, re.sub(r"^start .*", "start calls=1 seconds=10", request)) for title, request in plan]
    return [(title + mode, f"{name}{suffix} calls=1000000 seconds={SECONDS}") for name, title in MEASURES.items()
            for suffix, mode in (("", ""), ("_fast", ", FAST"))] + [("messages of a pass", "frames")]


def figures(answer, is_frames):
    """Returns {name of the figure: (value, is more better?)} of one answer."""
    if is_frames:
        return {name: (value, False) for name, value in answer.items() if isinstance(value, (int, float))}
    if "cpu_own_us" in answer:
        answer = {**answer, "cpu_us": answer["cpu_own_us"] + answer["cpu_peer_us"]}
    return {name: (answer[name], name in RATES) for name in COSTS + RATES if name in answer}


class Comparison:
    """The pairs that were measured: {measure: [ratio of each turn]}, what one version lacks, and what failed."""

    def __init__(self, options):
        self.options = options
        self.ratios = {}
        self.seen = (set(), set())
        self.failures = {}
        self.unplanned = set()
        self._took = 0.0  # seconds, the turns that are over
        self._began = time.monotonic()

    def wants(self, measure):
        return not self.options.only or self.options.only in measure

    def add(self, measure, pair):
        """pair: the figures of before and of today, each {name: (value, more is better)} or None after a failure."""
        for version, found in enumerate(pair):
            self.seen[version].update(f"{measure}: {name}" for name in found or {})
        if None in pair:
            return
        for name in pair[0].keys() & pair[1].keys():
            (before, _), (today, more_is_better) = pair[0][name], pair[1][name]
            self.ratios.setdefault(f"{measure}: {name}", []).append(ratio(before, today, more_is_better))

    def show(self, turn, what):
        left = "" if turn == 0 else f", {self._took / turn * (self.options.turns - turn) / 60:.0f} min left at most"
        line = f"turn {turn + 1} of {self.options.turns}{left}: {what}"
        if sys.stderr.isatty():
            print(f"\r\033[K {line:.110}", end="", file=sys.stderr, flush=True)
        elif what == "begins":
            print(line, file=sys.stderr, flush=True)

    def run(self):
        for turn in range(self.options.turns):
            self.show(turn, "begins")
            for program in self.options.programs:
                if program in SIDES:
                    self.turn_of_sides(turn, program)
                else:
                    self.turn_of_whole(turn, program)
            self._took = time.monotonic() - self._began

    def turn_of_sides(self, turn, program):
        for name, binary, arguments in SIDES[program]:
            if not any(self.wants(f"{program}: {name}: {title}") for title, _ in requests_of(program)):
                continue
            pair = [Side(f"{name} of {who}", [str(folder / "tests/bench" / binary), *arguments])
                    for who, folder in self.options.versions]
            try:
                for side in pair:
                    side.start()
                self.ask_all(turn, f"{program}: {name}", pair, requests_of(program))
            finally:
                for side in pair:
                    side.end()
            self.failures.update({side.name: side.failure for side in pair if side.failure})

    def ask_all(self, turn, prefix, pair, requests):
        known = {request.split()[0] for _, request in requests}
        for version, side in enumerate(pair):
            self.unplanned.update(f"{prefix}: {word} ({self.options.versions[version][0]})"
                                  for word in side.measures - known)
        for place, (title, request) in enumerate(requests):
            word = request.split()[0]
            if not self.wants(f"{prefix}: {title}") or not any(side.offers(word) for side in pair):
                continue
            self.show(turn, f"{prefix}: {title}")
            found = [None, None]
            for version in ((0, 1), (1, 0))[(turn + place) % 2]:
                if pair[version].offers(word):
                    answer = pair[version].ask(request, timeout_s=60.0)
                    found[version] = None if answer is None else figures(answer, word == "frames")
            self.add(f"{prefix}: {title}", found)

    def turn_of_whole(self, turn, program):
        # The measures that this program has are known once it has run in the first turn.
        if turn > 0 and not any(measure.startswith(program) for measures in self.seen for measure in measures):
            return
        self.show(turn, program)
        found = [None, None]
        for version in ((0, 1), (1, 0))[turn % 2]:
            who, folder = self.options.versions[version]
            try:
                found[version] = WHOLE[program](folder / "bench" / program)
            except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
                self.failures[f"{program} of {who}"] = str(error) or type(error).__name__
        wanted = [found and {name: figure for name, figure in found.items() if self.wants(f"{program}: {name}")}
                  for found in found]
        self.add(program, wanted)


def output_of(command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=PROGRAM_LIMIT_S).stdout


def run_archive_bench(program):
    """CPU time of each benchmark of Caftan's own; Boost's are what they stand beside in `./caftan bench archive_bench`."""
    report = json.loads(output_of([str(program), "--benchmark_format=json", "--benchmark_min_time=0.05"]))
    found = {f"{line['name']}: {line['time_unit']}": (line["cpu_time"], False) for line in report["benchmarks"]
             if "_boost<" not in line["name"]}
    if not found:
        raise ValueError("it printed no measure")
    return found


def run_engine_bench(program):
    """CPU time of Caftan's engine over each graph, and time and memory of recording a message."""
    found = {}
    for line in output_of([str(program)]).splitlines():
        graph = re.match(r"(.+?)\s+\d+ nodes\s.*\scaftan\s+([\d.]+) us", line)
        if graph:
            found[f"{graph[1]}: us"] = (float(graph[2]), False)
        if line.startswith("recording"):
            for what, ns, size in re.findall(r"(send|receive) ([\d.]+) ns ([\d.]+) B", line):
                found[f"recording, {what}: ns"] = (float(ns), False)
                found[f"recording, {what}: B"] = (float(size), False)
    if not found:
        raise ValueError("it printed no measure")
    return found


WHOLE = {"archive_bench": run_archive_bench, "engine_bench": run_engine_bench}
PROGRAMS = ("archive_bench", "autograd", "engine_bench", "report")


def print_verdicts(comparison):
    """Prints the table; returns the names of the measures that were lost."""
    rows, lost = [], []
    for measure, ratios in sorted(comparison.ratios.items()):
        judged = judge(ratios)
        if judged is None:
            rows.append([measure, "-", "-", f"{len(ratios)} turns are too few"])
            continue
        middle, low, high, says = judged
        rows.append([measure, f"{middle:.3f}", f"{low:.3f} - {high:.3f}", says])
        if says == "lost":
            lost.append(measure)
    print_table(["cost of a measure, today / before", "median", "95 % interval", "verdict"], rows)
    counts = {says: sum(row[3] == says for row in rows) for says in ("lost", "won", "same", "needs more turns")}
    print(", ".join(f"{count} {says}" for says, count in counts.items()))
    return lost


def print_gaps(comparison):
    (before, _), (today, _) = comparison.options.versions
    old, new = comparison.seen
    for measure in sorted(old - new):
        print(f"only {before} has: {measure}")
    for measure in sorted(new - old):
        print(f"only {today} has: {measure}")
    for measure in sorted(comparison.unplanned):
        print(f"not compared, as against.py does not know it: {measure}")
    for side, why in comparison.failures.items():
        print(f"failed: {side}: {why}")


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="caftan bench --against COMMIT", description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--today", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--commit", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("name", nargs="?", choices=PROGRAMS, help="one program; without it, all of them")
    parser.add_argument("--turns", type=int, default=15, help="pairs of each measure, at least 6 (15)")
    parser.add_argument("--only", metavar="TEXT", help="measures with this text in their name")
    options = parser.parse_args(arguments)
    if options.turns < FEWEST_TURNS:
        parser.error(f"--turns must be at least {FEWEST_TURNS}: fewer pairs have no 95 % interval")
    options.programs = [options.name] if options.name else PROGRAMS
    options.versions = ((options.commit, options.before), ("today", options.today))
    return options


def main(arguments):
    options = parse_options(arguments)
    if options.parse_only:
        return 0
    print(describe_machine())
    print(f"\n## Today against {options.commit}: {options.turns} turns\n", flush=True)
    comparison = Comparison(options)
    stopped = False
    try:
        comparison.run()
    except KeyboardInterrupt:
        stopped = True
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    lost = print_verdicts(comparison)
    print_gaps(comparison)
    if stopped:
        print("stopped; this is what was measured until then")
        return 130
    if not comparison.ratios:
        print("nothing was measured of both")
    return 1 if lost or comparison.failures or not comparison.ratios else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
