"""Tests libs/cmake/libtorch.py with a pip that plays a part: no network, no real wheel.

usage: libtorch_fetch_test.py ROOT
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = ""
FAKE_PIP = '''
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
part = pathlib.Path(__file__).with_name("part").read_text()
if part == "mismatch":
    (folder / "torch-2.11.0-cp311.whl").write_text("altered")
    sys.exit("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\\n"
             "    torch==2.11.0 from https://example.org/torch-2.11.0-cp311.whl (from -r wheels.lock (line 1)):\\n"
             "        Expected sha256 aa\\n             Got        bb")
if part == "offline":
    sys.exit("WARNING: Retrying after connection broken by 'NewConnectionError(': Failed to establish a new connection:"
             " [Errno -3] Temporary failure in name resolution')': /simple/torch/\\n"
             "ERROR: Could not find a version that satisfies the requirement torch==2.11.0 (from versions: none)")
if part == "untrusted":
    sys.exit("WARNING: Retrying after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: "
             "CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:992)'))': /simple/torch/\\n"
             "ERROR: Could not find a version that satisfies the requirement torch==2.11.0 (from versions: none)")
names = ["torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1", "torch/lib/libtorch_cuda.so",
         "torch/include/ATen/ATen.h", "torch/include/fmt/core.h", "torch-2.11.0.dist-info/METADATA",
         "torch-2.11.0.dist-info/licenses/LICENSE", "nvidia/cu13/lib/libcudart.so.13"]
if part != "incomplete":
    names.append("nvidia/cu13/lib/libcupti.so.13")
with zipfile.ZipFile(folder / "torch-2.11.0-cp311.whl", "w") as wheel:
    for name in names:
        wheel.writestr(name, part)
'''


class Fetch(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = pathlib.Path(holder.name)
        self.deps = self.top / "deps"
        (self.top / "pip").mkdir()
        (self.top / "pip/__init__.py").touch()  # a regular package, so that it comes before the real one
        (self.top / "pip/__main__.py").write_text(FAKE_PIP)
        self.lock = self.top / "wheels.lock"
        self.lock.write_text("torch==2.11.0 --hash=sha256:aa\n")

    def fetch(self, part):
        (self.top / "pip/part").write_text(part)
        return subprocess.run([sys.executable, "-B", SCRIPT, str(self.lock), str(self.deps)], check=False, text=True,
                              capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(self.top), "PIP_NO_INDEX": "1"})

    def stamp(self):
        path = self.deps / "stamp"
        return path.read_text().strip() if path.exists() else None

    def test_unpacks_what_is_linked_and_leaves_out_the_wheels_own_fmt(self):
        self.assertEqual(self.fetch("first").returncode, 0)
        found = {path.relative_to(self.deps).as_posix() for path in self.deps.rglob("*") if path.is_file()}
        self.assertEqual(found, {
            "stamp", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
            "torch/include/ATen/ATen.h", "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13",
            "licenses/torch-2.11.0.dist-info/METADATA", "licenses/torch-2.11.0.dist-info/licenses/LICENSE"})
        self.assertEqual(self.stamp(), hashlib.sha256(self.lock.read_bytes()).hexdigest())

    def test_does_nothing_when_the_stamp_is_that_of_the_lock_file(self):
        self.fetch("first")
        self.assertEqual(self.fetch("offline").returncode, 0)
        self.assertEqual((self.deps / "torch/lib/libc10.so").read_text(), "first")

    def test_replaces_all_when_the_lock_file_changes(self):
        self.fetch("first")
        self.lock.write_text("torch==2.12.0 --hash=sha256:cc\n")
        self.assertEqual(self.fetch("second").returncode, 0)
        self.assertEqual((self.deps / "torch/lib/libc10.so").read_text(), "second")
        self.assertEqual(self.stamp(), hashlib.sha256(self.lock.read_bytes()).hexdigest())

    def test_a_failed_download_keeps_what_was_there(self):
        self.fetch("first")
        old = self.stamp()
        self.lock.write_text("torch==2.12.0 --hash=sha256:cc\n")
        for part in ("offline", "mismatch", "incomplete"):
            self.assertEqual(self.fetch(part).returncode, 1, part)
            self.assertEqual((self.deps / "torch/lib/libc10.so").read_text(), "first", part)
            self.assertEqual(self.stamp(), old, part)

    def test_repairs_a_folder_without_a_stamp(self):
        self.fetch("first")
        (self.deps / "stamp").unlink()
        (self.deps / "torch/lib/libc10.so").unlink()
        self.assertEqual(self.fetch("second").returncode, 0)
        self.assertEqual((self.deps / "torch/lib/libc10.so").read_text(), "second")

    def test_names_the_altered_wheel_and_deletes_it(self):
        done = self.fetch("mismatch")
        self.assertIn("caftan: torch-2.11.0-cp311.whl: checksum differs from the lock file, line 1. Deleted. A proxy "
                      "may have altered it; start again.\n", done.stdout)
        self.assertEqual(list(self.deps.glob("wheels/*")), [])

    def test_translates_an_unreachable_registry(self):
        self.assertIn("caftan: no package registry answered (pip: Temporary failure in name resolution). Nothing was "
                      "changed; start again when online.\n", self.fetch("offline").stdout)

    def test_distinguishes_an_untrusted_certificate_from_no_network(self):
        self.assertIn("caftan: the package registry's certificate is not trusted here", self.fetch("untrusted").stdout)

    def test_refuses_wheels_without_a_library(self):
        self.assertIn("caftan: the wheels lack nvidia/cu13/lib/libcupti.so.13\n", self.fetch("incomplete").stdout)


if __name__ == "__main__":
    SCRIPT = str(pathlib.Path(sys.argv.pop(1)).resolve() / "libs/cmake/libtorch.py")
    unittest.main()
