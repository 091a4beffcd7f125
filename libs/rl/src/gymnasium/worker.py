"""Steps environments of Gymnasium for Caftan, over the socket whose descriptor is the last argument.

The frames and rules are in docs/protocols/gymnasium.md. Caftan has this program in its library and starts it by itself.
"""
import os
import select
import signal
import socket
import struct
import sys
import threading

VERSION = 1
HELLO, SPEC, RESET, OBSERVATIONS, STEP, OUTCOME, ERROR, CLOSE = range(1, 9)
MISSING, UNKNOWN, RAISED, UNSUPPORTED, SHAPE, PROTOCOL = range(1, 7)
HEADER = struct.Struct("<IHH")
DISCRETE, CONTINUOUS = 0, 1


class Refused(Exception):
    """What ends this process: its kind, the environment (-1: none) and a text."""

    def __init__(self, kind, text, environment=-1):
        super().__init__(text)
        self.kind, self.text, self.environment = kind, text, environment


def describe(error):
    return f"{type(error).__name__}: {error}"


class Peer:
    """The frames of the socket."""

    def __init__(self, connection):
        self.connection = connection

    def send(self, kind, *parts):
        body = b"".join(parts)
        self.connection.sendall(HEADER.pack(len(body), kind, 0) + body)

    def read(self, size):
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self.connection.recv_into(view)
            if not count:
                sys.exit(0)  # Caftan's process is gone, or has closed
            view = view[count:]
        return data

    def receive(self):
        size, kind, _ = HEADER.unpack(self.read(HEADER.size))
        return kind, self.read(size)


def watch(connection):
    """Ends this process with its peer, also while an environment computes."""
    poll = select.poll()
    poll.register(connection, 0)  # what is reported without being asked for: the end of the connection
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)


class Environments:
    """Environments of one id, their spaces as flat floats."""

    def __init__(self, gymnasium, name, count, resets):
        self.resets = resets
        try:
            self.all = [gymnasium.make(name, disable_env_checker=True) for _ in range(count)]
        except Exception as error:
            raise Refused(UNKNOWN, describe(error))
        first = self.all[0]
        self.flatten, self.size = self.observations_of(gymnasium, first.observation_space)
        self.unpack_actions = self.actions_of(first.action_space)
        self.pack = struct.Struct(f"<{self.size}f").pack
        self.float32 = float32_of_numpy()
        self.bytes = 4 * self.size
        limits = first.spec
        self.max_steps = getattr(limits, "max_episode_steps", None) or 0
        self.threshold = getattr(limits, "reward_threshold", None)

    def observations_of(self, gymnasium, space):
        """Returns a function that flattens an observation, None where it is flat, and the floats of one."""
        if type(space).__name__ == "Box":
            size = 1
            for length in space.shape:
                size *= length
            return (None if len(space.shape) == 1 else lambda value: value.ravel()), size
        try:
            size = gymnasium.spaces.utils.flatdim(space)
        except Exception as error:
            raise Refused(UNSUPPORTED, f"observations of {space} have no fixed number of floats ({describe(error)})")
        return (lambda value: gymnasium.spaces.utils.flatten(space, value)), size

    def actions_of(self, space):
        """Returns a function that makes the actions of a step from their bytes."""
        kind = type(space).__name__
        count = len(self.all)
        if kind == "Discrete":
            self.kind, self.actions, self.low, self.high = DISCRETE, int(space.n), [], []
            start = int(getattr(space, "start", 0))
            layout = struct.Struct(f"<{count}i")
            return (lambda data: layout.unpack(data)) if start == 0 else (lambda data: [start + a for a in layout.unpack(data)])
        if kind != "Box":
            raise Refused(UNSUPPORTED, f"actions of {space}: they are numbers (Discrete) or floats (Box)")
        shape = space.shape
        self.low, self.high = flat_list(space.low), flat_list(space.high)
        self.kind, self.actions = CONTINUOUS, len(self.low)
        try:
            import numpy
        except ImportError:
            layout = struct.Struct("<" + f"{self.actions}f" * count)
            return lambda data: [layout.unpack(data)[i * self.actions:(i + 1) * self.actions] for i in range(count)]
        dtype = space.dtype
        return lambda data: numpy.frombuffer(data, "<f4").astype(dtype).reshape(count, *shape)

    def spec(self):
        known = self.threshold is not None
        head = struct.pack("<IIIIIId", VERSION, self.size, self.kind, self.actions, self.max_steps, known,
                           float(self.threshold) if known else 0.0)
        return head + struct.pack(f"<{2 * len(self.low)}f", *self.low, *self.high)

    def encode(self, observation, index):
        """Returns the floats of an observation as bytes."""
        try:
            if self.flatten is not None:
                observation = self.flatten(observation)
            if getattr(observation, "dtype", None) is self.float32:
                data = observation.tobytes()
            else:
                data = self.pack(*observation)
        except Exception as error:
            raise Refused(SHAPE, f"an observation is no vector of {self.size} floats ({describe(error)})", index)
        if len(data) != self.bytes:
            raise Refused(SHAPE, f"an observation has {len(data) // 4} values, its space says {self.size}", index)
        return data

    def reset(self, index, seed=None):
        try:
            observation, _ = self.all[index].reset(seed=seed)
        except Exception as error:
            raise Refused(RAISED, "reset: " + describe(error), index)
        return self.encode(observation, index)

    def step(self, data):
        count = len(self.all)
        rewards, terminated, truncated = [0.0] * count, bytearray(count), bytearray(count)
        observations, last = [], []
        index = 0
        actions = self.unpack_actions(data)
        for index, environment in enumerate(self.all):
            try:
                observation, reward, ended, cut, _ = environment.step(actions[index])
                rewards[index] = float(reward)
            except Exception as error:
                raise Refused(RAISED, "step: " + describe(error), index)
            encoded = self.encode(observation, index)
            if ended or cut:
                terminated[index], truncated[index] = bool(ended), bool(cut)
                if self.resets:
                    last.append(encoded)
                    encoded = self.reset(index)
            observations.append(encoded)
        return [struct.pack(f"<{count}d", *rewards), terminated, truncated, *observations, *last]


