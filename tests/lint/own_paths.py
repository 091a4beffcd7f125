"""Refuses paths of one machine, and files that a build or an editor left in the tree.

usage: own_paths.py ROOT | --self-test
"""
import os
import pathlib
import re
import sys

import tree

# In pieces, so that this file passes its own check.
PLACES = re.compile(r"(?<![\w.$}/])/(?:%s)/[\w.]" % "|".join(["ho" + "me", "ro" + "ot", "wo" + "rk", "Us" + "ers", "mnt"]))
LEFT_OVER = re.compile(r"(\.(o|a|so|orig|rej|swp|pyc|whl)|~|core(\.\d+)?)$")
IGNORED = {".git", ".deps", "build", "runs", "__pycache__"}


def check(root):
    errors = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        for name in sorted(names):
            path = pathlib.Path(folder) / name
            shown = path.relative_to(root).as_posix()
            if name in IGNORED:
                continue  # a worktree's .git is a file
            if LEFT_OVER.search(name):
                errors.append(f"{shown}: not a source")
                continue
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                continue  # data: a corpus, a checkpoint of an old version
            for number, line in enumerate(text.splitlines(), 1):
                if PLACES.search(line):
                    errors.append(f"{shown}:{number}: a path of one machine: {line.strip()[:80]}")
    return errors


GOOD = {"libs/a.cpp": "// see /usr/include, ${HOME}/x and https://example.org/work/home/a\n", "build/x.o": "\n"}
BAD = {
    "a path of one machine": {"docs/a.md": "cd /" + "home/me/caftan\n"},
    "configs/a.toml:1": {"configs/a.toml": 'data = "/' + 'root/data"\n'},
    "libs/a.o: not a source": {"libs/a.o": "\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
