"""`python -m scheduler.sdk.cli`, for where the command is not installed."""

from scheduler.sdk.cli.main import cronoq

if __name__ == "__main__":
    cronoq(prog_name="cronoq")
