"""Starts the sides of the benchmark, asks them in turn, and ends what it started.

A side is a program that answers one request per line (measure.hpp). A side that spins while idle is stopped between
its turns, so that it does not share the cores with the others.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time

NOT_BUILT = "not built"


class Side:
    """One program and its peer processes. A side that fails stays failed and says why in `failure`."""

    START_TIMEOUT_S = 20.0

    def __init__(self, name, command, spins_when_idle=False):
        self.name = name
        self.command = command
        self.failure = None
        self._spins = spins_when_idle
        self._process = None
        self._peers = []
        self.measures = set()
        self._rest = b""

    def start(self):
        if not os.access(self.command[0], os.X_OK):
            self.failure = NOT_BUILT
            return
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
        ready = self._read_answer(self.START_TIMEOUT_S)
        if ready is not None:
            self.measures = set(ready["ready"].split())
            self._peers = ready["peers"]
            self._pause(signal.SIGSTOP)

    def pids(self):
        """Returns the ids of the program and of its peers."""
        return [self._process.pid, *self._peers]

    def offers(self, measure):
        return self.failure is None and measure in self.measures

    def ask(self, request, timeout_s):
        """Returns the answer as a dict, or None when this side has failed."""
        if self.failure is not None:
            return None
        self._pause(signal.SIGCONT)
        try:
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail("ended before: " + request)
            return None
        answer = self._read_answer(timeout_s)
        if answer is not None and "error" in answer:
            self._fail(answer["error"])
            return None
        self._pause(signal.SIGSTOP)
        return answer

    def end(self):
        """Ends the program; its peers end with it."""
        if self._process is None:
            return
        if self.failure is None:
            self._pause(signal.SIGCONT)
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process = None

    def _pause(self, which):
        if not self._spins:
            return
        for pid in (*self._peers, self._process.pid):
            try:
                os.kill(pid, which)
            except ProcessLookupError:
                self._fail("its process ended")
                return

    def _read_answer(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        pipe = self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return self._fail(f"no answer within {timeout_s:.0f} s")
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    code = self._process.wait()
                    return self._fail(f"ended with code {code}")
                self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        try:
            return json.loads(line)
        except json.JSONDecodeError as error:
            return self._fail(f"answered what is not JSON: {error}")

    def _fail(self, why):
        """Records the failure and takes the process down; it may be stuck, and a stuck side must not cost more time."""
        self.failure = why
        print(f"report: {self.name}: {why}", file=sys.stderr)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        return None


class BusyLoops:
    """Low-priority loops that keep the cores busy; each ends by itself when this process is gone."""

    LOOP = ("import os, time\n"
            "end = time.monotonic() + {limit}\n"
            "while time.monotonic() < end and os.getppid() == {parent}: sum(range(100000))\n")

    def __init__(self, count, limit_s):
        code = self.LOOP.format(limit=limit_s, parent=os.getpid())
        self._processes = [subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", code], start_new_session=True)
                           for _ in range(count)]

    def end(self):
        for process in self._processes:
            process.terminate()
            process.wait()
