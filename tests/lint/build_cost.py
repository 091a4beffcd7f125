"""Refuses a build that has become too slow for two cores, from ninja's log of a finished build.

usage: build_cost.py BUILD_FOLDER | --self-test

The log has elapsed times, which other work on the machine inflates. So when something looks too slow, the slowest files
are compiled again (without ccache, into nothing) for their CPU time, and all times are scaled by what they show.
"""
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

FILE_LIMIT = 23.0  # CPU seconds
# What may be slower, and why.
SLOW = {"tests/bench/reference_agent.cpp": "PyTorch's own RPC agent comes whole or not at all"}
# name: (folders, files, CPU seconds); minutes on two cores = CPU seconds / 120
GROUPS = {
    "what ./caftan run builds": (("libs/", "actors/", "apps/"), 190, 1200.0),
    "everything": (("libs/", "actors/", "apps/", "tests/"), 410, 2600.0),
}
SAMPLES = 5


def read_log(build):
    """Returns {object file: elapsed seconds of its last compilation} for the objects that are there and still made."""
    times = {}
    made = build / "compile_commands.json"
    made = made.read_text() if made.is_file() else None
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if "_verify_interface_header_sets.dir" in output:
            continue  # headers alone, which soak/headers compiles
        if made is not None and output not in made:
            continue  # its source is gone, the object stayed
        if output.endswith(".o") and (build / output).is_file():
            times[output] = (int(end) - int(start)) / 1000
    return times


def source_of(output):
    return re.sub(r"CMakeFiles/[^/]*\.dir/", "", output)[:-len(".o")]


def cpu_seconds(build, output):
    """Compiles one file again and returns its CPU time; None if its command is unknown."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        words = shlex.split(entry["command"])
        if "-o" not in words or words[words.index("-o") + 1] != output:
            continue
        words[words.index("-o") + 1] = os.devnull
        if "ccache" in words[0]:
            words = words[1:]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=entry["directory"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return None


def check(build, measure=cpu_seconds):
    times = read_log(build)
    slow = [output for output, seconds in times.items() if seconds > FILE_LIMIT and source_of(output) not in SLOW]
    totals = {group: sum(seconds for output, seconds in times.items() if output.startswith(folders))
              for group, (folders, _, _) in GROUPS.items()}
    scale, measured = 1.0, {}
    if slow or any(totals[group] > GROUPS[group][2] for group in GROUPS):
        for output in sorted(times, key=times.get)[-SAMPLES:]:
            seconds = measure(build, output)
            measured[output] = times[output] if seconds is None else min(seconds, times[output])
        scale = sum(measured.values()) / sum(times[output] for output in measured)

    errors = []
    for output in sorted(slow):
        seconds = measured.get(output, times[output] * scale)
        if seconds > FILE_LIMIT:
            errors.append(f"{source_of(output)}: {seconds:.1f} CPU s to compile, the limit is {FILE_LIMIT:.0f}")
    for group, (folders, most_files, limit) in GROUPS.items():
        files = sum(output.startswith(folders) for output in times)
        print(f"{group}: {files} files, {totals[group] * scale:.0f} CPU s ({totals[group]:.0f} s elapsed)")
        if files > most_files:
            errors.append(f"{group}: {files} files, the limit is {most_files}")
        if totals[group] * scale > limit:
            errors.append(f"{group}: {totals[group] * scale:.0f} CPU s, the limit is {limit:.0f}")
    return errors


def self_test():
    def tree_of(entries):
        folder = tempfile.TemporaryDirectory()
        build = pathlib.Path(folder.name)
        lines = ["# ninja log v5"]
        for output, seconds in entries.items():
            (build / output).parent.mkdir(parents=True, exist_ok=True)
            (build / output).touch()
            lines.append(f"0\t{int(seconds * 1000)}\t0\t{output}\tabc")
        lines.append("0\t90000\t0\tlibs/gone/CMakeFiles/g.dir/src/gone.cpp.o\tabc")
        (build / "libs/stale.cpp.o").parent.mkdir(parents=True, exist_ok=True)
        (build / "libs/stale.cpp.o").touch()
        lines.append("0\t90000\t0\tlibs/stale.cpp.o\tabc")
        (build / "compile_commands.json").write_text(json.dumps([{"output": output} for output in entries]))
        (build / ".ninja_log").write_text("\n".join(lines) + "\n")
        return folder, build

    def expect(name, entries, measure, words):
        folder, build = tree_of(entries)
        with folder:
            errors = check(build, measure)
        wrong = bool(errors) if words is None else not any(words in error for error in errors)
        return [f"{name}: {errors}"] if wrong else []

    one = {"libs/a/CMakeFiles/a.dir/src/a.cpp.o": 25.0}
    many = {f"tests/unit/CMakeFiles/t.dir/t{i}.cpp.o": 19.0 for i in range(160)}
    few = {f"libs/a/CMakeFiles/a.dir/a{i}.cpp.o": 0.1 for i in range(191)}
    bench = {"tests/bench/CMakeFiles/r.dir/reference_agent.cpp.o": 50.0}
    return [*expect("slow file", one, lambda *_: 24.0, "libs/a/src/a.cpp: 24.0 CPU s"),
            *expect("busy machine", one, lambda *_: 5.0, None),
            *expect("unknown command", one, lambda *_: None, "25.0 CPU s"),
            *expect("listed", bench, lambda *_: 50.0, None),
            *expect("sum", many, lambda *_: 18.0, "everything: 2880 CPU s"),
            *expect("sum on a busy machine", many, lambda *_: 3.0, None),
            *expect("number of files", few, lambda *_: 0.1, "191 files")]


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        for problem in (problems := self_test()):
            print(problem)
        sys.exit(1 if problems else 0)
    if not (pathlib.Path(sys.argv[1]) / ".ninja_log").is_file():
        print("skipped: not built with ninja")
        sys.exit(77)
    tree_errors = check(pathlib.Path(sys.argv[1]))
    for error in tree_errors:
        print(error)
    sys.exit(1 if tree_errors else 0)
