"""Tests the count of instructions with a valgrind that plays its part.

usage: instructions_test.py ROOT
"""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path()

# Writes the profiles that callgrind writes: one before each mark, of both processes, and the rest at the end.
VALGRIND = '''#!/usr/bin/env python3
import json, os, sys
assert "--tool=callgrind" in sys.argv and "--dump-before=caftan_bench_mark" in sys.argv, sys.argv
out = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--callgrind-out-file="))
print(json.dumps({"ready": "", "pid": 11, "peers": [12]}), flush=True)
marks = 0
for line in sys.stdin:
    calls = int(line.split("calls=")[1])
    for instructions in (999999, %(cost)s * calls):  # the warm-up and what lies before it, then the calls
        marks += 1
        for pid, share in ((11, 2), (12, 1)):
            open(out.replace("%%p", str(pid)) + f".{marks}", "w").write(f"events: Ir\\nsummary: {share * instructions}\\n")
    print(json.dumps({"calls": calls}), flush=True)
sys.exit(%(code)s)
'''


class Instructions(unittest.TestCase):
    def run_it(self, *arguments, cost=1000, code=0):
        """Returns the exit code and what was printed."""
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "valgrind")
            fake.write_text(VALGRIND % {"cost": cost, "code": code})
            fake.chmod(0o755)
            output = io.StringIO()
            before = os.environ["PATH"]
            os.environ["PATH"] = f"{folder}:{before}"
            try:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    return instructions.main(["--bin", folder, "--rounds", "1", *arguments]), output.getvalue()
            finally:
                os.environ["PATH"] = before

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        instructions.FIGURES = pathlib.Path(self.folder.name, "figures.json")

    def test_a_figure_is_what_lies_between_two_marks_per_call(self):
        code, output = self.run_it("--only", "int")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"call with an int +2,000 +1,000 +3,000 +- +-\n")

    def test_the_change_is_against_the_tree_and_only_renew_writes_there(self):
        self.assertEqual(self.run_it("--renew")[0], 0)
        kept = instructions.FIGURES.read_text()
        self.assertEqual(json.loads(kept)["hop"], {"caller": 2000, "callee": 1000})
        code, output = self.run_it("--only", "int,hop", cost=900)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"call with an int +1,800 +900 +2,700 +3,000 +-10.0 %")
        self.assertNotIn("method", output)
        self.assertEqual(instructions.FIGURES.read_text(), kept)
        self.run_it("--only", "int", "--renew", cost=900)
        self.assertEqual([json.loads(instructions.FIGURES.read_text())[name]["caller"] for name in ("int", "hop")],
                         [1800, 2000])

    def test_a_program_that_fails_leaves_no_figure(self):
        code, output = self.run_it("--renew", code=3)
        self.assertEqual(code, 1)
        self.assertIn("exit code 3", output)
        self.assertFalse(instructions.FIGURES.exists())

    def test_an_unknown_measure_is_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            instructions.parse(["--bin", ".", "--only", "hip"])

    def test_the_figures_of_the_tree_name_each_measure(self):
        figures = json.loads((ROOT / "tests/bench/instructions.json").read_text())
        self.assertEqual(sorted(figures), sorted(instructions.MEASURES))


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop())
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import instructions
    unittest.main()
