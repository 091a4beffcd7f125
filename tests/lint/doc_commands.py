"""Refuses commands in pages that no test runs: each line of a ```sh block in README.md, CONTRIBUTING.md and docs/ has a row in
RUN, or stands in a block below a comment <!-- not run: why -->. Commands stand in such blocks only.

usage: doc_commands.py ROOT | --self-test
"""
import pathlib
import re
import sys

import tree

BOOTSTRAP = "tests/lint/bootstrap_test.py"
CONSUMER = "tests/install/consumer.cmake"
TWO_PROCESSES = "tests/guide/calls_two_processes.cmake"
GUIDE = "tests/guide/CMakeLists.txt"
# {command as the pages have it, without comments: (file of the test that runs it, {words of the command: how they stand there})}
RUN = {
    "./caftan run configs/cartpole.toml":
        ("tests/process/cartpole_test.cpp", {"run": '"run"', "cartpole.toml": '"/cartpole.toml"'}),
    "./caftan test": (".ci/run", {"./caftan test": "./caftan test"}),
    "./caftan test --mutants [NAME]": (BOOTSTRAP, {"test": '"test", "--mutants", "one"', "--mutants": "--mutants"}),
    "./caftan bench --against COMMIT": (BOOTSTRAP, {"bench": '"bench", "--against", "HEAD"', "--against": "--against"}),
    "./caftan bench --against COMMIT report --turns 30": (BOOTSTRAP, {"report --turns": '"report", "--turns", "9"'}),
    "./caftan bench --against COMMIT --only \"echo of\"": ("tests/lint/against_test.py", {"--only": "--only"}),
    "./caftan bench [NAME]": (BOOTSTRAP, {"bench": 'self.start("bench", "report")'}),
    "./caftan docs": (BOOTSTRAP, {"docs": 'self.start("docs"'}),
    "./caftan help": (BOOTSTRAP, {"help": 'self.start("help"'}),
    "cmake --install build/release --prefix PREFIX":
        ("tests/install/package.cmake", {"--install": "--install ${BUILD_DIR}", "--prefix": "--prefix"}),
    "cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build":
        (CONSUMER, {"-S . -B build": "-S ${PREFIX}/consumer -B",
                    "-DCMAKE_PREFIX_PATH=": "-DCMAKE_PREFIX_PATH=",
                    "--build build": "--build ${PREFIX}/consumer/build"}),
    "./build/counting run counting.toml": (CONSUMER, {"build/": "/build/consumer", "run": "run consumer.toml"}),
    "./calls server &": (TWO_PROCESSES, {"calls server": "${PROGRAM} server"}),
    "./calls client": (TWO_PROCESSES, {"calls client": "${PROGRAM} client"}),
    "./counting check counting.toml": (CONSUMER, {"check": "check consumer.toml"}),
    "./counting plan counting.toml": (CONSUMER, {"plan": "plan consumer.toml"}),
    "./counting plan counting.toml roles.counter.replicas=8": (CONSUMER, {"replicas=8": "roles.counter.replicas=8"}),
    "./counting run counting.toml": (CONSUMER, {"run": "run consumer.toml"}),
    "./counting run counting.toml run.placement=one_process": (CONSUMER, {"one_process": "one_process"}),
    "./counting help driver": (CONSUMER, {"help driver": "help driver"}),
    "./caftan sweep configs/cartpole.toml run.seed=1..10 roles.agent.config.gamma=0.99,0.999 --jobs 2":
        ("tests/process/sweep_test.cpp", {"sweep": '"sweep"', "run.seed=": "run.seed=", "--jobs": "--jobs"}),
    "./caftan sweep configs/rl_bench.toml roles.observer.replicas=8,18 --out worlds":
        ("tests/process/rl_bench_test.cpp", {"sweep": '"sweep"', "replicas=": "roles.observer.replicas=", "--out": "--out"}),
    "./caftan rl_report worlds": ("tests/process/rl_bench_test.cpp", {"rl_report": '"rl_report"', "worlds": '"worlds"'}),
    "caftan sweep FILE KEY=VALUES ... [--jobs N] [--out DIR] [--metric NAME]":
        ("tests/process/sweep_test.cpp", {"sweep": '"sweep"', "--jobs": "--jobs", "--out": "--out"}),
    "caftan certs DIR --hosts NAME,...": ("tests/unit/apps/certs_test.cpp", {"certs DIR": "certs_test", "--hosts": '"--hosts"'}),
    "caftan new NAME [--from counting|calls|training|agent|reinforce|beam|simulation] [--into DIR]":
        ("tests/install/consumer.cmake", {"caftan new": "caftan new", "--into": "--into"}),
    "caftan plot runs/latest": ("tests/process/rnn_lm_test.cpp", {"plot": '"plot"', "runs/latest": '"runs/latest"'}),
    "caftan plot runs/cartpole-20261121-* --metric running_reward --smooth 0.9 --out reward.svg":
        ("tests/process/command_line_test.cpp", {"plot": '"plot"', "--smooth": "--smooth", "--out": "--out"}),
    "./agent run agent.toml": (GUIDE, {"run": "run ${file}"}),
    "./agent run agent.toml run.placement=one_process":
        ("tests/guide/same_curve.cmake", {"run": "run ${FILE}", "one_process": "one_process"}),
    "./reinforce run reinforce.toml": (GUIDE, {"run": "run ${file}"}),
    "./reinforce run reinforce.toml run.placement=one_process":
        ("tests/guide/same_curve.cmake", {"run": "run ${FILE}", "one_process": "one_process"}),
    "./beam run beam.toml": ("tests/install/agents.cmake", {"run": "run beam.toml"}),
    "./beam play runs/latest": ("tests/install/agents.cmake", {"play runs/latest": "play runs/latest"}),
    "./trainers run trainers.toml": (GUIDE, {"run": "run ${file}"}),
    "./trainers run trainers.toml roles.server.config.consistency.mode=sync":
        (GUIDE, {"run": "guide_trainers run", "mode=sync": "consistency.mode=sync"}),
    "./trainers check trainers.toml roles.server.config.consistency.quorum=1":
        (GUIDE, {"check": "guide_trainers check", "quorum=1": "consistency.quorum=1"}),
    "./training run training.toml": (GUIDE, {"run": "run ${file}"}),
    "./training run training.toml roles.trainer.config.refine=3": (GUIDE, {"run": "run ${here}", "refine=3": "refine=3"}),
    "split run split.toml": ("tests/guide/split/compare.cmake", {"run": "${SPLIT} run"}),
    "split run split.toml run.placement=one_process": ("tests/guide/split/compare.cmake", {"one_process": "one_process"}),
}
COMMAND = re.compile(r"(?:\$ )?(?:sudo |\./|cmake |ctest |caftan |split |cd |git |python3 |apt)")


