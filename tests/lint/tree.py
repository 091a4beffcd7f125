"""What the lint scripts share: reading the tree, reporting, and a temporary tree for their self-tests."""
import pathlib
import re
import sys
import tempfile

CODE = (".hpp", ".cpp", ".cu")


def files(root, *folders, suffixes=CODE):
    """Yields the files below root/folder for each folder, in order of name."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def sources_of(unit):
    """Returns the sources that the compiler reads as one unit: those a file of CMake's unity build includes, or the file."""
    if unit.parent.name != "Unity" or not unit.is_file():
        return [unit]
    return [pathlib.Path(path) for path in re.findall(r'^#include "(.+)"$', unit.read_text(), re.M)]


def without_comments(text):
    """Returns C++ text with comments blanked out, line numbers and string literals kept."""
    pattern = re.compile(r'R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return pattern.sub(lambda m: m.group(0) if m.group(0)[0] in 'R"' else re.sub(r"[^\n]", " ", m.group(0)), text)


def code_lines(path):
    """Yields (number, line) of a C++ file without its comments."""
    yield from enumerate(without_comments(path.read_text()).splitlines(), 1)


def report(errors):
    """Prints what was found and ends the program: 0 = nothing."""
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


def self_test(check, good, bad):
    """Ends the program: 0 if `check(root)` accepts the tree `good` and refuses it with each change of `bad`.

    good: {path: text}; bad: {expected piece of the complaint: {path: text, None = no such file}}.
    """
    def run(tree):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in tree.items():
                if text is None:
                    continue
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check(root)

    failed = [f"refuses a good tree: {error}" for error in run(good)]
    for expected, change in bad.items():
        errors = run({**good, **change})
        if not any(expected in error for error in errors):
            failed.append(f"does not say '{expected}' for {sorted(change)}, says {errors}")
    report(failed)
