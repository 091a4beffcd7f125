"""Runs applications over four hosts (network namespaces with an sshd in each) by ssh and by plain variables, and compares
their fingerprints with those of one host; looks for names and parameters in a recording of all bytes between hosts; kills a
launcher, a host's processes and an sshd at seeded moments. Skips (77) without root, ip, ssh or sshd.

usage: hosts.py CAFTAN CONFIGS     CAFTAN_HOSTS_MOMENTS=20: so many kills of each kind, not 1
"""
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from namespaces import Hosts, Missing, Recording, command_of, kill

STOP_TIMEOUT_S = 5  # run.stop_timeout
BEAT_S = 1          # cluster.heartbeat
SILENCE_S = 5 * BEAT_S
FAR_SILENCE_S = 13 * BEAT_S  # LN-15
OUTAGE_S = 3        # heals up to 1 s later (session.md), and a connection may have been silent for a beat before
COUNT = 4
#           file                      of the run                        where its roles are
RUNS = (("cartpole", ["roles.observer.replicas=3"], {"agent": [0], "observer": [1, 2, 3]}),
        ("parameter_server", ["roles.trainer.replicas=3"], {"server": [0], "trainer": [1, 2, 3]}),
        ("rnn_lm", ["roles.head.type=rnn_lm.ps", "roles.trainer.uses.decoder=head"],
         {"trainer": [0], "ps": [1], "head": [2]}))
# overrides for a run that goes on until it is ended
ENDLESS = ["roles.observer.replicas=3", "roles.agent.config.steps_per_episode=3000", "roles.agent.config.solved_at=499",
           "roles.agent.config.max_episodes=100000"]
FAILURES = []


def expect(is_true, text):
    print(("ok    " if is_true else "FAIL  ") + text, flush=True)
    if not is_true:
        FAILURES.append(text)


def fingerprint(text):
    found = re.search(r"^fingerprint (sha256:[0-9a-f]{64})$", text, re.MULTILINE)
    return found[1] if found else None


