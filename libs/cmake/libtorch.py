"""Fetches the pinned wheels and unpacks the few files of them that Caftan links.

usage: libtorch.py LOCK_FILE FOLDER

pip downloads, so that the user's index, proxy and certificates hold; `--require-hashes` compares with the lock file.
FOLDER/torch and FOLDER/nvidia are replaced together and FOLDER/stamp (the lock file's checksum) is written last, so a
stop at any moment leaves either the old state or one without a stamp, which the next start repairs. Prints
"[412/543] ..." as progress and, when it fails, one line "caftan: ..." that a user can act on.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

TOTAL_MB = 543
# pip takes platform tags literally: the CUDA wheels use each of the older ones. The tag cp311 only selects the torch
# wheel whose hash is pinned; nothing of it depends on the interpreter that runs pip.
TAGS = "--implementation cp --python-version 3.11 --abi cp311 --abi none".split() + [
    "--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_25_x86_64",
    "--platform=manylinux_2_17_x86_64", "--platform=manylinux2014_x86_64"]
LIBRARIES = ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
             "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13")
OFFLINE = re.compile(r"name resolution|NewConnectionError|Connection(Error| refused| timed out|TimeoutError)"
                     r"|ReadTimeout|ProxyError|Network is unreachable|from versions: none")


def fail(text):
    print(f"caftan: {text}", flush=True)
    sys.exit(1)


def wanted(name):
    """Whether a wheel's member is unpacked. The wheel's own fmt is not: it shadows Debian's and breaks spdlog."""
    if name.endswith("/") or name.startswith("torch/include/fmt/"):
        return False
    return (name in LIBRARIES or name.startswith("torch/include/") or name.endswith(".dist-info/METADATA")
            or ".dist-info/licenses/" in name)


def megabytes(*folders):
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                pass  # pip renames its files while we look
    return total // 1_000_000


def download(lock, folder):
    temporary, wheels = folder / "tmp", folder / "wheels"
    for path in (temporary, wheels):
        path.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--require-hashes", "-r", str(lock), "--no-deps",
               "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "-d", str(wheels), *TAGS]
    output_path = folder / "pip.log"
    with output_path.open("w") as output:
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                               env={**os.environ, "TMPDIR": str(temporary)})
        began = time.monotonic()
        while pip.poll() is None:
            done = min(megabytes(temporary, wheels), TOTAL_MB)
            rate = done / max(time.monotonic() - began, 0.1)
            left = f", {(TOTAL_MB - done) / rate:.0f} s left" if rate > 0.1 else ""
            print(f"[{done}/{TOTAL_MB}] {done} of {TOTAL_MB} MB, {rate:.0f} MB/s{left}", flush=True)
            time.sleep(0.4)
    text = output_path.read_text(errors="replace")
    output_path.unlink()
    shutil.rmtree(temporary, ignore_errors=True)
    print(text, flush=True)
    if pip.returncode != 0:
        explain(text, lock, wheels)


def explain(text, lock, wheels):
    """Ends with what pip's failure means for the user."""
    if "DO NOT MATCH THE HASHES" in text:
        shutil.rmtree(wheels)
        wheel = re.search(r"([A-Za-z0-9_.-]+\.whl)", text.split("DO NOT MATCH THE HASHES", 1)[1])
        line = re.search(r"\(line (\d+)\)", text.split("DO NOT MATCH THE HASHES", 1)[1])
        name = wheel.group(1) if wheel else "a wheel"
        where = f", line {line.group(1)}" if line else ""
        fail(f"{name}: checksum differs from the lock file{where}. Deleted. A proxy may have altered it; start again.")
    if "No module named pip" in text:
        fail("this Python has no pip; install the package python3-pip")
    if "No space left" in text:
        fail("the disk is full. Set CAFTAN_DEPS_DIR to another disk, or free some.")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        fail("the package registry's certificate is not trusted here, as behind a proxy whose own is missing. Add that "
             "to /usr/local/share/ca-certificates, run update-ca-certificates, start again.")
    errors = [line for line in text.splitlines() if line.startswith("ERROR:")] or text.splitlines()[-1:] or ["no output"]
    if OFFLINE.search(text):
        cause = re.search(r"[^:'()]*(name resolution|refused|timed out|unreachable)", text)
        reason = re.sub(r"^\[Errno -?\d+\] ", "", cause.group(0).strip()) if cause else errors[0]
        fail(f"no package registry answered (pip: {reason}). Nothing was changed; start again when online.")
    fail(f"pip could not download what {lock.name} lists: {errors[0]}")


def unpack(folder):
    new = folder / "new"
    shutil.rmtree(new, ignore_errors=True)
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if wanted(name)]
            for number, name in enumerate(names):
                if number % 500 == 0:
                    print(f"[{number}/{len(names)}] unpacking {wheel.name.split('-')[0]}", flush=True)
                target = new if not name.split("/")[0].endswith(".dist-info") else new / "licenses"
                archive.extract(name, target)
    missing = [name for name in LIBRARIES if not (new / name).is_file()]
    if missing:
        fail(f"the wheels lack {', '.join(missing)}")
    return new


def main(lock, folder):
    stamp = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp_path = folder / "stamp"
    if not all((folder / name).is_file() for name in LIBRARIES) or not stamp_path.is_file() \
            or stamp_path.read_text().strip() != stamp:
        download(lock, folder)
        new = unpack(folder)
        stamp_path.unlink(missing_ok=True)
        for part in ("torch", "nvidia", "licenses"):  # side by side: libtorch looks for ../../nvidia
            shutil.rmtree(folder / part, ignore_errors=True)
            os.rename(new / part, folder / part)
        (folder / "stamp.new").write_text(stamp + "\n")
        os.rename(folder / "stamp.new", stamp_path)
    for part in ("new", "tmp", "wheels"):
        shutil.rmtree(folder / part, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    except OSError as error:
        fail(f"{error.strerror}: {error.filename}")
