"""What worker.py uses of Gymnasium, in plain Python, with environments that behave as their names say."""
import os
import types

from . import spaces


class Counter:
    """Observes [number of steps, seed]; ends after `length` steps."""

    def __init__(self, spec, length=4, continuous=False):
        self.spec, self.length, self.seed, self.steps, self.resets = spec, length, 0, 0, 0
        self.observation_space = spaces.Box([-1e9, -1e9], [1e9, 1e9])
        self.action_space = spaces.Box([-2.0], [2.0]) if continuous else spaces.Discrete(3, start=5)

    def reset(self, seed=None):
        if seed is not None:
            self.seed, self.resets = seed, 0
        else:
            self.resets += 1
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return [float(self.steps), float(self.seed % 1000 + self.resets / 8)]

    def step(self, action):
        self.steps += 1
        fault = self.spec.id
        if self.steps == 2:
            if fault == "Raises-v0":
                raise ValueError("no more fuel")
            if fault == "Dies-v0":
                os._exit(7)
            if fault == "Hangs-v0":
                while True:
                    pass
            if fault == "Nan-v0":
                return [float("nan"), 0.0], 0.0, False, False, {}
            if fault == "NanReward-v0":
                return self.observe(), float("nan"), False, False, {}
            if fault == "Shape-v0":
                return [0.0, 0.0, 0.0], 0.0, False, False, {}
        reward = float(action[0]) if fault == "Torque-v0" else float(action)
        cut = fault == "Cut-v0" and self.steps == 3
        return self.observe(), reward, self.steps == self.length, cut, {}

    def close(self):
        pass


def make(name, disable_env_checker=False):
    faults = ("Raises-v0", "Dies-v0", "Hangs-v0", "Nan-v0", "NanReward-v0", "Shape-v0", "Cut-v0", "Count-v0", "Torque-v0", "Words-v0")
    if name not in faults:
        raise LookupError(f"Environment `{name}` doesn't exist.")
    spec = types.SimpleNamespace(id=name, max_episode_steps=4, reward_threshold=9.5)
    made = Counter(spec, continuous=name == "Torque-v0")
    if name == "Words-v0":
        made.action_space = spaces.Text()
    return made
