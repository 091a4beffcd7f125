"""Refuses a build that has become too slow for two cores, from ninja's log of a finished build.

usage: build_cost.py BUILD_FOLDER | --self-test

The log has elapsed times, which a slow machine and other work on it inflate. So when something looks too slow, the slowest
files are compiled again (without ccache, into nothing) for their CPU time, and beside them torch/torch.h alone: all is given
in seconds of a machine that needs YARDSTICK for it. Only a file that was compiled again is refused.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import tree

YARDSTICK = 18.0  # CPU seconds that torch/torch.h takes where the limits below were set
FILE_LIMIT = 23.0  # CPU seconds
FURTHER_LIMIT = 8.0  # for each further source that a unity build compiles in the same unit
# What may be slower, and why.
SLOW = {"tests/bench/reference_agent.cpp": "PyTorch's own RPC agent comes whole or not at all"}
# name: (folders, CPU seconds); minutes on two cores = CPU seconds / 120. A user builds all applications in 12 minutes and a
# half at most, a contributor everything in 28.
GROUPS = {
    "what ./caftan run builds": (("libs/", "actors/", "apps/"), 1500.0),
    "everything": (("libs/", "actors/", "apps/", "tests/"), 3360.0),
}
SAMPLES = 2
SEES_TORCH = ("libs/tensor/", "actors/")  # a file there can be compiled with torch/torch.h in its place


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


def described(build, output):
    """Returns the source of an object file; for a unit, the folder and the names of its sources."""
    sources = tree.sources_of(build / output[:-len(".o")])
    if "/Unity/" not in output:
        return source_of(output)
    return source_of(output).split("Unity/")[0] + " " + ", ".join(path.name for path in sources)


def limit_of(build, output):
    """Returns the CPU seconds that a unit may cost, by the number of its sources."""
    return FILE_LIMIT + FURTHER_LIMIT * (len(tree.sources_of(build / output[:-len(".o")])) - 1)


def cpu_seconds(build, output, source=None):
    """Compiles one file again, or `source` as it is compiled, and returns the CPU time; None if its command is unknown."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        words = shlex.split(entry["command"])
        if "-o" not in words or words[words.index("-o") + 1] != output:
            continue
        words[words.index("-o") + 1] = os.devnull
        if source is not None:
            words[words.index("-c") + 1] = source
        if "ccache" in words[0]:
            words = words[1:]
        compiler = subprocess.Popen(words, cwd=entry["directory"])
        _, status, used = os.wait4(compiler.pid, 0)
        compiler.returncode = os.waitstatus_to_exitcode(status)
        if compiler.returncode != 0:
            raise subprocess.CalledProcessError(compiler.returncode, words)
        return used.ru_utime + used.ru_stime
    return None


def yardstick(build, output, measure):
    """Returns the CPU seconds of torch/torch.h, compiled as `output` is."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "yardstick.cpp"
        source.write_text("#include <torch/torch.h>\n")
        return measure(build, output, str(source))


def measured_again(build, times, measure):
    """Returns {object file: CPU seconds} of the slowest files, converted to a machine that takes YARDSTICK. Two compilations
    run at a time, so that the yardstick has a neighbour, too."""
    slowest = sorted(times, key=times.get)[-SAMPLES:]
    like = next((output for output in times if output.startswith(SEES_TORCH)), slowest[0])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        torch = pool.submit(yardstick, build, like, measure)
        again = {output: pool.submit(measure, build, output) for output in slowest}
        seconds = {output: value.result() for output, value in again.items() if value.result() is not None}
        if not seconds:
            return {output: times[output] for output in slowest}
        speed = YARDSTICK / torch.result()
    return {output: value * speed for output, value in seconds.items()}


def check(build, measure=cpu_seconds):
    times = read_log(build)
    totals = {group: sum(seconds for output, seconds in times.items() if output.startswith(folders))
              for group, (folders, _) in GROUPS.items()}
    timed = {output: seconds for output, seconds in times.items() if source_of(output) not in SLOW}
    scale, measured = 1.0, {}
    if (any(seconds > limit_of(build, output) for output, seconds in timed.items())
            or any(totals[group] > limit for group, (_, limit) in GROUPS.items())):
        measured = measured_again(build, timed, measure)
        scale = min(1.0, sum(measured.values()) / sum(times[output] for output in measured))

    errors = [f"{described(build, output)}: {seconds:.1f} CPU s to compile, the limit is {limit_of(build, output):.0f} (where "
              f"torch/torch.h takes {YARDSTICK:.0f})" for output, seconds in sorted(measured.items())
              if seconds > limit_of(build, output)]
    for group, (folders, limit) in GROUPS.items():
        files = sum(output.startswith(folders) for output in times)
        print(f"{group}: {files} files, {totals[group] * scale:.0f} CPU s ({totals[group]:.0f} s elapsed)")
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
            if "/Unity/" in output:
                (build / output[:-len(".o")]).write_text('#include "/a.cpp"\n#include "/b.cpp"\n')
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

    def torch_is_found(_, output, source=None):
        if source and not output.startswith(SEES_TORCH):
            raise FileNotFoundError("torch/torch.h")
        return YARDSTICK if source else 24.0

    def costing(seconds, torch=YARDSTICK):
        return lambda _, output, source=None: torch if source else seconds

    unit = {"libs/a/CMakeFiles/a.dir/Unity/unity_0_cxx.cxx.o": 40.0}
    one = {"libs/a/CMakeFiles/a.dir/src/a.cpp.o": 25.0}
    base = {"libs/base/CMakeFiles/a.dir/src/a.cpp.o": 25.0}
    many = {f"tests/unit/CMakeFiles/t.dir/t{i}.cpp.o": 19.0 for i in range(200)}
    bench = {"tests/bench/CMakeFiles/r.dir/reference_agent.cpp.o": 50.0}
    return [*expect("slow file", one, costing(24.0), "libs/a/src/a.cpp: 24.0 CPU s"),
            *expect("slow file that does not see libtorch", {**base, "actors/CMakeFiles/a.dir/a.cpp.o": 1.0}, torch_is_found,
                    "libs/base/src/a.cpp: 24.0 CPU s"),
            *expect("slow unit of two files", unit, costing(32.0), "libs/a/ a.cpp, b.cpp: 32.0 CPU s to compile, the limit is 31"),
            *expect("unit of two files", unit, costing(30.0), None),
            *expect("slow machine", one, costing(24.0, torch=20.0), None),
            *expect("busy machine", one, costing(5.0), None),
            *expect("unknown command", one, lambda *_: None, "25.0 CPU s"),
            *expect("listed", bench, costing(50.0), None),
            *expect("sum", many, costing(18.0), "everything: 3600 CPU s"),
            *expect("sum on a slow machine", many, costing(18.0, torch=25.0), None),
            *expect("sum on a busy machine", many, costing(3.0), None)]


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
