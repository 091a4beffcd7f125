"""Compiles, with clang's thread safety analysis, the sources whose mutexes are annotated (caftan/base/mutex.hpp), and refuses
each access to a guarded member without its mutex.

A source is compiled if it, or the header of the same name, includes mutex.hpp; so is one source for each other header that
includes it. A std::mutex, which clang does not check, stands with its reason in UNCHECKED. The flags are those of
compile_commands.json that find headers; the analysis builds nothing. Sources of one library are compiled as one unit, whose
headers are read once: most of the time is theirs.

usage: thread_safety.py BUILD_FOLDER ROOT | --self-test
"""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

import tree

HEADER = "caftan/base/mutex.hpp"
# Templates are analysed where they are instantiated, headers without a source where they are included: {header: source}.
CHECKED_IN = {
    "libs/base/include/caftan/base/internal/repeated_lines.hpp": "actors/src/worker/worker_log.cpp",
    "actors/src/worker/peer_state.hpp": "actors/src/worker/peers.cpp",
    "libs/net/include/caftan/net/internal/request_table.hpp": "tests/unit/net/request_table_test.cpp",
    "libs/rpc/include/caftan/rpc/future_state.hpp": "tests/unit/rpc/future_test.cpp",
    "libs/rpc/include/caftan/rpc/call_state.hpp": "tests/unit/rpc/call_test.cpp",
    "libs/nn/src/shared/trainer_rates.hpp": "libs/nn/src/shared/trainer.cpp",
}
# Where a std::mutex stays, and why.
UNCHECKED = {
    "libs/base/include/caftan/base/mutex.hpp": "it is what Mutex holds",
    "libs/transport/include/caftan/transport/stepped_executor.hpp": "runners pass the lock on with the baton",
    "libs/transport/src/channels/socket/socket_endpoint.cpp": "HandshakeIo: the function that ends it releases the lock",
}
# Sources that a build leaves out where a package is missing: {source: package}.
BUILT_WITH = {"libs/collectives/src/gloo_group.cpp": "libgloo-dev"}
ANALYSIS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
STD_MUTEX = re.compile(r"^[^/\n]*\bstd::(?:recursive_|shared_|timed_)?mutex\b", re.M)
INCLUDES = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def included(path):
    return INCLUDES.findall(path.read_text())


def included_as(path):
    """Returns the name by which others include a header. @param path  from the root"""
    name = path.as_posix()
    return re.split(r"/include/|/src/|^apps/", name)[-1]


def sources(root):
    """Returns the names of the sources to compile, and what is wrong with the choice."""
    headers, chosen, includes, unchecked = [], set(), {}, set()
    for path in tree.files(root, "libs", "actors", "apps"):
        name = path.relative_to(root)
        includes[name] = included(path)
        if STD_MUTEX.search(path.read_text()):
            unchecked.add(name.as_posix())
        if HEADER not in includes[name] or name.as_posix().endswith(HEADER):
            continue
        if path.suffix == ".hpp":
            headers.append(name)
        else:
            chosen.add(name.as_posix())
    errors = [f"{name}: a std::mutex; take caftan::Mutex, or say why (UNCHECKED in tests/lint/thread_safety.py)"
              for name in sorted(unchecked - set(UNCHECKED))]
    errors += [f"{name}: has no std::mutex, but stands in UNCHECKED (tests/lint/thread_safety.py)"
               for name in UNCHECKED if name not in unchecked and (root / name).is_file()]
    for header in headers:
        said = included_as(header)
        users = [name for name, of in includes.items()
                 if name.suffix == ".cpp" and (said in of or header.name in of and header.parent == name.parent)]
        own = [name for name in users if name.stem == header.stem]
        other = CHECKED_IN.get(header.as_posix())
        chosen.update(name.as_posix() for name in own or users[:1])
        if other:
            chosen.add(other)
        elif not users:
            errors.append(f"{header}: no source includes it, so its locks are not checked (CHECKED_IN in "
                          "tests/lint/thread_safety.py)")
    return sorted(chosen), errors


