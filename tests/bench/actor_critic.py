#!/usr/bin/env python3
"""Trains CartPole with four actors and a learner, as configs/actor_critic_cartpole.toml has it, beside a bare loop over
Gymnasium's CartPole in Python, in turns, and prints frames per second and the learner's idle share against the targets.

    actor_critic.py --bin build/bench/tests/bench
    actor_critic.py --bin build/bench/tests/bench --rounds 9 --frames 2000000

Exit code: 0 when the trainings ran, else 1. Never because of a time that was measured. docs/performance.md explains the
measures.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from report import describe_machine, number, print_table
from targets import distance

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "configs" / "actor_critic_cartpole.toml"
TRAINED = re.compile(r"trained: ([\d,]+) frames, ([\d,]+) updates, ([\d.]+) s, ([\d.]+) k frames/s, policy lag ([\d.]+), "
                     r"queue ([\d.]+), learner idle (\d+) %")
# One environment, actions drawn before the clock starts. Prints steps per second, or nothing without Gymnasium.
LOOP = """
import sys, time
try:
    import gymnasium
except ImportError:
    sys.exit(3)
environment = gymnasium.make("CartPole-v1")
actions = [int(environment.action_space.sample()) for _ in range(4096)]
environment.reset(seed=0)
steps, start = 0, time.perf_counter()
while time.perf_counter() - start < float(sys.argv[1]):
    for action in actions:
        _, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset()
    steps += len(actions)
print(steps / (time.perf_counter() - start))
"""
NO_GYMNASIUM = 3


def train(command, frames, limit):
    """Returns what the training's line says, or None when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(command), "run", str(FILE), f"output.dir={folder}"]
        words += [f"roles.learner.config.{setting}"
                  for setting in (f"max_frames={frames}", f"evaluate_every={frames}", "target=1e9", "goal=0.0")]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
    found = TRAINED.search(ended.stdout)
    if ended.returncode != 0 or not found:
        print(f"actor_critic: exit code {ended.returncode}: {ended.stderr.strip()[-2000:]}", file=sys.stderr)
        return None
    return {"frames_per_s": 1e3 * float(found[4]), "lag": float(found[5]), "queue": float(found[6]), "idle": float(found[7])}


def step_gymnasium(python, seconds, limit):
    """Returns steps per second; None without Gymnasium."""
    ended = subprocess.run([python, "-c", LOOP, str(seconds)], capture_output=True, text=True, timeout=limit, check=False)
    if ended.returncode == 0:
        return float(ended.stdout)
    if ended.returncode != NO_GYMNASIUM:
        print(f"Gymnasium: {ended.stderr.strip()[-2000:]}", file=sys.stderr)
    return None


def print_measures(trainings, loops):
    rates = [training["frames_per_s"] for training in trainings]
    idle = median(training["idle"] for training in trainings)
    rows = [["frames/s, learning included", number(median(rates)), f"{number(min(rates))} - {number(max(rates))}", ">= 100,000",
             distance(median(rates), 100e3, at_least=True)]]
    if loops:
        ratio = median(rate / loop for rate, loop in zip(rates, loops))
        rows.append(["steps/s of a bare Gymnasium loop", number(median(loops)), f"{number(min(loops))} - {number(max(loops))}",
                     "-", "-"])
        rows.append(["frames/s over that", f"{ratio:.2f}", "-", ">= 3", distance(ratio, 3, at_least=True)])
    else:
        rows.append(["steps/s of a bare Gymnasium loop", "not measured: python3 has no module gymnasium", "-", "-", "-"])
    rows.append(["learner idle, %", number(idle), "-", "<= 20", distance(idle, 20)])
    for key, name in (("lag", "policy lag, updates"), ("queue", "trajectories that wait")):
        rows.append([name, number(median(training[key] for training in trainings)), "-", "none", "-"])
    print_table([f"4 actors, {len(trainings)} rounds", "median", "of the rounds", "target", "distance"], rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=5, help="turns of training and loop")
    parser.add_argument("--frames", type=int, default=1_000_000, help="of a training")
    parser.add_argument("--seconds", type=float, default=2, help="of a bare loop")
    parser.add_argument("--python", default="python3", help="interpreter that has Gymnasium")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a training or a loop")
    options = parser.parse_args()
    if options.rounds < 1 or options.frames < 10_000:
        parser.error("--rounds must be at least 1, --frames 10000")
    return options


def main():
    options = parse_options()
    command = options.bin.resolve().parents[1] / "bin" / "caftan"
    print(describe_machine() + "\n")
    trainings, loops = [], []
    for _ in range(options.rounds):
        training = train(command, options.frames, options.limit)
        if training is None:
            return 1
        trainings.append(training)
        loop = step_gymnasium(options.python, options.seconds, options.limit)
        if loop is not None:
            loops.append(loop)
    print_measures(trainings, loops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
