"""Compares connections over TCP with encrypted ones, in turns, beside what encryption costs without a socket: AES-128-GCM on one
core, and the CPU time that a TLS handshake takes at each side."""

import argparse
import statistics
import sys
from pathlib import Path

from report import describe_machine, number, print_table
from sides import Side

BULK = 4_194_304  # float32 elements in 16 MiB
# title, request, what is compared and whether more of it is better
MEASURES = (
    ("small call, 4 floats", "sync floats=4 calls=100000", "p50_us", False),
    ("64 in flight, 4 floats", "pipelined floats=4 window=64 calls=10000000", "calls_per_s", True),
    ("16 MiB there and back", f"sync floats={BULK} calls=1000", "p50_us", False),
)
SMALL_LIMIT = 1.25
SESSION_LIMIT_US = 2000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one measurement")
    options = parser.parse_args()
    if options.turns < 1 or not 0.01 <= options.seconds <= 10:
        parser.error("--turns must be at least 1, --seconds 0.01 to 10")
    plain, encrypted = (Side(f"caftan {kind}", [str(options.bin / "caftan_bench"), kind]) for kind in ("tcp", "tcp+tls"))
    bare = Side("tls", [str(options.bin / "tls_bench")])
    values = {}

    def ask(side, request, key):
        answer = side.ask(f"{request} seconds={options.seconds}", timeout_s=60.0)
        if answer is None:
            sys.exit(f"tls: {side.name}: {side.failure}")
        values.setdefault((side.name, request, key), []).append(answer[key])

    sides = (plain, encrypted, bare)
    bulk_cipher = f"aes floats={2 * BULK} calls=1000"  # 16 MiB there and back
    try:
        for side in sides:
            side.start()
        for _ in range(options.turns):
            for _, request, key, _ in MEASURES:
                ask(plain, request, key)
                ask(encrypted, request, key)
            ask(bare, bulk_cipher, "p50_us")
        for request in ("session", "session_certified"):
            for key in ("client_us", "server_us"):
                ask(bare, request, key)
    finally:
        for side in sides:
            side.end()

    cipher = statistics.median(values[bare.name, bulk_cipher, "p50_us"])
    rows = []
    for title, request, key, more_is_better in MEASURES:
        before, after = values[plain.name, request, key], values[encrypted.name, request, key]
        ratios = sorted(a / b if more_is_better else b / a for a, b in zip(before, after))
        unit = "calls/s" if more_is_better else "us"
        limit = {"small call, 4 floats": f"{SMALL_LIMIT}",
                 "16 MiB there and back": f"{1 + cipher / statistics.median(before):.2f}"}.get(title, "-")
        rows.append([title, f"{number(statistics.median(before))} {unit}", f"{number(statistics.median(after))} {unit}",
                     f"{statistics.median(ratios):.2f}", f"{ratios[0]:.2f} - {ratios[-1]:.2f}", limit])
    print(describe_machine())
    print(f"\n## Two processes over TCP of one host, medians of {options.turns} turns\n")
    print_table(["measure", "tcp", "tcp+tls", "cost, tls / tcp", "the turns' costs", "target"], rows)
    print(f"AES-128-GCM of 32 MiB on one core, without a socket: {number(cipher)} us; the target of 16 MiB there and back is "
          "tcp and this time.\n")
    sessions = [[name] + [number(values[bare.name, request, key][0]) for key in ("client_us", "server_us")] + [SESSION_LIMIT_US]
                for name, request in (("key made of the secret", "session"), ("certificates", "session_certified"))]
    print_table(["TLS handshake, CPU time", "client, us", "server, us", "target"], sessions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
