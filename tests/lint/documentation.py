"""Refuses error codes without a page, protocol rules without a test, public headers that do not say what they offer,
libraries and rooms of actors/src without a README, and links of pages to files and headings that are not there.

usage: documentation.py ROOT | --self-test
"""
import pathlib
import re
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/site"))
import pages

ERRC = "libs/base/include/caftan/base/error.hpp"
INVARIANT = re.compile(r"^\s*(?:[-|*#]\s*)*\**([A-Z]{2})-(\d+)\b", re.M)


def error_codes(text):
    body = re.search(r"enum class Errc[^{]*\{(.*?)\};", text, re.S).group(1)
    return re.findall(r"^\s*([a-z_]+)\s*=\s*(\d+)\s*,", body, re.M)


def check_errors(root):
    codes = error_codes((root / ERRC).read_text())
    page = (root / "docs/errors.md").read_text()
    rows = dict(re.findall(r"^\|\s*(\d+)\s*\|\s*`([a-z_]+)`\s*\|", page, re.M))
    for name, number in codes:
        if rows.get(number) != name:
            yield f"docs/errors.md: no row for {name} = {number}"
    for number, name in rows.items():
        if (name, number) not in codes:
            yield f"docs/errors.md: row {number} `{name}` is not in {ERRC}"
    numbers = [number for _, number in codes]
    if len(set(numbers)) != len(numbers):
        yield f"{ERRC}: a number is used twice"


def check_protocols(root):
    tests = "\n".join(path.read_text() for path in tree.files(root / "tests", "unit", "cluster", "fault", "process",
                                                               "parity", "fuzz", "support"))
    cited = set(re.findall(r"([A-Z]{2})-?(\d+)(?![0-9])", tests))
    for page in sorted((root / "docs/protocols").glob("*.md")):
        text = page.read_text()
        for heading in ("Purpose", "Messages", "Invariants", "Not promised", "Tests"):
            if not re.search(rf"^##+ .*{heading}", text, re.M):
                yield f"docs/protocols/{page.name}: no heading '{heading}'"
        planned = set(re.findall(r"([A-Z]{2})-(\d+)[^\n]*\(planned", text))
        for prefix, number in sorted(set(INVARIANT.findall(text)) - planned, key=lambda rule: (rule[0], int(rule[1]))):
            if (prefix, number) not in cited:
                yield f"docs/protocols/{page.name}: {prefix}-{number} is in no test"


def check_files(root):
    for path in tree.files(root, "libs", "actors"):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        if "/include/" in name and not text.startswith("///"):
            yield f"{name}: a public header first says what it offers (///)"
    for library in sorted((root / "libs").iterdir()):
        if (library / "include").is_dir() and not (library / "README.md").is_file():
            yield f"libs/{library.name}: no README.md"
    for room in sorted((root / "actors/src").glob("*")):
        if room.is_dir() and not (room / "README.md").is_file():
            yield f"actors/src/{room.name}: no README.md"


def check_configuration(root):
    """The shipped files are what people learn from."""
    for path in sorted((root / "configs").glob("*.toml")):
        if not path.read_text().startswith("#"):
            yield f"configs/{path.name}: the first line says what the file runs"


def check_readme(root):
    """The README's code is that of the guide's programs, which tests build and run: last of each language counting, whole."""
    blocks = re.findall(r"^```(cpp|cmake|toml)\n(.*?)^```$", (root / "README.md").read_text(), re.S | re.M)
    programs = ["\n" + path.read_text() for path in tree.files(root, "tests/guide", suffixes=tree.CODE)]
    for language, name in (("cpp", "main.cpp"), ("cmake", "CMakeLists.txt"), ("toml", "counting.toml")):
        if dict(blocks).get(language) != (root / "tests/guide/counting" / name).read_text():
            yield f"README.md: its {language} block is not tests/guide/counting/{name}"
    for language, block in blocks:
        if language == "cpp" and not any("\n" + block in program for program in programs):
            yield f"README.md: this cpp block is in no file of tests/guide: {block.splitlines()[0]}"


