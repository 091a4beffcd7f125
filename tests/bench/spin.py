"""Compares waiting without sleep (`cluster.spin = "auto"`) with `"off"` over rings, and what busy neighbours lose by it.

    spin.py --bin build/bench/tests/bench              quiet, then beside two busy loops at nice 0 and at nice 19
    spin.py --bin build/bench/tests/bench --turns 20   more turns of each, for narrower intervals

In each turn `auto`, `off` and a raw Unix socket make the same calls, one side after the other; which is first alternates. A turn
belongs to the machine's mood: a futex between two cores wakes a sleeping thread in less than 12 us (good) or not (bad). A
ratio is the median of auto / off over the turns, with its 95 % interval (paired.py).
"""

import argparse
import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bells import MOOD_US
from paired import judge, ratio
from report import PAUSES, describe_machine, number, print_table
from sides import Side

AUTO, OFF, RAW = "caftan shm", "caftan shm off", "raw unix"
NEIGHBOURS = {"quiet": None, "beside two busy loops at nice 0": 0, "beside two busy loops at nice 19": 19}


class CountingLoops:
    """Busy loops that count what they do; each ends by itself when this process is gone."""

    LOOP = ("import mmap, os, struct, sys, time\n"
            "place, parent, end = int(sys.argv[2]), int(sys.argv[3]), time.monotonic() + float(sys.argv[4])\n"
            "with open(sys.argv[1], 'r+b') as file: counts = mmap.mmap(file.fileno(), 0)\n"
            "done = 0\n"
            "while time.monotonic() < end and os.getppid() == parent:\n"
            "    sum(range(2000)); done += 1; struct.pack_into('q', counts, 8 * place, done)\n")

    def __init__(self, count, nice, limit_s):
        with tempfile.TemporaryFile() as file:
            file.truncate(8 * count)
            self._counts = mmap.mmap(file.fileno(), 0)
            path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            self._processes = [subprocess.Popen(
                ["nice", "-n", str(nice), sys.executable, "-c", self.LOOP, path, str(place), str(os.getpid()), str(limit_s)],
                start_new_session=True) for place in range(count)]
            self._count = count
            while 0 in self.counts():  # each has opened the file
                if any(process.poll() is not None for process in self._processes):
                    raise RuntimeError("a busy loop ended at its start")
                time.sleep(0.01)

    def counts(self):
        return struct.unpack_from(f"{self._count}q", self._counts)

    def end(self):
        for process in self._processes:
            process.terminate()
            process.wait()


