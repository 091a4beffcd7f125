"""Refuses a link of an installed page to a page or heading that the package does not have, and a picture that it lacks.

usage: installed_docs.py FOLDER | --self-test
"""
import pathlib
import re
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/site"))
import pages

PICTURE = re.compile(r"!\[[^\]\n]*\]\(([^()\s]+)\)")

def check(folder):
    found = sorted(folder.rglob("*.md"))
    errors = [] if found else [f"{folder}: there is no page"]
    for path in found:
        name = path.relative_to(folder)
        for number, line in pages.prose(path.read_text()):
            errors += [f"{name}:{number}: the package does not have the picture {picture}"
                       for picture in PICTURE.findall(line) if not (path.parent / picture).is_file()]
            for _, link in pages.LINK.findall(line):
                meant = pages.target(name, link)
                if meant is None:
                    continue
                file, anchor = meant
                if ".." in file.parts or not (folder / file).exists():
                    errors.append(f"{name}:{number}: the package does not have {link}")
                elif anchor and anchor not in {one for *_, one in pages.headings((folder / file).read_text())}:
                    errors.append(f"{name}:{number}: {file} has no heading #{anchor}")
    return errors


GOOD = {
    "README.md": "# A\n\n[b](guide/b.md#two-words), [c](guide), [d](https://example.org), `[e](e.md)`\n",
    "guide/b.md": "# B\n\n## Two words\n\n[a](../README.md)\n",
}
BAD = {
    "README.md:1: the package does not have ../libs": {"README.md": "[a](../libs)\n"},
    "guide/b.md:1: the package does not have ../../README.md": {"guide/b.md": "[a](../../README.md)\n"},
    "guide/b.md:1: the package does not have c.md": {"guide/b.md": "[a](c.md)\n"},
    "README.md:3: guide/b.md has no heading #two-words": {"guide/b.md": "# B\n"},
    "README.md:1: the package does not have the picture images/a.svg": {"README.md": "![a](images/a.svg)\n"},
    "there is no page": {"README.md": None, "guide/b.md": None},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
