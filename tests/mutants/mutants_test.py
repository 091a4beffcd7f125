"""Tests mutants.py on a tree whose cmake, sources and test binaries play a part."""
import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import listed
import mutants

# Builds a "binary" of a source by copying it to where CMake would put it; a source with `syntax` in it does not build.
CMAKE = '''#!/bin/sh
echo "$* [${MUTANT-none}]" >>"$CALLS"
case $* in
  *--build*) mkdir -p build/ci/tests; ! grep -q syntax libs/a/src/a.cpp || exit 1
    { echo '#!/bin/sh'; cat libs/a/src/a.cpp; } >build/ci/tests/a_test; chmod +x build/ci/tests/a_test ;;
  *) mkdir -p build/ci; touch build/ci/build.ninja ;;
esac
'''
SOURCE = "one=1; two=2; three=3\n[ $one = 1 ] || exit 1\n[ $two = 2 ] || kill -SEGV $$\n"


class Runs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        for name in mutants.COPIED:
            (self.root / name).touch() if "." in name or name == "caftan" else (self.root / name).mkdir()
        self.write("libs/a/src/a.cpp", SOURCE)
        self.write("tools/cmake", CMAKE)
        (self.root / "tools/cmake").chmod(0o755)
        self.calls = self.root / "calls"
        self.before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(self.before)))
        os.environ.update(PATH=f"{self.root}/tools:{self.before['PATH']}", CALLS=str(self.calls))

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def list(self, *faults):
        """faults: (name, text, with, more)."""
        self.write(listed.LIST, "".join(
            f'[[mutant]]\nname = "{name}"\nfile = "libs/a/src/a.cpp"\ntext = "{text}"\nwith = "{fault}"\n'
            f'tests = ["a_test"]\n{more}\n' for name, text, fault, more in faults))

    def run_it(self, *names):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = mutants.main(["--root", str(self.root), "--deps", str(self.root), *names])
        return code, output.getvalue()

    def test_a_failure_and_a_crash_are_found_and_a_survivor_fails_the_run(self):
        self.list(("one", "one=1", "one=9", ""), ("two", "two=2", "two=9", ""), ("three", "three=3", "three=9", ""))
        code, output = self.run_it()
        self.assertEqual(code, 1)
        for line in ("one: found by a_test", "two: found by a_test", "three: survived",
                     "found 2, survived 1 (0 declared as equivalent), do not build 0; 66.7 % of those that count",
                     "survived, and is not declared: three in libs/a/src/a.cpp"):
            self.assertIn(line, output)
        self.assertEqual((self.root / "libs/a/src/a.cpp").read_text(), SOURCE)
        self.assertEqual((self.root / "build/mutants/libs/a/src/a.cpp").read_text(), SOURCE)

    def test_a_test_that_fails_only_once_has_found_nothing(self):
        self.list(("late", "three=3", "[ -e seen ] || { touch seen; exit 1; }", ""))
        code, output = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("late: survived", output)
        self.assertTrue((self.root / "build/mutants/seen").exists())

    def test_a_declared_survivor_does_not_count_but_must_survive(self):
        declared = 'survives = "equivalent: the third is never looked at"'
        self.list(("one", "one=1", "one=9", ""), ("three", "three=3", "three=9", declared))
        code, output = self.run_it()
        self.assertEqual(code, 0, output)
        self.assertIn("100.0 %", output)
        self.list(("one", "one=1", "one=9", declared))
        code, output = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("is declared as a survivor, but was found: one", output)

    def test_one_is_chosen_by_its_name_and_only_its_file_is_compiled_quickly(self):
        self.list(("one", "one=1", "one=9", ""), ("two", "two=2", "two=9", ""))
        code, output = self.run_it("o*")
        self.assertEqual(code, 0)
        self.assertIn("[1/1] one", output)
        calls = self.calls.read_text()
        self.assertEqual(calls.count("--build"), 2)
        self.assertIn("[none]", calls)
        self.assertIn("[libs/a/src/a.cpp]", calls)

    def test_a_fault_that_does_not_build_says_nothing_and_is_named(self):
        self.list(("one", "one=1", "syntax", ""))
        code, output = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("does not build: one\n", output)

    def test_without_a_fault_all_must_build_and_pass(self):
        self.list(("one", "one=1", "one=9", ""))
        self.write("libs/a/src/a.cpp", "one=1; exit 1\n")
        code, output = self.run_it()
        self.assertEqual(code, 3)
        self.assertIn("a_test fails without a fault", output)
        self.write("libs/a/src/a.cpp", "one=1 syntax\n")
        code, output = self.run_it()
        self.assertEqual(code, 3)
        self.assertIn("do not build without a fault", output)

    def test_an_unknown_name_ends_with_2(self):
        self.list(("one", "one=1", "one=9", ""))
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
            mutants.main(["--root", str(self.root), "--deps", str(self.root), "nosuch"])
        self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
