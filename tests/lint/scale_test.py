"""Tests the comparison of sizes with a scale_bench that plays its part.

usage: scale_test.py ROOT
"""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path()

# The time of one unit grows with the size as %(growth)s says; its messages do not.
SCALE_BENCH = '''#!/usr/bin/env python3
import json, sys
scenario, size = sys.argv[1], int(sys.argv[2])
print(json.dumps({"progress": "made", "done": 1, "of": size}), flush=True)
growth = %(growth)s
print(json.dumps({"part": "one made", "units": size, "cpu_us": growth, "messages": 2, "live_user": 0, "resident_all": 8}))
sys.exit(%(code)s)
'''


class Scale(unittest.TestCase):
    def run_it(self, *arguments, growth="1", code="0"):
        """Returns the exit code and what was printed."""
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "scale_bench")
            fake.write_text(SCALE_BENCH % {"growth": growth, "code": code})
            fake.chmod(0o755)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                return scale.main(["--bin", folder, "--seconds", "0", *arguments]), output.getvalue()

    def row(self, output, cost):
        return next([cell.strip() for cell in line.split("|")] for line in output.splitlines() if f"| {cost} " in line)

    def test_sizes_are_a_tenth_to_the_whole_of_the_full_size(self):
        self.assertEqual(scale.sizes_of("workers", 1.0), [20, 40, 100, 200])
        self.assertEqual(scale.sizes_of("references", 0.01), [1_000, 2_000, 5_000, 10_000])
        self.assertEqual(scale.sizes_of("workers", 0.01), [2])

    def test_a_cost_that_stays_is_met(self):
        code, output = self.run_it("--only", "workers")
        self.assertEqual(code, 0)
        self.assertIn("| 20 ", output)
        self.assertEqual(self.row(output, "CPU, us")[3:9], ["1", "1", "1", "1", "1.00", "met (0.83 of it)"])

    def test_growth_is_that_of_the_dearest_size_and_fails_nothing(self):
        code, output = self.run_it("--only", "workers", growth="{20: 1, 40: 1, 100: 3, 200: 2}[size]")
        self.assertEqual(code, 0)
        self.assertEqual(self.row(output, "CPU, us")[7:9], ["3.00", "2.50 x over"])
        self.assertIn("met", self.row(output, "messages")[8])

    def test_a_cost_that_falls_is_met(self):
        _, output = self.run_it("--only", "calls", growth="1e6 / size")
        self.assertEqual(self.row(output, "CPU, us")[7], "0.50")

    def test_nothing_is_judged_without_a_first_cost_or_a_second_size(self):
        _, output = self.run_it("--only", "workers")
        self.assertEqual(self.row(output, "live at user, B")[7:9], ["-", "-"])
        _, output = self.run_it("--only", "workers", "--scale", "0.01")
        self.assertEqual(self.row(output, "CPU, us")[4:6], ["-", "-"])

    def test_small_sizes_are_run_again_and_the_median_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            count = pathlib.Path(folder, "count")
            growth = (f'(lambda f: [f.open("a").write("."), [9, 1, 2, 1, 1][(len(f.read_text()) - 1) % 5]][1])'
                      f'(__import__("pathlib").Path({str(count)!r}))')
            _, output = self.run_it("--only", "workers", "--scale", "0.01", "--seconds", "1000", growth=growth)
            self.assertEqual(len(count.read_text()), 5)
        self.assertEqual(self.row(output, "CPU, us")[3], "1")

    def test_a_program_that_fails_is_named_and_the_others_run(self):
        code, output = self.run_it("--only", "workers,calls", code='3 if scenario == "workers" and size == 40 else 0')
        self.assertEqual(code, 1)
        self.assertIn("workers of 40: ended with code 3", output)
        self.assertIn("| 100,000 ", output)

    def test_an_unknown_scenario_is_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_it("--only", "worker")


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(ROOT / "tests" / "bench"))
    import scale

    unittest.main(argv=sys.argv[:1])
