"""Refuses pages of docs/guide whose code is not a piece of a program that the tests build and run, that are too long, or
that the index does not name.

usage: guide_code.py ROOT | --self-test
"""
import pathlib
import re
import sys

import tree

PAGES, INDEX, PROGRAMS = "docs/guide", "README.md", "tests/guide"
LINES = 150
# Of a page, the blocks in these languages are code of a program; commands and what they print are in others.
LANGUAGES = "cpp|cmake|toml"
BLOCK = re.compile(rf"^```({LANGUAGES})\n(.*?)^```$", re.S | re.M)


def check(root):
    programs = ["\n" + path.read_text()
                for path in tree.files(root, PROGRAMS, suffixes=(*tree.CODE, ".txt", ".cmake", ".toml"))]
    index = root / PAGES / INDEX
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", index.read_text())) if index.is_file() else set()
    errors = []
    for page in sorted((root / PAGES).glob("*.md")):
        name, text = f"{PAGES}/{page.name}", page.read_text()
        if len(text.splitlines()) > LINES:
            errors.append(f"{name}: {len(text.splitlines())} lines, at most {LINES}: make two pages of it")
        if page.name != INDEX and page.name not in named:
            errors.append(f"{name}: {PAGES}/{INDEX} does not name it")
        for match in BLOCK.finditer(text):
            language, block = match.groups()
            if not any("\n" + block in program for program in programs):
                line = text.count("\n", 0, match.start()) + 1
                errors.append(f"{name}:{line}: this {language} block is in no file of {PROGRAMS}, line for line: "
                              f"{block.splitlines()[0] if block else 'it is empty'}")
    return errors


GOOD = {
    "docs/guide/README.md": "[a](a.md)\n",
    "docs/guide/a.md": "Look:\n\n```cpp\nint b;\n```\n\n```cmake\nproject(a CXX)\n```\n\n```sh\n./a\n```\n",
    "tests/guide/a/main.cpp": "int a;\nint b;\nint c;\n",
    "tests/guide/a/CMakeLists.txt": "project(a CXX)\n",
}
BAD = {
    "docs/guide/a.md:3: this cpp block": {"tests/guide/a/main.cpp": "int a;\nint c;\n"},
    "a.md:3: this cpp block is in no file of tests/guide, line for line: int b;": {"tests/guide/a/main.cpp": "  int b;\n"},
    "this cmake block": {"tests/guide/a/CMakeLists.txt": "project(b CXX)\n"},
    "this toml block": {"docs/guide/a.md": "```toml\ncaftan = 1\n```\n"},
    "docs/guide/b.md: docs/guide/README.md does not name it": {"docs/guide/b.md": "b\n"},
    "docs/guide/a.md: 151 lines": {"docs/guide/a.md": "a\n" * 151},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
