"""Refuses C++ that clang-format 14 (Debian 12's) would lay out differently. Other versions differ: then it is skipped.

usage: format.py ROOT | --self-test
"""
import pathlib
import re
import shutil
import subprocess
import sys

import tree

SKIPPED = 77


def clang_format():
    """Returns the program, or ends the test as skipped."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program and re.search(r"version 14\.", subprocess.check_output([program, "--version"], text=True)):
            return program
    print("skipped: no clang-format 14 here (packages-dev.txt)")
    sys.exit(SKIPPED)


def check(root):
    found = [str(path) for path in tree.files(root, "libs", "actors", "apps", "tests")]
    if not found:
        return []
    done = subprocess.run([clang_format(), "--style=file", "--dry-run", "--ferror-limit=1", *found],
                          stderr=subprocess.PIPE, text=True, cwd=root, check=False)
    lines = [line for line in done.stderr.splitlines() if "clang-format-violations" in line]
    return [line.replace(f"{root}/", "").split(" [")[0].replace("code should be clang-formatted", "not as clang-format has it")
            for line in lines]


GOOD = {".clang-format": "BasedOnStyle: Google\n", "libs/a.cpp": "int f() { return 1; }\n"}
BAD = {"libs/b.cpp": {"libs/b.cpp": "int  f( ) {return 1;}\n"}}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1]).resolve()))
