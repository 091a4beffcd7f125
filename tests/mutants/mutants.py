"""Makes the faults of mutants.toml one after the other in a copy of the tree, and shows which of them the tests notice.

    mutants.py --root ROOT --deps .deps [NAME...]

NAME is a mutant's name or a pattern of names, without one all are tried. The copy is ROOT/build/mutants, with a build of
its own; ccache gives it what the preset `ci` has compiled. A mutant costs the compilation of its file, one link and the
tests that are to notice it, up to the first that fails.

Exit code: 0 when at least 95 % were found and every survivor is declared, 1 otherwise, 2 for a wrong command line, 3 when
the sources do not build or their tests fail without any fault, 130 after Ctrl-C.
"""
import argparse
import fnmatch
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import listed

PRESET = "ci"
LEAST_FOUND = 0.95
COPIED = ("CMakeLists.txt", "CMakePresets.json", "caftan", "actors", "apps", "configs", "docs", "libs", "tests")
# Behind the preset's flags, for what a fault makes ninja compile again: what a fault leaves unused, or without its lock, is no
# error. Before ccache, so that it knows of them.
LAUNCHER = """#!/bin/sh
case ${MUTANT+set} in set) exec "$@" -g0 -Wno-error -Wno-thread-safety ;; esac
exec "$@"
"""
# A fault may hang; a machine that does other things is slow.
LEAST_LIMIT_S, TIMES_AS_SLOW = 60, 10


class Broken(Exception):
    """The tree itself is at fault."""


