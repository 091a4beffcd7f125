"""Runs applications under a Slurm of one node that this test starts, by the script that `plan --slurm` prints, and compares
their fingerprints with those of plain runs; kills a task and Slurm's step, and cancels the job, at seeded moments.
Skips (77) without root, Slurm or munge (Debian: slurm-wlm munge).

usage: slurm.py CAFTAN CONFIGS     CAFTAN_HOSTS_MOMENTS=20: so many of each kind, not 1
"""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hosts import FAILURES, STOP_TIMEOUT_S, expect, fingerprint
from namespaces import Missing, command_of, is_running, kill, need_tools, tool

START_TIMEOUT_S = 30  # run.start_timeout
FILES = {"cartpole": 3, "parameter_server": 3, "rnn_lm": 2}  # and their workers


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def output(*command):
    """Returns what a command prints; its failure is one of the test."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


class Slurm:
    """A controller and one node with 8 processors, whatever the machine has."""

    def __enter__(self):
        need_tools("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue")
        self.folder = Path(tempfile.mkdtemp(prefix="caftan-slurm-"))
        self._started = []
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        (self.folder / "key").write_bytes(os.urandom(128))
        (self.folder / "key").chmod(0o600)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(f"""ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
""", encoding="ascii")
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        try:
            self._start("munged", "--foreground", "--force", f"--key-file={self.folder}/key",
                        f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid",
                        f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log")
            self._start("slurmctld", "-D")
            self._start("slurmd", "-D")
            self._wait_for_node()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self._started):
            process.terminate()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, name, *arguments):
        log = open(self.folder / f"{name}.out", "wb")  # pylint: disable=consider-using-with
        self._started.append(subprocess.Popen([tool(name), *arguments], stdout=log, stderr=log))
        time.sleep(1)

    def _wait_for_node(self):
        until = time.monotonic() + 20
        while "idle" not in subprocess.run([tool("sinfo"), "-h", "-o", "%T"], capture_output=True, text=True,
                                           check=False).stdout:
            if time.monotonic() > until:
                raise Missing("Slurm has no idle node: " + (self.folder / "slurmd.out").read_text(errors="replace")[-400:])
            time.sleep(0.2)

    def submit(self, script, *options):
        """Returns the job's number."""
        path = self.folder / "job.sh"
        path.write_text(script, encoding="utf-8")
        return output(tool("sbatch"), "--parsable", f"--chdir={self.folder}", *options, str(path)).strip()


class Trial:
    def __init__(self, caftan, configs, slurm):
        self.caftan = caftan
        self.configs = configs
        self.slurm = slurm
        self.secret = slurm.folder / "secret"
        self.secret.write_text(os.urandom(32).hex() + "\n", encoding="ascii")
        self.secret.chmod(0o600)

    def script(self, file, *overrides):
        return output(self.caftan, "plan", str(self.configs / f"{file}.test.toml"), f"cluster.secret_file={self.secret}",
                    *overrides, "--slurm")

    def applications(self):
        for file, workers in FILES.items():
            here = subprocess.run([self.caftan, "run", str(self.configs / f"{file}.test.toml"), "run.deterministic=true"],
                                  capture_output=True, text=True, check=False, cwd=self.slurm.folder)
            script = self.script(file, "run.deterministic=true")
            self.slurm.submit(script, "--wait", f"--output={self.slurm.folder}/{file}.log")
            text = (self.slurm.folder / f"{file}.log").read_text(encoding="utf-8")
            found = fingerprint(text)
            expect(f"--ntasks={workers}" in script and found is not None and found == fingerprint(here.stdout),
                   f"{file} by Slurm, {workers} tasks: {found}" + ("" if found else text[-300:]))

    def too_few(self):
        done = subprocess.run(
            [tool("srun"), "--ntasks=2", self.caftan, "run", str(self.configs / "cartpole.test.toml"),
             "run.placement=hosts", "run.launcher=slurm", f"cluster.secret_file={self.secret}"],
            capture_output=True, text=True, check=False, cwd=self.slurm.folder)
        expect(done.returncode == 2 and "too few processes for the file: 2 instead of 3" in done.stderr,
               f"two tasks for three workers: exit code {done.returncode}")

    def tasks(self):
        """Returns the ids of the run's processes, zombies aside."""
        pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
        return [pid for pid in pids if command_of(pid).split(" ")[0] == self.caftan and is_running(pid)]

    def steps(self, job):
        done = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=False).stdout
        return [int(line.split()[0]) for line in done.splitlines() if f"slurmstepd: [{job}.0]" in line]

    def end_by(self, kind, seed):
        chance = random.Random(f"{kind} {seed}")
        script = self.script("cartpole", "roles.agent.config.steps_per_episode=3000", "roles.agent.config.solved_at=499",
                             "roles.agent.config.max_episodes=100000")
        log = self.slurm.folder / f"{kind}-{seed}.log"
        job = self.slurm.submit(script, f"--output={log}")
        while not self.tasks():
            time.sleep(0.02)
        time.sleep(3 * chance.random())
        has_met = "ready after" in log.read_text(encoding="utf-8", errors="replace")
        begin = time.monotonic()
        if kind == "task":
            kill(chance.choice(self.tasks()))
        elif kind == "step":
            kill(self.steps(job)[0])
        else:
            output(tool("scancel"), job)
        # Before all have met, those that are there cannot know that one of them will not come.
        limit = STOP_TIMEOUT_S + 2 + (0 if has_met or kind != "task" else START_TIMEOUT_S)
        while time.monotonic() < begin + limit and self.tasks():
            time.sleep(0.02)
        took = time.monotonic() - begin
        left = self.tasks()
        for pid in left:
            kill(pid)
        expect(not left, f"{kind} ended, moment {seed}{'' if has_met else ', while they meet'}: {took:.1f} s, {len(left)} left")
        subprocess.run([tool("scancel"), job], check=False)
        while job in subprocess.run([tool("squeue"), "-h", "-o", "%i"], capture_output=True, text=True,
                                    check=False).stdout.split():
            time.sleep(0.1)


def main():
    caftan, configs = sys.argv[1:]
    try:
        with Slurm() as slurm:
            trial = Trial(str(Path(caftan).resolve()), Path(configs).resolve(), slurm)
            trial.applications()
            trial.too_few()
            for seed in range(int(os.environ.get("CAFTAN_HOSTS_MOMENTS", "1"))):
                for kind in ("task", "step", "job"):
                    trial.end_by(kind, seed)
    except Missing as missing:
        print(f"skipped: {missing}")
        return 77
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
