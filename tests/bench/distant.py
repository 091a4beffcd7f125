"""Compares TCP through Caftan with raw TCP over a wire that takes time: two network namespaces, and a relay between their
TUN devices that holds each packet back. Needs root: it makes the namespaces and removes them.

Every answer of both sides comes from one run, in turns. Beside the times stand the receive buffers that the kernel gave
each side's connections at last: whether it fits them to the wire is for the kernel to say, and must be the same for both.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from report import describe_machine, number, print_table
from sides import Side

DEVICE = "caftan0"
NEAR, FAR = "10.213.77.1", "10.213.77.2"
# title, the request of both sides, what is compared and whether more of it is better
MEASURES = (
    ("small call, 4 floats", "sync floats=4 calls=100000", "p50_us", False),
    ("64 in flight, 4 floats", "pipelined floats=4 window=64 calls=10000000", "calls_per_s", True),
    ("16 MiB there and back", "sync floats=4194304 calls=1000", "p50_us", False),
)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"distant: ip {' '.join(words)}: {done.stderr.strip()}")


class Wire:
    """Two namespaces that are connected as long as the relay runs."""

    def __init__(self, mtu):
        self.near, self.far = (f"caftan-{place}-{os.getpid()}" for place in ("near", "far"))
        self._relay = None
        self._made = []
        for name, own, other in ((self.near, NEAR, FAR), (self.far, FAR, NEAR)):
            ip("netns", "add", name)
            self._made.append(name)
            ip("-n", name, "tuntap", "add", "dev", DEVICE, "mode", "tun")
            ip("-n", name, "addr", "add", own, "peer", other, "dev", DEVICE)
            ip("-n", name, "link", "set", DEVICE, "mtu", str(mtu), "txqueuelen", "20000", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def hold_back(self, relay, microseconds):
        self.cut()
        self._relay = subprocess.Popen([str(relay), str(microseconds), DEVICE, self.near, self.far],
                                       stdout=subprocess.PIPE, text=True)
        if self._relay.stdout.readline() != "ready\n":
            sys.exit("distant: the relay did not start")

    def cut(self):
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
            self._relay = None

    def remove(self):
        self.cut()
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def receive_buffers(wire):
    """Returns {process name: largest receive buffer of its connections over the wire, in bytes}."""
    largest = {}
    for place in (wire.near, wire.far):
        text = subprocess.run(["ip", "netns", "exec", place, "ss", "-tnmpOH"], capture_output=True, text=True,
                              check=False).stdout
        for line in text.splitlines():
            found = re.search(r'\(\("([^"]+)".*,rb(\d+),', line)
            if found:
                largest[found[1]] = max(largest.get(found[1], 0), int(found[2]))
    return largest


def measure(wire, options, sides):
    """Returns {(title, side name): [value of each turn]}, or None when a side failed."""
    values = {}
    for _ in range(options.turns):
        for title, request, key, _ in MEASURES:
            for side in sides:
                answer = side.ask(f"{request} seconds={options.seconds}", timeout_s=60.0)
                if answer is None:
                    return None
                values.setdefault((title, side.name), []).append(answer[key])
    return values


def run_delay(wire, options, delay_ms):
    wire.hold_back(options.bin / "tun_relay", round(delay_ms * 1000))
    enter = ["/usr/bin/env", "ip", "netns", "exec", wire.near]
    sides = [Side(name, [*enter, str(options.bin / program), "tcp", NEAR, wire.far])
             for name, program in (("raw tcp", "raw_floor"), ("caftan tcp", "caftan_bench"))]
    try:
        for side in sides:
            side.start()
        values = measure(wire, options, sides)
        buffers = receive_buffers(wire)
    finally:
        for side in sides:
            side.end()
        wire.cut()
    if values is None:
        return None
    rows = []
    for title, _, _, more_is_better in MEASURES:
        raw, caftan = (statistics.median(values[title, side.name]) for side in sides)
        spread = values[title, "caftan tcp"]
        cost = raw / caftan if more_is_better else caftan / raw
        unit = "calls/s" if more_is_better else "us"
        rows.append([f"{delay_ms:g} ms", title, f"{number(caftan)} {unit}", f"{number(raw)} {unit}", f"{cost:.2f}",
                     f"{number(min(spread))} - {number(max(spread))}"])
    rows.append([f"{delay_ms:g} ms", "receive buffer at last, KiB", number(buffers.get("caftan_bench", 0) / 1024),
                 number(buffers.get("raw_floor", 0) / 1024), "-", "-"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--delays", default="0.1,1,10", help="milliseconds that a packet is held back, each way")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one measurement")
    parser.add_argument("--mtu", type=int, default=1500)
    options = parser.parse_args()
    delays = [float(delay) for delay in options.delays.split(",")]
    if options.turns < 1 or not 0.01 <= options.seconds <= 10 or not all(0 <= delay <= 1000 for delay in delays):
        parser.error("--turns must be at least 1, --seconds 0.01 to 10, --delays 0 to 1000")
    print(describe_machine())
    print(f"\n## Two namespaces, packets of {options.mtu} bytes held back each way, medians of {options.turns} turns\n")
    wire = Wire(options.mtu)
    rows = []
    try:
        for delay in delays:
            found = run_delay(wire, options, delay)
            if found is None:
                return 1
            rows += found
    finally:
        wire.remove()
    print_table(["held back", "measure", "Caftan", "raw TCP", "cost, Caftan / raw", "Caftan's turns"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
