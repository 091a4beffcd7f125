"""Reads mutants.toml and says what is wrong with it. Each [[mutant]] is a small fault of the sources:

    name     = "request-table-8-bits"       # a-z 0-9 -, once
    file     = "libs/net/src/secret.cpp"    # below libs, actors or apps
    text     = "a == b"                     # occurs exactly once in the file
    with     = "a != b"
    tests    = ["net_test:RequestTable.*"]  # test binaries that shall notice, in this order; with a filter of gtest
    survives = "equivalent: why"            # only where no test can notice it

usage: listed.py ROOT | --self-test
"""
import pathlib
import re
import sys
import tomllib

LIST = "tests/mutants/mutants.toml"
FEWEST = 160
# Each of these folders must have some mutants.
PARTS = ("libs/app", "libs/autograd", "libs/base", "libs/net", "libs/nn", "libs/optim", "libs/rl", "libs/rpc", "libs/run",
         "libs/sim", "libs/tensor", "libs/remote", "libs/results", "libs/svg", "libs/transport", "libs/wire", "actors", "apps/batch_parameter_server",
         "apps/cartpole", "apps/fingerprint", "apps/image_data", "apps/image_training", "apps/models", "apps/rnn_lm")
KEYS = {"name", "file", "text", "with", "tests", "survives"}


def read(root):
    """Returns the mutants as dicts. Raises tomllib.TOMLDecodeError or OSError."""
    return tomllib.loads((root / LIST).read_text()).get("mutant", [])


def targets(root):
    """Returns the names of all test binaries that CMake knows."""
    names = set()
    for path in (root / "tests").rglob("CMakeLists.txt"):
        text = path.read_text()
        names.update(re.findall(r"(?:caftan_add_test|add_process_test)\(([A-Za-z0-9_]+)", text))
        for variable, values in re.findall(r"foreach\((\w+) ([^)]*)\)\s*caftan_add_test", text):
            names.update(re.sub(r"\$\{" + variable + r"\}", value, template) for value in values.split()
                         for template in re.findall(r"caftan_add_test\(([^ )]*\$[^ )]*)", text))
        names.update(re.findall(r'"(caftan_\w+);', text))
    return names


def check_one(root, mutant, known):
    """Yields what is wrong with one entry."""
    if set(mutant) - KEYS or KEYS - {"survives"} - set(mutant):
        yield "has not just the keys " + ", ".join(sorted(KEYS))
        return
    if not re.fullmatch(r"[a-z0-9-]+", mutant["name"]):
        yield "its name is not of a-z 0-9 -"
    path = root / mutant["file"]
    if not mutant["file"].startswith(("libs/", "actors/", "apps/")) or not path.is_file():
        yield f"there is no source {mutant['file']}"
    elif (count := path.read_text().count(mutant["text"])) != 1:
        yield f"its text occurs {count} times in {mutant['file']}"
    if mutant["text"] == mutant["with"]:
        yield "changes nothing"
    if not mutant["tests"]:
        yield "names no test"
    for test in mutant["tests"]:
        if test.split(":")[0] not in known:
            yield f"there is no test binary {test.split(':')[0]}"
    if "survives" in mutant and not re.match(r"equivalent: .{20}", mutant["survives"]):
        yield 'survives = "equivalent: ..." says why no test can notice it'


def check(root, fewest=FEWEST, parts=PARTS):
    mutants, known, errors = read(root), targets(root), []
    names = [mutant.get("name", "?") for mutant in mutants]
    for mutant in mutants:
        errors += [f"{LIST}: {mutant.get('name', '?')}: {what}" for what in check_one(root, mutant, known)]
    errors += [f"{LIST}: {name}: is listed twice" for name in sorted(set(names)) if names.count(name) > 1]
    if len(mutants) < fewest:
        errors.append(f"{LIST}: {len(mutants)} mutants, at least {fewest} are wanted")
    for part in parts:
        if not any(mutant.get("file", "").startswith(part + "/") for mutant in mutants):
            errors.append(f"{LIST}: {part} has none")
    return errors


GOOD_MUTANT = '''[[mutant]]
name = "a-turned"
file = "libs/a/src/a.cpp"
text = "a == b"
with = "a != b"
tests = ["a_test:A.*", "b_points_test"]
'''
GOOD = {LIST: GOOD_MUTANT, "libs/a/src/a.cpp": "return a == b;\n",
        "tests/unit/a/CMakeLists.txt": "caftan_add_test(a_test LABEL unit)\n"
                                       "foreach(name points)\n  caftan_add_test(b_${name}_test LABEL unit)\nendforeach()\n"}
BAD = {
    "occurs 0 times": {"libs/a/src/a.cpp": "return b == a;\n"},
    "occurs 2 times": {"libs/a/src/a.cpp": "return a == b || a == b;\n"},
    "there is no source": {LIST: GOOD_MUTANT.replace("libs/a/src", "tests/a")},
    "there is no test binary a_test": {"tests/unit/a/CMakeLists.txt": "caftan_add_test(b_points_test)\n"},
    "names no test": {LIST: re.sub("tests = .*", "tests = []", GOOD_MUTANT)},
    "changes nothing": {LIST: GOOD_MUTANT.replace("a != b", "a == b")},
    "says why": {LIST: GOOD_MUTANT + 'survives = "equivalent: no"\n'},
    "not just the keys": {LIST: GOOD_MUTANT + 'why = "no"\n'},
    "is listed twice": {LIST: GOOD_MUTANT + GOOD_MUTANT},
    "its name": {LIST: GOOD_MUTANT.replace("a-turned", "A turned")},
    "0 mutants, at least 1": {LIST: ""},
    "libs/a has none": {LIST: GOOD_MUTANT.replace("libs/a/src/a.cpp", "libs/b/src/b.cpp"), "libs/b/src/b.cpp": "a == b\n"},
}

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "lint"))
    import tree
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(lambda root: check(root, 1, ("libs/a",)), GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