def flags(words):
    """Returns what a compiler's command says of where headers are and what they see."""
    kept, words = [], iter(words)
    for word in words:
        if word in ("-I", "-isystem", "-D"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-isystem", "-D", "-std=")):
            kept.append(word)
    return kept


def analyse(sources_of_unit, options, folder):
    """Returns what clang says of sources, compiled as one unit; nothing = all is well."""
    unit = "".join(f'#include "{source}"\n' for source in sources_of_unit)
    done = subprocess.run(["clang++", *options, *ANALYSIS, "-x", "c++", "-"], input=unit, cwd=folder, capture_output=True,
                          text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if re.search(r"(error|fatal): ", line)]
    return "\n".join(lines[:10]) or f"{sources_of_unit[0]}: clang ended with {done.returncode}: {done.stderr[-400:]}"


def units_of(chosen, commands, root):
    """Returns {(flags, folder): the sources to compile with these}, and which sources cannot be compiled."""
    units, errors = {}, []
    for name in chosen:
        entry = commands.get(str((root / name).resolve()))
        if entry is not None:
            key = (tuple(flags(shlex.split(entry["command"]))), entry["directory"])
            units.setdefault(key, []).append(str(root / name))
        elif name in BUILT_WITH:
            print(f"not checked, since there is no {BUILT_WITH[name]}: {name}")
        else:
            errors.append(f"{name}: not in compile_commands.json, so its locks are not checked")
    return units, errors


def check(build, root):
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = pathlib.Path(entry["directory"], entry["file"])
        for source in tree.sources_of(unit):
            commands[str(source.resolve())] = entry
    chosen, errors = sources(root)
    units, uncompiled = units_of(chosen, commands, root)
    errors += uncompiled
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors += filter(None, pool.map(lambda unit: analyse(unit[1], *unit[0]), units.items()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(chosen)} sources in {len(units)} units, {used.ru_utime + used.ru_stime:.0f} CPU s")
    return errors


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


def self_test():
    include = f"-I{pathlib.Path(__file__).resolve().parents[2] / 'libs/base/include'}"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "a.cpp"

        def said(text):
            source.write_text(text)
            other = pathlib.Path(folder) / "b.cpp"
            other.write_text('#include "caftan/base/mutex.hpp"\n')
            return analyse([str(other), str(source)], [include, "-std=gnu++20"], folder)

        errors = [f"refuses good code: {problem}"] if (problem := said(GOOD)) else []
        for expected, (old, new) in BAD.items():
            assert old in GOOD, old
            if expected not in (got := said(GOOD.replace(old, new, 1))):
                errors.append(f"does not say '{expected}', says '{got}'")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "libs/a/src/a.cpp"
        source.parent.mkdir(parents=True)
        source.write_text("// std::mutex\nstd::lock_guard<int> guard;\n")
        if sources(pathlib.Path(folder)) != ([], []):
            errors.append(f"refuses a file without a std::mutex: {sources(pathlib.Path(folder))}")
        source.write_text("std::mutex mutex;\n")
        if "take caftan::Mutex" not in str(sources(pathlib.Path(folder))[1]):
            errors.append("accepts a std::mutex")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("apps/a/log.hpp", "libs/a/include/caftan/a/table.hpp", "libs/a/src/room/list.hpp"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f'#include "{HEADER}"\n')
        if len(sources(root)[1]) != 3:
            errors.append(f"accepts headers that no source includes: {sources(root)}")
        users = {"apps/a/log.cpp": "a/log.hpp", "libs/a/src/room/list.cpp": "list.hpp",
                 "libs/a/src/user.cpp": "caftan/a/table.hpp"}
        for name, header in users.items():
            (root / name).write_text(f'#include "{header}"\n')
        if sources(root) != (sorted(users), []):
            errors.append(f"does not find the sources of headers: {sources(root)}")
        commands = {str((root / name).resolve()): {"command": f"c++ -I{name[0]} -c x.cpp", "directory": "/"} for name in users}
        gloo = next(iter(BUILT_WITH))
        units, uncompiled = units_of([*sorted(users), gloo, "libs/a/src/new.cpp"], commands, root)
        if [len(unit) for unit in units.values()] != [1, 2]:
            errors.append(f"does not compile the sources of a library together: {units}")
        if len(uncompiled) != 1 or "libs/a/src/new.cpp: not in compile_commands.json" not in uncompiled[0]:
            errors.append(f"does not say which source it cannot compile: {uncompiled}")
    if flags(shlex.split("c++ -DA=1 -Ib -isystem c -include d.hpp -O2 -Wall -std=gnu++20 -o e.o -c e.cpp")) != [
            "-DA=1", "-Ib", "-isystem", "c", "-std=gnu++20"]:
        errors.append("keeps other flags")
    return errors


if __name__ == "__main__":
    if not shutil.which("clang++"):
        tree.report(["there is no clang++ (libs/cmake/packages-test.txt)"])
    if sys.argv[1:] == ["--self-test"]:
        tree.report(self_test())
    tree.report(check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()))