def float32_of_numpy():
    """Returns the type of arrays whose bytes are sent as they are; without NumPy there are none."""
    try:
        import numpy
    except ImportError:
        return object()
    return numpy.dtype("<f4")


def flat_list(values):
    return [float(value) for value in (values.ravel() if hasattr(values, "ravel") else values)]


def import_gymnasium():
    try:
        import gymnasium
    except ImportError as error:
        raise Refused(MISSING, f"{sys.executable}: {error}")
    return gymnasium


def serve(peer):
    kind, body = peer.receive()
    if kind != HELLO:
        raise Refused(PROTOCOL, f"the first frame is of kind {kind}, not a hello")
    version, count, resets = struct.unpack_from("<III", body)
    if version != VERSION:
        raise Refused(PROTOCOL, f"version {version} of the protocol, this program speaks {VERSION}")
    environments = Environments(import_gymnasium(), body[12:].decode(), count, resets)
    peer.send(SPEC, environments.spec())
    while True:
        kind, body = peer.receive()
        if kind == STEP:
            peer.send(OUTCOME, *environments.step(body))
        elif kind == RESET:
            orders = struct.iter_unpack("<IIQ", body)
            peer.send(OBSERVATIONS, *[environments.reset(index, seed if seeded else None) for index, seeded, seed in orders])
        elif kind == CLOSE:
            for environment in environments.all:
                environment.close()
            return
        else:
            raise Refused(PROTOCOL, f"a frame of kind {kind}")


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that started this process ends it
    os.dup2(2, 1)  # what environments print is no result of the run
    connection = socket.socket(fileno=int(sys.argv[-1]))
    threading.Thread(target=watch, args=(connection,), daemon=True).start()
    peer = Peer(connection)
    try:
        serve(peer)
    except Refused as refused:
        peer.send(ERROR, struct.pack("<Ii", refused.kind, refused.environment), refused.text.encode()[:4096])
    os._exit(0)  # no environment's exit handler keeps this process


main()
