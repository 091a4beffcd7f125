"""Compares the start of one run with 64 workers on one host and over network namespaces that stand for hosts, by ssh. Needs root,
ssh and sshd: it makes the namespaces and removes them."""

import argparse
import re
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "process" / "hosts"))

from namespaces import Hosts, Missing  # noqa: E402  pylint: disable=wrong-import-position
from report import describe_machine, print_table  # noqa: E402  pylint: disable=wrong-import-position

LIMIT = 1.5


def write_file(hosts, path, workers, is_spread):
    """Writes an application of `workers` workers of which the first ends the run when all are there."""
    text = f"""caftan = 1
[run]
name = "start"
placement = "{"hosts" if is_spread else "processes"}"
start_timeout = "5min"
[roles.driver]
type = "driver"
[roles.driver.uses]
others = "idle"
[roles.idle]
type = "idle"
replicas = {workers - 1}
"""
    if is_spread:
        names = [f"h{host}" for host in range(hosts.count)]
        places = ", ".join(f'"{name}"' for name in names)
        text = text.replace('[roles.driver]', 'launcher = "ssh"\n[roles.driver]').replace(
            'type = "driver"', 'type = "driver"\nhosts = ["h0"]').replace('type = "idle"', f'type = "idle"\nhosts = [{places}]')
        text += f'[cluster]\nsecret_file = "{hosts.folder}/secret"\n'
        for host, name in enumerate(names):
            text += f'[hosts.{name}]\naddress = "{hosts.address(host)}{":29500" if host == 0 else ""}"\n'
    path.write_text(text, encoding="utf-8")
    return path


def ready_s(hosts, program, path):
    """Returns after how many seconds the run's workers were ready, as the run says."""
    done = subprocess.run([*hosts.inside(0), str(program), "run", str(path)], capture_output=True, text=True, check=False,
                          cwd=hosts.folder, env=hosts.environment())
    found = re.search(r"ready after ([0-9.]+) s", done.stdout + done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"hosts: {path.name} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return float(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--workers", type=int, default=64)
    options = parser.parse_args()
    if options.turns < 1 or not 2 <= options.hosts <= 64 or options.workers < options.hosts:
        parser.error("--turns must be at least 1, --hosts 2 to 64, --workers at least as many as the hosts")
    program = (options.bin / "start_bench").resolve()
    here, spread = [], []
    try:
        with Hosts(options.hosts) as hosts:
            secret = hosts.folder / "secret"
            secret.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
            secret.chmod(0o600)
            files = [write_file(hosts, hosts.folder / f"{name}.toml", options.workers, name == "spread")
                     for name in ("here", "spread")]
            for _ in range(options.turns):
                here.append(ready_s(hosts, program, files[0]))
                spread.append(ready_s(hosts, program, files[1]))
    except Missing as missing:
        print(f"hosts: {missing}", file=sys.stderr)
        return 1
    print(describe_machine())
    print(f"\n## A start of {options.workers} workers, medians of {options.turns} turns\n")
    ratios = sorted(far / near for near, far in zip(here, spread))
    print_table(["one host, s", f"{options.hosts} hosts by ssh, encrypted, s", "hosts / host", "the turns' ratios", "target"],
                [[f"{statistics.median(here):.2f}", f"{statistics.median(spread):.2f}", f"{statistics.median(ratios):.2f}",
                  f"{ratios[0]:.2f} - {ratios[-1]:.2f}", f"{LIMIT}"]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
