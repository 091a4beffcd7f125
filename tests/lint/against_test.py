"""Tests the comparison of two commits' benchmarks: its statistics, and the runs with programs that play a part.

usage: against_test.py ROOT
"""
import contextlib
import io
import json
import math
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path()

# A side as tests/bench/measure.hpp has it: it takes `COST` microseconds for everything, a tenth more or less by chance.
SIDE = '''#!/usr/bin/env python3
import json, os, random, sys
chance = random.Random(os.getpid())
print(json.dumps({"ready": "%(measures)s", "peers": []}), flush=True)
for line in sys.stdin:
    if line.startswith("%(fails)s "):
        print(json.dumps({"error": "it broke"}), flush=True)
        sys.exit(2)
    if line.startswith("%(hangs)s "):
        open("%(pid)s", "w").write(str(os.getpid()))
        sys.stdin.read()
        sys.exit(0)
    cost = %(cost)s * chance.uniform(0.999, 1.001)
    print(json.dumps({"p50_us": cost, "cpu_own_us": cost, "cpu_peer_us": cost, "calls_per_s": 1e6 / cost}), flush=True)
'''
NODES = "deep chain (10 additions)    12 nodes   torch   1.0 us   2 ns/node   caftan   %s us   3 ns/node   ratio 2.00\n"
RECORDING = "recording, one tensor: send 110 ns 160 B   receive 230 ns 590 B (libtorch's node alone 472 B)\n"


class Statistics(unittest.TestCase):
    def test_a_ratio_is_what_today_costs(self):
        self.assertEqual(paired.ratio(10, 20), 2)
        self.assertEqual(paired.ratio(10, 20, more_is_better=True), 0.5)
        self.assertEqual((paired.ratio(0, 0), paired.ratio(0, 3), paired.ratio(3, 0)), (1, math.inf, 0))

    def test_the_ranks_are_those_of_the_sign_test(self):
        # From tables of the binomial distribution, n and the lower rank at 95 %.
        for count, low in ((6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18)):
            self.assertEqual(paired.ranks(count), (low, count + 1 - low))
        self.assertEqual([paired.ranks(count) for count in range(6)], [None] * 6)
        self.assertIsNone(paired.judge([1.0] * 5))

    def test_the_interval_holds_the_median_19_times_of_20_and_not_always(self):
        chance = random.Random(7)
        for count in (6, 12, 15, 40):
            hits = 0
            for _ in range(2000):
                low, high = paired.interval([chance.lognormvariate(0, 0.3) for _ in range(count)])
                hits += low <= 1 <= high  # the median of that distribution
            self.assertTrue(0.94 <= hits / 2000 < 0.995, (count, hits))

    def test_a_verdict_needs_the_whole_interval(self):
        for low, high, says in ((1.031, 1.2, "lost"), (1.03, 1.06, "same"), (1.02, 1.09, "needs more turns"),
                                (0.8, 0.969, "won"), (0.975, 1.03, "same"), (0.96, 1.03, "needs more turns"),
                                (1.5, math.inf, "lost"), (math.inf, math.inf, "lost"), (1.0, math.inf, "needs more turns")):
            self.assertEqual(paired.verdict(low, high), says, (low, high))

    def test_a_slower_version_is_lost_and_the_other_way_round_won(self):
        chance = random.Random(3)
        slower = [1.05 * chance.uniform(0.99, 1.01) for _ in range(15)]
        self.assertEqual(paired.judge(slower)[3], "lost")
        self.assertEqual(paired.judge([1 / value for value in slower])[3], "won")
        self.assertEqual(paired.judge([value / 1.05 for value in slower])[3], "same")
        self.assertEqual(paired.judge([chance.uniform(0.8, 1.3) for _ in range(15)])[3], "needs more turns")


