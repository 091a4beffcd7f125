"""Refuses a std::mutex where caftan::Mutex belongs, and a build that does not check which mutex guards what.

clang refuses each access to a member without the mutex that guards it, as caftan/base/mutex.hpp says: -Wthread-safety is among
the flags of the presets that use clang (libs/cmake/CaftanLibrary.cmake). A std::mutex, which clang does not check, stands
with its reason in UNCHECKED.

usage: thread_safety.py BUILD_FOLDER ROOT | --self-test
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tree

# Where a std::mutex stays, and why.
UNCHECKED = {
    "libs/base/include/caftan/base/mutex.hpp": "it is what Mutex holds",
    "libs/transport/include/caftan/transport/stepped_executor.hpp": "runners pass the lock on with the baton",
    "libs/transport/src/channels/socket/socket_endpoint.cpp": "HandshakeIo: the function that ends it releases the lock",
}
ANALYSIS = ["-Wthread-safety", "-Werror=thread-safety"]
STD_MUTEX = re.compile(r"^[^/\n]*\bstd::(?:recursive_|shared_|timed_)?mutex\b", re.M)


def mutexes(root):
    """Returns what is wrong with the mutexes of the sources."""
    unchecked, names = set(), set()
    for path in tree.files(root, "libs", "actors", "apps"):
        name = path.relative_to(root).as_posix()
        names.add(name)
        if STD_MUTEX.search(path.read_text()):
            unchecked.add(name)
    errors = [f"{name}: a std::mutex; take caftan::Mutex, or say why (UNCHECKED in tests/lint/thread_safety.py)"
              for name in sorted(unchecked - set(UNCHECKED))]
    errors += [f"{name}: has no std::mutex, but stands in UNCHECKED (tests/lint/thread_safety.py)"
               for name in UNCHECKED if name not in unchecked and name in names]
    return errors


def unanalysed(commands):
    """Returns which sources of libs, actors and apps a build compiles without the analysis.
    @param commands  [(source from the root, command)]"""
    ours = [(source, command) for source, command in commands if source.startswith(("libs/", "actors/", "apps/"))]
    if not ours:
        return ["compile_commands.json names no source of libs, actors and apps"]
    return [f"{source}: compiled without {ANALYSIS[1]}" for source, command in ours if ANALYSIS[1] not in command.split()]


def check(build, root):
    entries = json.loads((build / "compile_commands.json").read_text())
    if not any("clang" in pathlib.Path(word).name for word in entries[0]["command"].split()[:2]):
        print("not checked: a build without clang (preset ci has it)")
        raise SystemExit(77)
    commands = []
    for entry in entries:
        if "_verify_interface_header_sets" in entry["file"]:
            continue  # headers alone, which soak/headers compiles
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        for base in (build, root):
            if source.is_relative_to(base):
                commands.append((source.relative_to(base).as_posix(), entry["command"]))
                break
    return mutexes(root) + unanalysed(commands)


GOOD = """#include <condition_variable>
#include "caftan/base/mutex.hpp"
namespace caftan::base {
class Counter {
 public:
  void add() {
    const LockGuard lock(mutex_);
    count_locked();
  }
  void wait() {
    UniqueLock lock(mutex_);
    changed_.wait(lock.native(), [this] {
      mutex_.assert_held();
      return count_ > 0;
    });
    lock.unlock();
    lock.lock();
    --count_;
  }
  int get() const CAFTAN_EXCLUDES(mutex_) {
    const LockGuard lock(mutex_);
    return count_;
  }

 private:
  void count_locked() CAFTAN_REQUIRES(mutex_) { ++count_; }
  mutable Mutex mutex_;
  std::condition_variable changed_;
  int count_ CAFTAN_GUARDED_BY(mutex_) = 0;
};
}  // namespace caftan::base
"""
BAD = {
    "requires holding mutex 'mutex_'": ("    --count_;", "    lock.unlock();\n    --count_;"),
    "calling function 'count_locked' requires": ("    const LockGuard lock(mutex_);\n    count_locked", "    count_locked"),
    "reading variable 'count_' requires": ("      mutex_.assert_held();\n", ""),
    "is still held at the end": ("    const LockGuard lock(mutex_);\n    count_locked();", "    mutex_.lock();\n    count_locked();"),
    "while mutex 'mutex_' is held": ("    count_locked();\n", "    count_locked();\n    get();\n"),
}


def analyse(text, include):
    """Returns what clang says of a source; nothing = all is well."""
    done = subprocess.run(["clang++", "-fsyntax-only", *ANALYSIS, include, "-std=gnu++20", "-x", "c++", "-"], input=text,
                          capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or f"clang ended with {done.returncode}"


def self_test():
    include = f"-I{pathlib.Path(__file__).resolve().parents[2] / 'libs/base/include'}"
    errors = [f"refuses good code: {problem}"] if (problem := analyse(GOOD, include)) else []
    for expected, (old, new) in BAD.items():
        assert old in GOOD, old
        if expected not in (got := analyse(GOOD.replace(old, new, 1), include)):
            errors.append(f"does not say '{expected}', says '{got}'")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "libs/a/src/a.cpp"
        source.parent.mkdir(parents=True)
        source.write_text("// std::mutex\nstd::lock_guard<int> guard;\n")
        if problem := mutexes(pathlib.Path(folder)):
            errors.append(f"refuses a file without a std::mutex: {problem}")
        source.write_text("std::mutex mutex;\n")
        if "take caftan::Mutex" not in str(mutexes(pathlib.Path(folder))):
            errors.append("accepts a std::mutex")
    checked = f"clang++ {' '.join(ANALYSIS)} -c a.cpp"
    if problem := unanalysed([("libs/a.cpp", checked), ("tests/a.cpp", "clang++ -c a.cpp")]):
        errors.append(f"refuses a build that checks: {problem}")
    if "libs/a.cpp: compiled without" not in str(unanalysed([("libs/a.cpp", "clang++ -c a.cpp")])):
        errors.append("accepts a source that is compiled without the analysis")
    if not unanalysed([]):
        errors.append("accepts a build of nothing")
    return errors


if __name__ == "__main__":
    if not shutil.which("clang++"):
        tree.report(["there is no clang++ (libs/cmake/packages-test.txt)"])
    if sys.argv[1:] == ["--self-test"]:
        tree.report(self_test())
    tree.report(check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
