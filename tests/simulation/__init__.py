"""Random worlds in virtual time around the real decisions: `python -m tests.simulation --seed N` replays one."""