class Tree:
    """The copy of the sources and its build."""

    def __init__(self, root, deps):
        self.root, self.folder = root, root / "build/mutants"
        self.build_folder = self.folder / "build" / PRESET
        self.deps = deps
        self.log = self.folder / "build.log"
        self.took = {}  # seconds of each test without a fault
        self._binaries = {}

    def prepare(self):
        """Copies what has changed and configures the copy once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            self._copy(self.root / name, self.folder / name)
        link = self.folder / ".deps"
        link.unlink(missing_ok=True)
        link.symlink_to(self.deps)
        launcher = self.folder / "compile"
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)
        self.log.write_text("")
        if not (self.build_folder / "build.ninja").is_file():
            cache = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER") or shutil.which("ccache")
            self._run(["cmake", "--preset", PRESET, f"-DCAFTAN_TORCH_ROOT:PATH={link}/torch",
                       "-DCAFTAN_BUILD_PROTOCOL_TESTS=ON",
                       f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}" + (f";{cache}" if cache else "")])

    def _copy(self, source, target):
        if source.is_file():
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
                target.touch()
            return
        target.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in source.iterdir() if path.name != "__pycache__"}
        for path in target.iterdir():
            if path.name not in names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in names:
            self._copy(source / name, target / name)

    def restore(self, name):
        """Takes the fault out of a file again."""
        shutil.copyfile(self.root / name, self.folder / name)

    def _run(self, command, **variables):
        """Runs a command in the copy; raises CalledProcessError. Its output is in the log."""
        with self.log.open("a") as log:
            subprocess.run(command, cwd=self.folder, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           env={**os.environ, **variables})

    def build(self, binaries, changed=None):
        quick = {} if changed is None else {"MUTANT": changed}
        self._run(["cmake", "--build", "--preset", PRESET, "--parallel", str(os.cpu_count()), "--target", *binaries], **quick)

    def binary(self, name):
        if name not in self._binaries:
            found = [path for path in (self.build_folder / "tests").rglob(name) if path.is_file()]
            if len(found) != 1:
                raise Broken(f"the test binary {name} was not built")
            self._binaries[name] = found[0]
        return self._binaries[name]

    def passes(self, test):
        """Returns whether a test (binary, or binary:filter) passes; a crash or a hang is a failure, too."""
        name, _, tests = test.partition(":")
        limit = max(LEAST_LIMIT_S, TIMES_AS_SLOW * self.took.get(test, LEAST_LIMIT_S))
        began = time.monotonic()
        with (self.folder / "test.log").open("w") as log:
            process = subprocess.Popen(
                [str(self.binary(name)), "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={tests or '*'}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
            try:
                passed = process.wait(timeout=limit) == 0
            except subprocess.TimeoutExpired:
                passed = False
            finally:
                # Ends the test and the processes that it has started, also after Ctrl-C.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if passed and test not in self.took:
            self.took[test] = time.monotonic() - began
        return passed


def binaries_of(tests):
    return sorted({test.split(":")[0] for test in tests})


def check_without_fault(tree, tests):
    try:
        tree.build(binaries_of(tests))
    except subprocess.CalledProcessError as error:
        raise Broken(f"the sources do not build without a fault; see {tree.log}") from error
    for test in tests:
        if not tree.passes(test):
            raise Broken(f"{test} fails without a fault; see {tree.folder / 'test.log'}")


def outcome(tree, mutant):
    """Returns `found by TEST`, `survived` or `does not build`. The file stays changed."""
    path = tree.folder / mutant["file"]
    text = (tree.root / mutant["file"]).read_text()
    path.write_text(text.replace(mutant["text"], mutant["with"]))
    for test in mutant["tests"]:
        try:
            tree.build(binaries_of([test]), mutant["file"])
        except subprocess.CalledProcessError:
            return "does not build"
        if not tree.passes(test) and not tree.passes(test):  # once may be chance: a test that is late on a busy machine
            return f"found by {test}"
    return "survived"


def try_all(tree, mutants):
    """Yields (mutant, outcome, seconds), file by file."""
    changed = None
    try:
        for mutant in sorted(mutants, key=lambda mutant: (mutant["tests"][0], mutant["file"])):
            if changed not in (None, mutant["file"]):
                tree.restore(changed)
            changed = mutant["file"]
            began = time.monotonic()
            yield mutant, outcome(tree, mutant), time.monotonic() - began
    finally:
        if changed:
            tree.restore(changed)


def summary(outcomes):
    """outcomes: [(mutant, outcome)]. Returns the last lines and the exit code."""
    found = [m for m, o in outcomes if o.startswith("found")]
    survived = [m for m, o in outcomes if o == "survived"]
    broken = [m for m, o in outcomes if o == "does not build"]
    declared = [m for m in survived if "survives" in m]
    wrong = [m for m in found if "survives" in m]
    judged = len(found) + len(survived) - len(declared)
    share = len(found) / judged if judged else 1.0
    lines = [f"found {len(found)}, survived {len(survived)} ({len(declared)} declared as equivalent), "
             f"do not build {len(broken)}; {100 * share:.1f} % of those that count were found"]
    lines += [f"survived, and is not declared: {m['name']} in {m['file']}" for m in survived if m not in declared]
    lines += [f"does not build: {m['name']}" for m in broken]
    lines += [f"is declared as a survivor, but was found: {m['name']}" for m in wrong]
    return lines, 1 if share < LEAST_FOUND or len(survived) > len(declared) or broken or wrong else 0


def parse_options(arguments):
    parser = argparse.ArgumentParser(prog="caftan test --mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--deps", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("name", nargs="*", help="mutants by name or pattern; without one, all of tests/mutants/mutants.toml")
    options = parser.parse_args(arguments)
    mutants = listed.read(options.root)
    chosen = [m for m in mutants if not options.name or any(fnmatch.fnmatch(m["name"], n) for n in options.name)]
    for name in options.name:
        if not any(fnmatch.fnmatch(m["name"], name) for m in mutants):
            parser.error(f"there is no mutant '{name}' in {listed.LIST}")
    return options, chosen


def main(arguments):
    options, mutants = parse_options(arguments)
    if options.parse_only:
        return 0
    tree = Tree(options.root.resolve(), options.deps.resolve())
    outcomes = []
    try:
        tree.prepare()
        tests = list(dict.fromkeys(test for mutant in mutants for test in mutant["tests"]))
        print(f"builds and runs {len(tests)} tests without a fault; log {tree.log}", flush=True)
        check_without_fault(tree, tests)
        for mutant, result, seconds in try_all(tree, mutants):
            outcomes.append((mutant, result))
            print(f"[{len(outcomes)}/{len(mutants)}] {mutant['name']}: {result} ({seconds:.0f} s)", flush=True)
    except (Broken, subprocess.CalledProcessError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("\nstopped; this is what was tried until then")
        print(*summary(outcomes)[0], sep="\n")
        return 130
    lines, code = summary(outcomes)
    print(*lines, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
