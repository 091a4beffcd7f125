"""Refuses sleeping, wall clocks, fixed ports, and unseeded randomness in the tests that CI runs everywhere.

usage: test_habits.py ROOT | --self-test
"""
import pathlib
import re
import sys

import tree

RULES = {
    r"\bsleep_(for|until)\b|\bu?sleep\s*\(|\bnanosleep\s*\(": "sleeps: advance the clock or run until something holds",
    r"\bsystem_clock\b|\bgettimeofday\b|\btime\s*\(\s*(nullptr|NULL|0)\s*\)": "reads the wall clock",
    r"\brandom_device\b|(?<!at::)(?<!torch::)\bs?rand\s*\(": "draws without a seed",
    r'"(127\.0\.0\.1|localhost|0\.0\.0\.0|\[?::1\]?):[1-9]\d*"|\b(htons|port)\s*[({=]\s*[1-9]\d{2,4}\b':
        "uses a fixed port: ask for port 0",
    r"\bDISABLED_|\bGTEST_SKIP\s*\(\s*\)\s*;": "is switched off without a reason",
}
# Sockets that are only parsed, never opened, may name a port.
PARSES = ("unit/app/", "unit/base/", "unit/apps/")


def check(root):
    errors = []
    for path in tree.files(root / "tests", "unit", "cluster", "support", "parity", "fuzz"):
        name = path.relative_to(root / "tests").as_posix()
        for number, line in tree.code_lines(path):
            for pattern, what in RULES.items():
                if "fixed port" in what and name.startswith(PARSES):
                    continue
                if re.search(pattern, line):
                    errors.append(f"tests/{name}:{number}: {what}")
    for path in tree.files(root, "libs", "actors", "apps", "tests"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"TODO\(now\)|TODO(?!\()|FIXME|\bXXX\b", line):
                errors.append(f"{path.relative_to(root)}:{number}: a TODO has a kind and an issue: TODO(perf, #12)")
    return errors


GOOD = {
    "tests/unit/net/wheel_test.cpp": "// no sleep_for here\nclock.advance(5ms);\nlisten(\"127.0.0.1:0\");\nat::rand({4});\n",
    "tests/unit/app/file_test.cpp": 'parse("127.0.0.1:29500");\n',
    "libs/net/src/wheel.cpp": "// TODO(perf, #3): use a heap\n",
}
BAD = {
    "sleeps": {"tests/unit/net/a_test.cpp": "std::this_thread::sleep_for(1ms);\n"},
    "wall clock": {"tests/cluster/a_test.cpp": "auto t = std::chrono::system_clock::now();\n"},
    "fixed port": {"tests/cluster/b_test.cpp": 'listen("127.0.0.1:29500");\n'},
    "without a seed": {"tests/unit/a_test.cpp": "std::mt19937 g(std::random_device{}());\n"},
    "draws": {"tests/unit/b_test.cpp": "int a = std::rand();\n"},
    "switched off": {"tests/unit/rpc/a_test.cpp": "TEST(A, DISABLED_Works) {}\n"},
    "a TODO has": {"libs/net/src/a.cpp": "// TODO: later\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