class Trial:
    def __init__(self, caftan, configs, hosts):
        self.caftan = caftan
        self.configs = configs
        self.hosts = hosts
        self.secret = hosts.folder / "secret"
        self.secret.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
        self.secret.chmod(0o600)

    def command(self, file, overrides, roles):
        """Returns the command that runs the file over the hosts of its roles, by ssh."""
        used = sorted({host for places in roles.values() for host in places})
        text = (self.configs / f"{file}.test.toml").read_text(encoding="utf-8")
        for host in used:
            port = ":29500" if host == 0 else ""
            text += f'\n[hosts.h{host}]\naddress = "{self.hosts.address(host)}{port}"\n'
        path = self.hosts.folder / f"{file}.toml"
        path.write_text(text, encoding="utf-8")
        places = [f"roles.{role}.hosts=[{', '.join(chr(34) + f'h{host}' + chr(34) for host in where)}]"
                  for role, where in roles.items()]
        return [*self.hosts.inside(0), self.caftan, "run", str(path), *overrides, *places, "run.placement=hosts",
                "run.launcher=ssh", f"cluster.secret_file={self.secret}"]

    def run(self, command):
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.hosts.folder,
                              env=self.hosts.environment())

    def by_ssh(self):
        for file, overrides, roles in RUNS:
            overrides = [*overrides, "run.deterministic=true"]
            here = self.run([self.caftan, "run", str(self.configs / f"{file}.test.toml"), *overrides])
            far = self.run(self.command(file, overrides, roles))
            expect(far.returncode == 0 and fingerprint(far.stdout) is not None,
                   f"{file} over hosts by ssh: {fingerprint(far.stdout) or far.stderr.strip()[-300:]}")
            expect(fingerprint(far.stdout) == fingerprint(here.stdout), f"{file}: the fingerprint of one host")

    def by_variables(self, file, overrides, roles):
        workers = sum(len(hosts) for hosts in roles.values())
        arguments = [self.caftan, "run", str(self.configs / f"{file}.test.toml"), *overrides, "run.deterministic=true"]
        here = self.run(arguments)
        far = []
        for rank in range(workers):
            folder = self.hosts.folder / f"{file}{rank}"
            folder.mkdir()
            variables = {"RANK": str(rank), "WORLD_SIZE": str(workers), "MASTER_ADDR": self.hosts.address(0),
                         "MASTER_PORT": "29600"}
            far.append(subprocess.Popen(
                [*self.hosts.inside(rank), *arguments, "run.placement=hosts", "run.launcher=variables",
                 f"cluster.secret_file={self.secret}"], cwd=folder, env={**os.environ, **variables},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        texts = [process.communicate()[0] for process in far]
        found = [fingerprint(text) for text in texts if fingerprint(text)]
        expect(all(process.returncode == 0 for process in far) and found == [fingerprint(here.stdout)],
               f"{file} by variables: {found}")

    def recorded(self, overrides):
        """Returns all bytes of a run of rnn_lm, and pieces of the parameters that it has sent."""
        file, more, roles = RUNS[2]
        recording = Recording(self.hosts)
        done = self.run(self.command(file, ["run.deterministic=true", *more, *overrides], roles))
        data = recording.end()
        if done.returncode != 0:
            expect(False, f"{file}, recorded {overrides}: {done.stderr.strip()[-300:]}")
        pieces = []
        for path in sorted((self.hosts.folder / "runs/latest").glob("checkpoints/*/embedding")):
            saved = path.read_bytes()
            pieces += [saved[at:at + 32] for at in range(0, len(saved) - 32, 64)]
        return data, [piece for piece in pieces if len(set(piece)) >= 20]  # what is not all zeros or text

    def recording(self):
        for overrides, is_open in (([], False), (['tls.mode="off"'], True)):
            data, pieces = self.recorded(overrides)
            names = sum(data.count(name) for name in (b"rnn_lm", b"trainer"))
            found = sum(piece in data for piece in pieces)
            expect((names > 0) == is_open and (found > 0) == is_open and len(pieces) > 50,
                   f"{len(data)} bytes between hosts {overrides}: {names} names, {found} of {len(pieces)} pieces of parameters")

    def outages(self, settings, lost):
        """Cuts the link of one host after another for less than the silence that the run allows, then that of `lost` for good."""
        file, _, roles = RUNS[0]
        log = self.hosts.folder / "outages.log"
        with open(log, "wb") as text:
            run = subprocess.Popen(self.command(file, [*ENDLESS, f"cluster.heartbeat={BEAT_S}s", *settings], roles),
                                   cwd=self.hosts.folder, env=self.hosts.environment(), stdout=text, stderr=text)
        while "ready after" not in log.read_text(encoding="utf-8") and run.poll() is None:
            time.sleep(0.02)
        for host in range(COUNT):
            time.sleep(1)
            self.hosts.cut(host)
            time.sleep(OUTAGE_S)
            self.hosts.join(host)
        time.sleep(1)
        expect(run.poll() is None, f"{settings}: {COUNT} outages of {OUTAGE_S} s, {SILENCE_S} s are allowed")
        begin = time.monotonic()
        self.hosts.cut(lost)
        run.wait()
        took = time.monotonic() - begin
        while any(self.left()) and time.monotonic() < begin + SILENCE_S + FAR_SILENCE_S + 2:
            time.sleep(0.1)
        ended = time.monotonic() - begin
        left = self.left()
        self.hosts.join(lost)
        first = next((line for line in log.read_text(encoding="utf-8").splitlines() if "error: " in line), "")
        expect(run.returncode == 1 and "cluster.heartbeat" in first and took < SILENCE_S + 2 * BEAT_S + STOP_TIMEOUT_S + 2,
               f"{settings}: the link of host {lost} cut for good, {took:.1f} s: {first}")
        expect(not left, f"{ended:.1f} s after it was cut: {len(left)} left: {[command_of(pid) for pid in left]}")

    def kill(self, kind, seed):
        chance = random.Random(f"{kind} {seed}")
        file, _, roles = RUNS[0]
        run = subprocess.Popen(self.command(file, ENDLESS, roles), cwd=self.hosts.folder, env=self.hosts.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5 + 3 * chance.random())
        host = 1 + chance.randrange(COUNT - 1)
        find = {"launcher": lambda: [run.pid], "sshd": lambda: self.hosts.processes(host, "sshd: root"),
                "host": lambda: [pid for pid in self.hosts.processes(host, self.caftan)
                                 if command_of(pid).startswith(self.caftan)]}[kind]  # not the user's shell of ssh
        victims = find()
        while not victims and run.poll() is None:
            victims = find()
        begin = time.monotonic()
        victim = chance.choice(victims) if victims else None
        command = command_of(victim) if victim else "nothing to kill"
        if victim:
            kill(victim)
        limit = STOP_TIMEOUT_S + 2
        while time.monotonic() < begin + limit and any(self.left()):
            time.sleep(0.02)
        took = time.monotonic() - begin
        left = self.left()
        for pid in left:
            kill(pid)
        error = run.communicate()[1]
        first = next((line for line in error.splitlines() if "error: " in line), "")
        is_said = (run.returncode == -signal.SIGKILL if kind == "launcher" else
                   re.search(r"^error: .* was (lost with host|killed by signal 9)", error, re.MULTILINE))
        expect(bool(victims) and not left and run.returncode != 0 and bool(is_said),
               f"kill -9 of {kind} ({command}), moment {seed}: {took:.1f} s, {len(left)} left; {first}")

    def left(self):
        return [pid for host in range(COUNT) for pid in self.hosts.processes(host, self.caftan)]


def main():
    caftan, configs = sys.argv[1:]
    try:
        with Hosts(COUNT) as hosts:
            trial = Trial(str(Path(caftan).resolve()), Path(configs).resolve(), hosts)
            trial.by_ssh()
            for run in RUNS:
                trial.by_variables(*run)
            trial.recording()
            trial.outages(["tls.mode=on"], COUNT - 1)
            trial.outages(["tls.mode=off"], 0)
            if hosts.bound_pauses():
                trial.outages(["cluster.channel=ucx"], 1)  # UCX's own TCP does not bound them (docs/protocols/ucx.md)
            for seed in range(int(os.environ.get("CAFTAN_HOSTS_MOMENTS", "1"))):
                for kind in ("launcher", "host", "sshd"):
                    trial.kill(kind, seed)
    except Missing as missing:
        if FAILURES:
            return 1
        print(f"skipped: {missing}")
        return 77
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