def check_links(root):
    """A link leads to a file or folder of the tree, and its anchor to a heading as GitHub names it."""
    found = [*root.glob("*.md"), *(path for folder in ("docs", "libs", "actors", "apps", "tests", "configs")
                                   for path in (root / folder).rglob("*.md"))]
    for path in sorted(found):
        name = path.relative_to(root)
        for number, line in pages.prose(path.read_text()):
            for text, link in pages.LINK.findall(line):
                meant = pages.target(name, link)
                if meant is None:
                    continue
                file, anchor = meant
                if not (root / file).exists():
                    yield f"{name}:{number}: the link to {link} leads nowhere"
                elif anchor and anchor not in {one for *_, one in pages.headings((root / file).read_text())}:
                    yield f"{name}:{number}: the link to {link}: {file} has no such heading"


def check(root):
    return [*check_links(root), *check_errors(root), *check_protocols(root), *check_files(root), *check_configuration(root),
            *check_readme(root)]


GOOD = {
    ERRC: "/// Errors.\nenum class Errc : std::uint8_t {\n  ok = 0,\n  timeout = 1,  ///< late\n};\n",
    "libs/base/README.md": "base\n",
    "docs/errors.md": "| 0 | `ok` | - |\n| 1 | `timeout` | late |\n",
    "docs/protocols/rref.md": "## Purpose\n## Messages\n## Invariants\n- **RR-1** Ids never repeat.\n"
                              "- **RR-2** One lane. (planned, #4)\n## Not promised\n## Tests\n",
    "tests/unit/rpc/fork_test.cpp": "TEST(ForkTable, RR1_IdsNeverRepeat) {}\n",
    "configs/a.toml": "# Runs a.\ncaftan = 1\n",
    "README.md": "# R\n## One & `two`\n## One & two\n```cpp\nint b;\n```\n\n```cpp\nint a;\n```\n\n```cmake\nb\n```\n\n```toml\nc = 1\n```\n",
    "tests/guide/counting/main.cpp": "int a;\n",
    "tests/guide/calls/main.cpp": "// Calls.\nint b;\n",
    "docs/a.md": "# A\n\n[o](errors.md), [r](../README.md#one--two-1), [d](protocols), [w](https://example.org/x)\n"
                 "`[no](link.md)`\n\n```sh\n[no](link.md)\n```\n",
    "tests/guide/counting/CMakeLists.txt": "b\n",
    "tests/guide/counting/counting.toml": "c = 1\n",
}
BAD = {
    "no row for timeout = 1": {"docs/errors.md": "| 0 | `ok` | - |\n"},
    "row 2 `gone` is not": {"docs/errors.md": GOOD["docs/errors.md"] + "| 2 | `gone` | - |\n"},
    "used twice": {ERRC: GOOD[ERRC].replace("timeout = 1", "timeout = 0")},
    "RR-1 is in no test": {"tests/unit/rpc/fork_test.cpp": "TEST(ForkTable, RR10_Other) {}\n"},
    "no heading 'Not promised'": {"docs/protocols/rref.md": "## Purpose\n## Messages\n## Invariants\n## Tests\n"},
    "first says what it offers": {"libs/base/include/caftan/base/a.hpp": "#pragma once\n"},
    "actors/src/rref: no README.md": {"actors/src/rref/a.cpp": "int a;\n"},
    "libs/net: no README.md": {"libs/net/include/caftan/net/a.hpp": "/// A.\n"},
    "its cpp block is not": {"tests/guide/counting/main.cpp": "int c;\n"},
    "this cpp block is in no file of tests/guide: int b;": {"tests/guide/calls/main.cpp": "int c;\n"},
    "docs/b.md:2: the link to error.md leads nowhere": {"docs/b.md": "# B\n[e](error.md)\n"},
    "docs/b.md:2: the link to a.md#b: docs/a.md has no such heading": {"docs/b.md": "# B\n[e](a.md#b)\n"},
    "libs/base/README.md:1: the link to ../none leads": {"libs/base/README.md": "[e](../none)\n"},
    "configs/b.toml": {"configs/b.toml": "caftan = 1\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
