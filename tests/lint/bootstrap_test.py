"""Tests the script ./caftan with tools that play a part: nothing is installed, downloaded or compiled.

usage: bootstrap_test.py ROOT
"""
import fcntl
import os
import pathlib
import shutil
import select
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path()
# Each tool notes its call in calls.txt. What it does is set by the variables that a test gives. One whose call has
# BLOCK_AT in it starts a process of its own, says so in the pipe BLOCK, and goes on when something comes from the pipe GO.
BLOCKS = '''case $BLOCK_AT in ?*) case "$0 $*" in *"$BLOCK_AT"*)
  sleep 1000 & echo $! >"$BLOCK"; read -r _ <"$GO"; kill $! ;; esac ;; esac
'''
TOOLS = {
    "dpkg-query": '[ -n "$HAVE_PACKAGES" ] || exit 1; shift 3; for p; do printf ";installed %s;" "$p"; done',
    "apt-get": 'echo apt-get "$@" >>"$CALLS"; [ -z "$APT_SAYS" ] || { echo "$APT_SAYS"; exit 100; }\n'
               'case "$*" in *-s\\ install*) echo "Inst g++"; echo "Inst gcc" ;; esac',
    "id": 'echo "${USER_ID:-0}"',
    "uname": 'case $1 in -sm) echo "${MACHINE:-Linux x86_64}" ;; *) echo Linux ;; esac',
    "df": 'printf "head\\nx 9 9 %s 9 /\\n" "${FREE_MB:-9999}"',
    "cmake": '''echo cmake "$@" >>"$CALLS"
case $* in
  *--build*) case $COMPILER_SAYS in ?*) case $PWD in *"$COMPILER_FAILS_IN"*) echo "$COMPILER_SAYS"; exit 1 ;; esac ;; esac
    mkdir -p build/release/bin
    printf '#!/bin/sh\\nprintf "[%%s]" "$PWD" "$@"; exit 7\\n' >build/release/bin/caftan
    chmod +x build/release/bin/caftan ;;
  *) echo "-- Caftan: CAF 0.17.6, libtorch 2.11.0, Boost 1.74, CPU only"
    mkdir -p build/release; touch build/release/build.ninja
    for a; do case $a in -DCAFTAN_TORCH_ROOT*) echo "${a#-D}" >build/release/CMakeCache.txt ;; esac; done ;;
esac''',
}
FETCH = '''
import hashlib, os, pathlib, sys
with open(os.environ["CALLS"], "a") as calls: calls.write("fetch\\n")
if os.environ.get("BLOCK_AT") == "fetch":
    import subprocess
    child = subprocess.Popen(["sleep", "1000"])
    pathlib.Path(os.environ["BLOCK"]).write_text(f"{child.pid}\\n")
    child.wait()
if os.environ.get("FETCH_SAYS"): sys.exit("caftan: " + os.environ["FETCH_SAYS"])
deps = pathlib.Path(sys.argv[2])
(deps / "torch/lib").mkdir(parents=True, exist_ok=True)
(deps / "torch/lib/libtorch_cpu.so").touch()
(deps / "stamp").write_text(hashlib.sha256(pathlib.Path(sys.argv[1]).read_bytes()).hexdigest() + "\\n")
'''