def blocks(text):
    """Yields (number of the first line, why it is not run or None, lines) of each sh block, and (number, None, None) of each
    command that stands outside of one."""
    lines, at = text.splitlines(), 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next((number for number in range(at + 1, len(lines)) if lines[number].startswith("```")), len(lines))
            if line[3:].strip() in ("sh", "shell", "bash", "console"):
                above = " ".join(lines[max(0, at - 6):at]).rstrip()
                reason = re.search(r"<!-- not run: ([^>]*[^ >]) *-->$", above)
                yield at + 2, reason.group(1) if reason else None, lines[at + 1:end]
            at = end
        elif line.startswith("    ") and COMMAND.match(line.strip()):
            yield at + 1, None, None
        at += 1


def commands(first, lines):
    """Yields (number, command) of a block: comments are left out, continued lines joined."""
    text, number = "", first
    for at, line in enumerate(lines, first):
        if not text:
            number = at
        line = re.sub(r"(?:^|\s+)#.*", "", line).strip().removeprefix("$ ")
        text = f"{text} {line}".strip()
        if text.endswith("\\"):
            text = text[:-1].strip()
        elif text:
            yield number, text
            text = ""


def check(root, run):
    pages = [*(root / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((root / "docs").rglob("*.md"))]
    errors, used = [], set()
    for page in pages:
        if not page.is_file():
            continue
        name = page.relative_to(root).as_posix()
        for first, reason, lines in blocks(page.read_text()):
            if lines is None:
                errors.append(f"{name}:{first}: a command stands in a block of its own, ```sh")
                continue
            for number, command in commands(first, lines):
                used.add(command)
                if command not in run and reason is None:
                    errors.append(f"{name}:{number}: no test runs `{command}`: a row of RUN in tests/lint/doc_commands.py, or "
                                  "<!-- not run: why --> above the block")
    for command, (test, words) in run.items():
        if command not in used:
            errors.append(f"no page has the command `{command}` any more: delete its row (tests/lint/doc_commands.py)")
        text = (root / test).read_text() if (root / test).is_file() else ""
        for word, there in words.items():
            if word not in command or there not in text:
                errors.append(f"{test} does not run `{command}`: it has no {there} (tests/lint/doc_commands.py)")
    return errors


COMMENT = "<!-- not run: takes\n     an hour -->\n"
TEST_RUN = {"./a run x": ("tests/a.py", {"run": '"run"'})}
GOOD = {
    "README.md": "Text, `./a not`.\n\n```sh\n./a run x  # what it does\n```\n\n```cpp\n./no\n```\n",
    "docs/a.md": COMMENT + "```sh\n./a soak \\\n  all\n\n# a comment\n./a more\n```\n\n    a picture\n",
    "tests/a.py": 'start("run")\n',
}
BAD = {
    "README.md:4: no test runs `./a run y`": {"README.md": GOOD["README.md"].replace("run x", "run y")},
    "docs/a.md:3: no test runs `./a soak all`": {"docs/a.md": GOOD["docs/a.md"].replace(COMMENT, "\n")},
    "docs/a.md:10: no test runs `./a more`": {"docs/a.md": GOOD["docs/a.md"].replace("-->\n", "-->\n\nText.\n")},
    "tests/a.py does not run `./a run x`": {"tests/a.py": 'start("walk")\n'},
    "no page has the command `./a run x`": {"README.md": "Text.\n"},
    "docs/b.md:2: a command stands in": {"docs/b.md": "\n    ./a run x\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(lambda root: check(root, TEST_RUN), GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1]), RUN))
