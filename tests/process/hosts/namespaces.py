"""Network namespaces that stand for hosts: a bridge in one of them connects the others, with a token bucket on each link and
an sshd in each. Nothing of the machine's own network or of the user's ~/.ssh is touched. Needs root."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UCX = {"UCX_TLS": "tcp"}  # not the memory that the namespaces share
RATE = ["tbf", "rate", "2gbit", "burst", "256kb", "latency", "20ms"]


class Missing(Exception):
    """The machine lacks something, which the text names."""


def need_tools(*names):
    """Raises Missing unless this is root and has these programs."""
    if os.geteuid() != 0:
        raise Missing("namespaces need root")
    for name in names:
        if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            raise Missing(f"there is no {name}")


def tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def command_of(pid):
    """Returns the command line of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def is_running(pid):
    """Returns whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself


class Hosts:
    """`with Hosts(4) as hosts`: hosts.address(0) is the address of the first one."""

    def __init__(self, count):
        need_tools("ip", "sshd", "ssh", "ssh-keygen")
        self.count = count
        self.folder = Path(tempfile.mkdtemp(prefix="caftan-hosts-"))
        self._switch = f"caftan-{os.getpid()}-switch"
        self._made = []
        self._sshds = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for sshd in self._sshds:
            sshd.terminate()
            sshd.wait()
        for name in self._made:
            for pid in self._pids(name):
                kill(pid)
            subprocess.run([tool("ip"), "netns", "del", name], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def name(self, host):
        return f"caftan-{os.getpid()}-{host}"

    def address(self, host):
        return f"10.199.77.{10 + host}"

    def inside(self, host):
        """Returns what stands before a command that runs on that host, or in the bridge's namespace (None)."""
        return [tool("ip"), "netns", "exec", self._switch if host is None else self.name(host)]

    def bound_pauses(self):
        """Bounds the pauses between TCP's repetitions on all hosts (Linux 6.15 on). Returns whether the system can."""
        return all(subprocess.run([*self.inside(host), "sh", "-c", "echo 1000 > /proc/sys/net/ipv4/tcp_rto_max_ms"],
                                  stderr=subprocess.DEVNULL, check=False).returncode == 0 for host in range(self.count))

    def cut(self, host):
        """Loses all packets of that host, as a switch that is out of order."""
        subprocess.run([tool("ip"), "-n", self._switch, "link", "set", f"port{host}", "nomaster"], check=True)

    def join(self, host):
        """Ends what `cut` began."""
        subprocess.run([tool("ip"), "-n", self._switch, "link", "set", f"port{host}", "master", "switch"], check=True)

    def environment(self):
        """Returns the environment in which `ssh` reaches the hosts without a question."""
        return {**os.environ, **UCX, "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def processes(self, host, text):
        """Returns the ids of the host's processes, zombies aside, whose command lines have the text."""
        return [pid for pid in self._pids(self.name(host)) if text in command_of(pid) and is_running(pid)]

    def _pids(self, name):
        done = subprocess.run([tool("ip"), "netns", "pids", name], capture_output=True, text=True, check=False)
        return [int(line) for line in done.stdout.split()]

    def _make(self):
        ip = tool("ip")
        self._add(self._switch)
        call(ip, "-n", self._switch, "link", "add", "switch", "type", "bridge")
        call(ip, "-n", self._switch, "link", "set", "switch", "up")
        for key in ("host_key", "user_key"):
            call(tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        (self.folder / "sshd_config").write_text(
            f"Port 22\nHostKey {self.folder}/host_key\nAuthorizedKeysFile {self.folder}/user_key.pub\n"
            f"PermitRootLogin yes\nUsePAM no\nSetEnv UCX_TLS={UCX['UCX_TLS']}\nStrictModes no\nPidFile none\n", encoding="ascii")
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/user_key\n  UserKnownHostsFile {self.folder}/known\n"
            "  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n", encoding="ascii")
        wrapper = self.folder / "ssh"
        wrapper.write_text(f"#!/bin/sh\nexec {tool('ssh')} -F {self.folder}/ssh_config \"$@\"\n", encoding="ascii")
        wrapper.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd insists on it
        for host in range(self.count):
            name = self.name(host)
            self._add(name)
            call(ip, "-n", self._switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            call(ip, "-n", self._switch, "link", "set", f"port{host}", "master", "switch", "up")
            call(ip, "-n", name, "addr", "add", self.address(host) + "/24", "dev", "eth0")
            call(ip, "-n", name, "link", "set", "eth0", "up")
            call(ip, "-n", name, "link", "set", "lo", "up")
            if tool("tc"):
                call(tool("tc"), "-n", name, "qdisc", "add", "dev", "eth0", "root", *RATE)
            self._sshds.append(subprocess.Popen([*self.inside(host), tool("sshd"), "-D", "-e", "-f",
                                                 str(self.folder / "sshd_config")], stderr=subprocess.DEVNULL))
        for host in range(self.count):
            self._wait_for_sshd(host)

    def _add(self, name):
        call(tool("ip"), "netns", "add", name)
        self._made.append(name)

    def _wait_for_sshd(self, host):
        until = time.monotonic() + 10
        while True:
            done = subprocess.run([*self.inside(0), str(self.folder / "ssh"), self.address(host), "true"],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            if time.monotonic() > until:
                raise Missing(f"no sshd in a namespace: {done.stderr.strip()}")
            time.sleep(0.1)


class Recording:
    """All bytes between the first host and the others, in a file."""

    CODE = """
import socket, sys
sink = open(sys.argv[1], "wb", buffering=0)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
wire.bind(("port0", 0))
print("ready", flush=True)
while True:
    sink.write(wire.recv(1 << 17))
"""

    def __init__(self, hosts):
        self._path = hosts.folder / "recording"
        self._process = subprocess.Popen([*hosts.inside(None), sys.executable, "-c", self.CODE, str(self._path)],
                                         stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()

    def end(self):
        """Returns the bytes."""
        time.sleep(0.5)
        self._process.terminate()
        self._process.wait()
        return self._path.read_bytes()