class Bootstrap(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = pathlib.Path(holder.name).resolve()
        self.tree = self.top / "a tree"
        for folder in ("libs/cmake", "libs/base", "actors", "apps"):
            (self.tree / folder).mkdir(parents=True)
        for name in ("packages.txt", "packages-bench.txt", "packages-docs.txt", "packages-fuzz.txt", "packages-test.txt",
                     "wheels.lock"):
            shutil.copy(ROOT / "libs/cmake" / name, self.tree / "libs/cmake")
        shutil.copy(ROOT / "caftan", self.tree)
        (self.tree / "libs/cmake/libtorch.py").write_text(FETCH)
        for name in ("CMakeLists.txt", "CMakePresets.json", "libs/base/a.cpp"):
            (self.tree / name).touch()
        (self.top / "tools").mkdir()
        for name, body in TOOLS.items():
            (self.top / "tools" / name).write_text("#!/bin/sh\n" + BLOCKS + body + "\n")
            (self.top / "tools" / name).chmod(0o755)
        self.calls = self.top / "calls.txt"
        self.where = self.top / "elsewhere"
        self.where.mkdir()

    def environment(self, settings):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CAFTAN_")}
        return {**clean, "PATH": f"{self.top}/tools:/usr/bin:/bin", "CALLS": str(self.calls), "HAVE_PACKAGES": "yes",
                **settings}

    def start(self, *arguments, **settings):
        """Runs the script as `--anyway`, so that the test holds on any system."""
        self.calls.write_text("")
        return subprocess.run([self.tree / "caftan", "--anyway", *arguments], cwd=self.where, text=True, check=False,
                              capture_output=True, stdin=subprocess.DEVNULL, env=self.environment(settings))

    def called(self):
        """The tools that the last start has called, by their first word, in order."""
        return [line.split()[0] for line in self.calls.read_text().splitlines()]

    def age(self):
        """Makes all files older than what the next start writes."""
        for path in [self.tree, *self.tree.rglob("*")]:
            os.utime(path, (1_000_000_000, 1_000_000_000))

    def test_first_start_does_four_steps_and_hands_over_arguments_folder_and_exit_code(self):
        done = self.start("run", "my file.toml", "key=a b", HAVE_PACKAGES="")
        self.assertEqual(done.stdout, f"[{self.where}][run][my file.toml][key=a b]")
        self.assertEqual(done.returncode, 7)
        self.assertIn("first start here: installs 15 Debian packages", done.stderr)
        for line in ("[1/4] packages   15 of 15 missing, 2 with what they need", "[2/4] libtorch   543 MB",
                     "[3/4] configure  CAF 0.17.6, libtorch 2.11.0", "[4/4] build", "the next start skips this"):
            self.assertIn(line, done.stderr)
        self.assertEqual(self.called(), ["apt-get"] * 4 + ["fetch", "cmake", "cmake"])

    def test_second_start_calls_no_tool_and_says_nothing(self):
        self.age()
        self.start("help")
        done = self.start("help")
        self.assertEqual((done.stdout, done.stderr, self.called()), (f"[{self.where}][help]", "", []))

    def test_each_command_of_a_program_is_handed_over(self):
        self.age()
        for command in ("run", "check", "plan", "sweep", "new", "help"):
            self.assertEqual(self.start(command, "x").stdout, f"[{self.where}][{command}][x]")

    def test_help_explains_the_commands_of_the_script(self):
        for command in ("test", "bench", "fuzz", "docs"):
            for words in (("help", command), (command, "--help")):
                done = self.start(*words)
                self.assertEqual((done.returncode, done.stdout, self.called()), (0, self.start("--help").stdout, []), words)

    def test_an_edited_added_or_deleted_source_is_built_again(self):
        changes = (lambda: (self.tree / "libs/base/a.cpp").write_text("int a;\n"),
                   lambda: (self.tree / "actors/b.cpp").touch(),
                   lambda: (self.tree / "actors/b.cpp").unlink())
        for change in changes:
            self.age()
            self.start("help")
            change()
            self.start("help")
            self.assertEqual(self.called(), ["cmake"])

    def test_changed_checksums_fetch_again(self):
        self.age()
        self.start("help")
        (self.tree / "libs/cmake/wheels.lock").write_text("torch==2.12.0\n")
        self.start("help")
        self.assertEqual(self.called(), ["fetch", "cmake"])

    def test_changed_presets_configure_again(self):
        self.age()
        self.start("help")
        (self.tree / "CMakePresets.json").write_text("{}\n")
        self.start("help")
        self.assertEqual(self.called(), ["cmake", "cmake"])

    def test_another_folder_for_libtorch_is_filled_and_configured(self):
        self.age()
        self.start("help")
        self.start("help", CAFTAN_DEPS_DIR="shared deps")
        self.assertEqual(self.called(), ["fetch", "cmake", "cmake"])
        self.assertTrue((self.where / "shared deps/stamp").is_file())

    def test_without_root_it_prints_the_line_to_run_and_changes_nothing(self):
        done = self.start("run", "a.toml", HAVE_PACKAGES="", USER_ID="1000")
        self.assertEqual(done.returncode, 3)
        self.assertIn("caftan: 15 Debian packages are missing and only root can install them. Run this, then start "
                      "again:\n    sudo apt-get install -y --no-install-recommends g++ cmake ninja-build", done.stderr)
        self.assertEqual(self.called(), [])

    def test_another_machine_is_reported_first(self):
        done = self.start("run", "a.toml", MACHINE="Linux aarch64", HAVE_PACKAGES="")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, "caftan: the pinned libtorch is for Linux on x86_64; this is Linux aarch64\n")
        self.assertFalse((self.tree / ".deps").exists())

    def test_a_full_disk_is_reported_before_the_download(self):
        done = self.start("run", "a.toml", FREE_MB="1100")
        self.assertEqual(done.returncode, 3)
        self.assertIn("caftan: 2.5 GB are needed here, 1.1 GB are free. Set CAFTAN_DEPS_DIR to another disk, or free "
                      "some.\n", done.stderr)
        self.assertEqual(self.called(), [])

    def test_offline_packages_are_reported_in_the_users_words(self):
        done = self.start("help", HAVE_PACKAGES="", APT_SAYS="W: Failed to fetch x  Temporary failure resolving 'deb'")
        self.assertEqual(done.returncode, 3)
        self.assertIn("caftan: no package registry answered (apt: Failed to fetch x Temporary failure resolving 'deb')."
                      " Nothing was changed; start again when online.\n", done.stderr)

    def test_another_failure_of_apt_is_quoted(self):
        done = self.start("help", HAVE_PACKAGES="", APT_SAYS="E: dpkg was interrupted")
        self.assertIn("caftan: apt-get failed: dpkg was interrupted; all of it is in ", done.stderr)

    def test_a_failed_fetch_is_reported_once_and_ends_with_3(self):
        done = self.start("help", FETCH_SAYS="a wheel: checksum differs")
        self.assertEqual((done.returncode, done.stderr.count("caftan: a wheel: checksum differs\n")), (3, 1))

    def test_a_failed_build_shows_the_compilers_words_and_is_tried_again(self):
        done = self.start("help", COMPILER_SAYS="a.cpp:1:1: error: expected unqualified-id")
        self.assertEqual(done.returncode, 3)
        self.assertIn("a.cpp:1:1: error: expected unqualified-id\n", done.stderr)
        self.assertIn("caftan: building failed; all of it is in", done.stderr)
        self.assertEqual(self.start("help").returncode, 7)

    def make_history(self):
        """Makes the tree a git checkout with one commit, and a script in the comparison's place that prints its call."""
        (self.tree / "tests/bench").mkdir(parents=True)
        (self.tree / "tests/bench/against.py").write_text(
            "import sys\nif '--parse-only' not in sys.argv: print(*sys.argv[1:], sep='|')\n"
            "elif '--turns=x' in sys.argv: sys.exit(2)\n")
        (self.tree / ".gitignore").write_text("/build/\n/.deps\n")
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "a"]):
            subprocess.run(["git", "-C", self.tree, *command], check=True)
        return subprocess.run(["git", "-C", self.tree, "rev-parse", "HEAD"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def test_a_comparison_builds_both_commits_in_folders_of_their_own(self):
        commit = self.make_history()
        (self.tree / "libs/base/a.cpp").write_text("int edited;\n")
        done = self.start("bench", "--against", "HEAD", "report", "--turns", "9")
        self.assertEqual((done.returncode, done.stderr.count("[4/4] build")), (0, 2), done.stderr)
        other = self.tree / "build/against" / commit
        self.assertEqual(done.stdout, f"--before|{other}/build/bench|--today|{self.tree}/build/bench|--commit|"
                                      f"{commit[:7]}|report|--turns|9\n")
        self.assertEqual((other / "libs/base/a.cpp").read_text(), "")
        self.assertEqual([path.name for path in other.parent.iterdir()], [commit])

    def test_a_comparison_says_what_is_wrong_with_the_commit(self):
        self.assertIn("this is no git checkout", self.start("bench", "--against", "HEAD").stderr)
        commit = self.make_history()
        done = self.start("bench", "--against", "nosuch")
        self.assertEqual((done.returncode, done.stderr), (2, "caftan: there is no commit 'nosuch' here\n"))
        self.assertEqual(self.start("bench", "--against", "HEAD", "--turns=x").returncode, 2)
        self.assertEqual(self.start("bench", "--against").returncode, 2)
        self.assertFalse((self.tree / ".deps").exists())
        done = self.start("bench", "--against", "HEAD", COMPILER_SAYS="a.cpp:1:1: error: no", COMPILER_FAILS_IN="/against/")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"a.cpp:1:1: error: no\ncaftan: building of commit {commit[:7]} failed;", done.stderr)
        (self.tree / "libs/cmake/wheels.lock").write_text("torch==2.12.0\n")
        done = self.start("bench", "--against", "HEAD")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"commit {commit[:7]} is for another libtorch", done.stderr)

    def test_mutants_get_their_names_and_the_folder_of_libtorch(self):
        (self.tree / "tests/mutants").mkdir(parents=True)
        (self.tree / "tests/mutants/mutants.py").write_text(
            "import sys\nif '--parse-only' not in sys.argv: print(*sys.argv[1:], sep='|')\n"
            "elif 'nosuch' in sys.argv: sys.exit(2)\n")
        done = self.start("test", "--mutants", "one", "t*")
        self.assertEqual(done.stdout, f"--root|{self.tree}|--deps|{self.tree}/.deps|one|t*\n", done.stderr)
        self.assertTrue((self.tree / ".deps/stamp").is_file())
        self.assertEqual(self.start("test", "--mutants", "nosuch").returncode, 2)

    def test_the_site_is_made_with_packages_of_its_own_and_without_libtorch(self):
        (self.tree / "docs/site").mkdir(parents=True)
        site = self.tree / "docs/site/make.py"
        site.write_text("import sys\nprint('site: 3 pages', *sys.argv[1:])\n")
        done = self.start("docs", HAVE_PACKAGES="")
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.tree}/build/docs/index.html\n"), done.stderr)
        self.assertIn("[1/2] packages   3 of 3 missing", done.stderr)
        self.assertIn(f"[2/2] site       3 pages {self.tree} {self.tree}/build/docs", done.stderr)
        self.assertEqual(self.called(), ["apt-get"] * 4)
        self.assertIn("doxygen", self.calls.read_text())
        self.start("help", HAVE_PACKAGES="")
        self.assertNotIn("doxygen", self.calls.read_text())
        site.write_text("import sys\nprint('site: docs/a.md:3: no such page')\nsys.exit(1)\n")
        done = self.start("docs")
        self.assertEqual(done.returncode, 3)
        self.assertIn("docs/a.md:3: no such page\ncaftan: making the site failed; all of it is in ", done.stderr)
        self.assertEqual(self.start("docs", "more").returncode, 2)

    def interrupt(self, at, **settings):
        """Starts the script and sends it Ctrl-C while the tool whose call has `at` in it is at work. Returns what the
        script said; the test fails unless it ends with 130 and the tool's own child is gone."""
        block, go = self.top / "block", self.top / "go"
        for pipe in (block, go):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self.calls.write_text("")
        # A group of its own, as a terminal gives it: Ctrl-C reaches all of it.
        script = subprocess.Popen([self.tree / "caftan", "--anyway", "help"], cwd=self.where, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, start_new_session=True,
                                  env=self.environment({"BLOCK": str(block), "GO": str(go), "BLOCK_AT": at, **settings}))
        child = int(block.read_text())
        os.killpg(script.pid, signal.SIGINT)
        if at == "apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 install":
            while "lets apt finish" not in (line := script.stderr.readline()):
                self.assertTrue(line, "the script ended without waiting for apt")
            os.kill(child, 0)  # dpkg goes on
            go.write_text("go on\n")
        _, errors = script.communicate()
        self.assertEqual(script.returncode, 130)
        self.assertIn("stopped; nothing is half done", errors)
        # The tool's child got the signal, too: it ends, perhaps before this process looks for it.
        try:
            ending = os.pidfd_open(child)
        except ProcessLookupError:
            ending = None
        if ending is not None:
            self.assertTrue(select.select([ending], [], [], 30)[0], f"{at}: the tool's child goes on")
            os.close(ending)
        self.assertEqual([path.name for path in self.tree.rglob("built.stamp*")], [])
        return errors

    def test_BI8_ctrl_c_in_each_step_leaves_nothing_and_the_next_start_works(self):
        apt = "apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "
        steps = ("apt-get -o DPkg::Lock::Timeout=120 update", apt + "--download-only install", apt + "install")
        for at in steps:
            with self.subTest(at):
                self.interrupt(at, HAVE_PACKAGES="")
        for at in ("fetch", "cmake --preset", "cmake --build"):
            with self.subTest(at):
                self.interrupt(at)
        self.assertEqual(self.start("help").returncode, 7)

    def test_two_starts_take_turns(self):
        (self.tree / ".deps").mkdir()
        with (self.tree / ".deps/lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.calls.write_text("")
            script = subprocess.Popen([self.tree / "caftan", "--anyway", "help"], cwd=self.where, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.environment({}))
            while "another start" not in (line := script.stderr.readline()):
                self.assertTrue(line, "the script ended without waiting")
            self.assertEqual(self.called(), [])
        output, _ = script.communicate()
        self.assertEqual(output, f"[{self.where}][help]")

    def test_U13_a_step_is_reported_with_its_own_words(self):
        done = self.start("bench", "report")
        self.assertIn("[4/4] build      the benchmarks", done.stderr)

    def test_a_wrong_command_installs_nothing(self):
        for arguments in (["rnu", "a.toml"], []):
            done = self.start(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: ./caftan", done.stderr)
        self.assertIn("no command 'rnu'", self.start("rnu").stderr)
        self.assertEqual(self.start("test", "--preset", "fast").returncode, 2)
        (self.tree / "tests/fuzz").mkdir(parents=True)
        (self.tree / "tests/fuzz/frame_fuzz.cpp").touch()
        for kind, known in (("bench", "report"), ("fuzz", "frame_fuzz")):
            done = self.start(kind, "nosuch", "--help")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f"no {kind} 'nosuch'; there are: .*{known}")
        self.assertFalse((self.tree / ".deps").exists())


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
