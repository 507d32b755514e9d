"""`python -m scheduler.demo.provider_sim`: the simulator without Django."""

from __future__ import annotations

import argparse
import sys

from scheduler.demo.provider_sim.server import run
from scheduler.demo.provider_sim.settings import add_arguments, settings_from


def main() -> int:
    """Parse the command line and serve; the exit status."""
    parser = argparse.ArgumentParser(prog="provider_sim", description="Run a simulated model provider.")
    add_arguments(parser)
    options = parser.parse_args()
    try:
        settings = settings_from(vars(options))
    except ValueError as error:
        parser.error(str(error))
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
