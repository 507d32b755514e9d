"""`python -m tests.simulation --seed N` replays a world; `--seeds A:B` plays a range and stops at the first failure."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.simulation import Failed, play
from tests.simulation.story import shrink, tell
from tests.simulation.worlds import Scale


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--seeds", default="0:200", help="play these: A:B, B excluded (default 0:200)")
    parser.add_argument("--tasks", type=int, default=Scale().tasks, help="at most this many tasks in a world")
    parser.add_argument("--log", action="store_true", help="print everything that happened")
    options = parser.parse_args(argv)
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last or int(first) + 1)) if options.seed is None else [options.seed]
    scale = Scale(tasks=options.tasks)
    plans = tasks = 0
    for seed in seeds:
        try:
            run = play(seed, scale)
        except Failed as failed:
            _say(tell(shrink(seed, scale, failed)))
            return 1
        plans, tasks = plans + run.watch.plans, tasks + len(run.ledger.tasks)
        if options.log:
            _say("\n".join(f"{time:9.3f}  {text}" for time, text in run.log))
    _say(f"{len(seeds)} worlds, {tasks} tasks, {plans} plans: every promise held.")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