def busiest_core(pid, before):
    """Returns the core on which the thread ran last that has used most CPU time since `before`, and the new times."""
    times, cores = {}, {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rsplit(") ", 1)[1].split()
        times[task.name] = int(fields[11]) + int(fields[12])
        cores[task.name] = int(fields[36])
    return cores[max(times, key=lambda task: times[task] - before.get(task, 0))], times


class Caftan:
    """A side of ours, with the cores that its caller and its peer were seen on."""

    def __init__(self, folder, name):
        self.side = Side(name, [str(folder / "caftan_bench"), *name.split()[1:]])
        self.side.start()
        self._times = {}

    def ask(self, request, loops):
        begin = time.monotonic()
        counted = sum(loops.counts()) if loops else 0
        answer = self.side.ask(request, timeout_s=30.0)
        if answer is None:
            return None
        if loops:
            answer["loops_per_s"] = (sum(loops.counts()) - counted) / (time.monotonic() - begin)
        cores = []
        for pid in self.side.pids():
            core, self._times[pid] = busiest_core(pid, self._times.get(pid, {}))
            cores.append(core)
        answer["one_core"] = float(len(set(cores)) == 1)
        return answer


def take_turn(sides, bells, request, seconds, turn, loops):
    """Returns ({name: answer}, mood), or None when a side failed."""
    answers = {}
    for name in (AUTO, OFF, RAW) if turn % 2 else (RAW, OFF, AUTO):
        side = sides[name]
        answers[name] = side.ask(request, loops) if name != RAW else side.ask(request, timeout_s=30.0)
        if answers[name] is None:
            return None
    wake = bells.ask(f"futex_apart seconds={min(seconds, 0.1)} calls=1000000", timeout_s=30.0)
    if wake is None:
        return None
    return answers, "good" if wake["p50_us"] / 2 < MOOD_US else "bad"


def compared(turns, key, more_is_better=False):
    """Returns the text of auto / off: cost of auto in units of that of off, median and interval of the turns."""
    ratios = [ratio(turn[OFF][key], turn[AUTO][key], more_is_better) for turn in turns]
    judged = judge(ratios)
    middle = number(statistics.median(ratios))
    return f"{middle} ({number(judged[1])} to {number(judged[2])})" if judged else middle


def rows_of(title, turns):
    rows = []
    for name in (AUTO, OFF, RAW):
        answers = [turn[name] for turn in turns]
        cpu = statistics.median(a["cpu_own_us"] + a["cpu_peer_us"] for a in answers)
        row = [title, name, *(number(statistics.median(a[key] for a in answers)) for key in ("p50_us", "p99_us", "mean_us")),
               number(cpu)]
        if name == RAW:
            rows.append([*row, "-", "-"])
            continue
        spins, won = (sum(a.get(key, 0) for a in answers) for key in ("spins", "spins_won"))
        rows.append([*row, f"{won / spins:.0%}" if spins else "-", f"{statistics.mean(a['one_core'] for a in answers):.0%}"])
    return rows


def print_state(state, moods):
    print(f"\n## {state}\n")
    for mood in ("good", "bad"):
        taken = {title: turns for title, turns in moods[mood].items() if turns}
        if not taken:
            print(f"The {mood} mood did not come.\n")
            continue
        print(f"### {mood} mood: {', '.join(f'{title}: {len(turns)} turns' for title, turns in taken.items())}\n")
        print_table(["echo of 4 floats, pause", "side", "p50, us", "p99, us", "mean, us", "CPU both, us", "spins won", "both on one core"],
                    [row for title, turns in taken.items() for row in rows_of(title, turns)])
        rows = []
        for title, turns in taken.items():
            loops = compared(turns, "loops_per_s", True) if "loops_per_s" in turns[0][AUTO] else "-"
            rows.append([title, *(compared(turns, key) for key in ("p50_us", "p99_us", "mean_us")), loops])
        print_table(["cost of auto / off, pause", "p50", "p99", "mean", "the loops' work"], rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one measurement")
    options = parser.parse_args()
    if options.turns < 1 or not 0.01 <= options.seconds <= 10:
        parser.error("--turns must be at least 1, --seconds 0.01 to 10")
    return options


def main():
    options = parse_options()
    print(describe_machine())
    bells = Side("raw bells", [str(options.bin / "raw_floor"), "bells"])
    raw = Side(RAW, [str(options.bin / "raw_floor"), "unix"])
    for side in (bells, raw):
        side.start()
    sides = {AUTO: Caftan(options.bin, AUTO), OFF: Caftan(options.bin, OFF), RAW: raw}
    try:
        for state, nice in NEIGHBOURS.items():
            loops = CountingLoops(2, nice, 3600) if nice is not None else None
            moods = {mood: {title: [] for title in PAUSES} for mood in ("good", "bad")}
            try:
                for turn in range(options.turns):
                    for title, keys in PAUSES.items():
                        taken = take_turn(sides, bells, f"sync{keys} seconds={options.seconds}", options.seconds, turn, loops)
                        if taken is None:
                            return 1
                        moods[taken[1]][title].append(taken[0])
            finally:
                if loops:
                    loops.end()
            print_state(state, moods)
    finally:
        for side in (bells, raw, sides[AUTO].side, sides[OFF].side):
            side.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