class Runs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = pathlib.Path(holder.name)

    def make(self, version, cost, measures="sync sync_int pipelined", fails="-", hangs="-"):
        programs = {
            "tests/bench/caftan_bench": SIDE % {"measures": measures, "fails": fails, "hangs": hangs, "cost": cost,
                                                "pid": self.top / "pid"},
            "tests/bench/start_bench": SIDE % {"measures": "start", "fails": "-", "hangs": "-", "cost": cost, "pid": ""},
            "bench/engine_bench": f"#!/bin/sh\ncat <<'END'\n{NODES % cost}{RECORDING}END\n",
            "bench/archive_bench": "#!/bin/sh\necho '" + json.dumps({"benchmarks": [
                {"name": "save_caftan<int>", "cpu_time": cost, "time_unit": "ns"},
                {"name": "save_boost<int>", "cpu_time": 1, "time_unit": "ns"}]}) + "'\n"}
        for name, text in programs.items():
            path = self.top / version / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def arguments(self, *more):
        return ["--before", str(self.top / "before"), "--today", str(self.top / "today"), "--commit", "abc1234", *more]

    def run_it(self, *more):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            code = against.main(self.arguments("--turns", "6", *more))
        return code, output.getvalue()

    def line(self, output, measure):
        return next(line for line in output.splitlines() if line.startswith(f"| {measure} "))

    def test_each_measure_of_a_side_has_its_verdict(self):
        self.make("before", 10)
        self.make("today", 12)
        code, output = self.run_it("report", "--only", "caftan unix")
        self.assertEqual(code, 1)
        for measure in ("echo of 4 floats, pause 0: p50_us", "echo of an int: cpu_us", "64 in flight: calls_per_s"):
            self.assertRegex(self.line(output, f"report: caftan unix: {measure}"), r"\| 1\.(19|20).*\| lost")
        self.assertNotIn("tcp", output)
        code, output = self.run_it("report", "--only", "caftan start")
        self.assertIn("lost", self.line(output, "report: caftan start: start of 5 processes: p50_us"))

    def test_equal_versions_are_the_same_and_exit_with_0(self):
        self.make("before", 10)
        self.make("today", 10)
        code, output = self.run_it("report")
        self.assertEqual(code, 0, output)
        self.assertIn("report: caftan loopback: echo of an int: p50_us", output)
        self.assertRegex(output, r"0 lost, 0 won, \d\d same, 0 needs more turns")

    def test_what_one_version_lacks_is_named(self):
        self.make("before", 10, measures="sync gone sync_brief")
        self.make("today", 10)
        code, output = self.run_it("report", "--only", "caftan unix")
        self.assertEqual(code, 0)
        self.assertIn("only abc1234 has: report: caftan unix: echo of 4 floats, brief: p50_us\n", output)
        self.assertIn("only today has: report: caftan unix: echo of an int: p50_us\n", output)
        self.assertIn("not compared, as against.py does not know it: report: caftan unix: gone (abc1234)\n", output)

    def test_a_side_that_fails_or_was_not_built_is_named_and_exits_with_1(self):
        self.make("before", 10, fails="sync_int")
        self.make("today", 10)
        (self.top / "today/tests/bench/start_bench").unlink()
        code, output = self.run_it("report")
        self.assertEqual(code, 1)
        self.assertIn("failed: caftan unix of abc1234: it broke\n", output)
        self.assertIn("failed: caftan start of today: not built\n", output)
        self.assertIn("same", self.line(output, "report: caftan unix: echo of 4 floats, pause 0: p50_us"))

    def test_programs_that_run_as_a_whole(self):
        self.make("before", 10)
        self.make("today", 9)
        code, output = self.run_it("engine_bench")
        self.assertEqual(code, 0)
        self.assertRegex(self.line(output, "engine_bench: deep chain (10 additions): us"), r"0\.900 .*won")
        for figure in ("send: ns", "send: B", "receive: ns", "receive: B"):
            self.assertIn("same", self.line(output, f"engine_bench: recording, {figure}"))
        code, output = self.run_it("archive_bench")
        self.assertIn("won", self.line(output, "archive_bench: save_caftan<int>: ns"))
        self.assertNotIn("boost", output)
        (self.top / "before/bench/archive_bench").write_text("#!/bin/sh\nexit 3\n")
        code, output = self.run_it("archive_bench")
        self.assertEqual(code, 1)
        self.assertRegex(output, "failed: archive_bench of abc1234: .*exit status 3")

    def test_a_wrong_command_line_ends_with_2(self):
        for wrong in (["--turns", "5"], ["nosuch"], ["--turns", "many"]):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                against.parse_options(self.arguments(*wrong))
            self.assertEqual(ended.exception.code, 2)

    def test_ctrl_c_ends_the_programs_and_prints_what_there_is(self):
        self.make("before", 10, hangs="sync_int")
        self.make("today", 10)
        os.mkfifo(self.top / "pid")
        script = subprocess.Popen([sys.executable, "-B", ROOT / "tests/bench/against.py", *self.arguments("report")],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        side = os.pidfd_open(int((self.top / "pid").read_text()))  # it is at work and will not answer
        os.killpg(script.pid, signal.SIGINT)
        output, _ = script.communicate()
        self.assertEqual(script.returncode, 130)
        self.assertIn("1 turns are too few", output)
        self.assertIn("stopped; this is what was measured until then\n", output)
        self.assertTrue(select.select([side], [], [], 30)[0], "a program goes on")
        os.close(side)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import against
    import paired
    unittest.main()
