"""Small traces: bursts of requests as a model service sees them, written as such services write them."""

from __future__ import annotations

from pathlib import Path
from random import Random

from scheduler.replay.reading import parse_setup, with_words
from scheduler.replay.settings import Setup
from scheduler.replay.trace import Request, Trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


def bursts(count: int = 200, *, seed: int = 1, every_s: float = 20.0, size: int = 20) -> Trace:
    """Requests in bursts of `size`, a burst every `every_s` seconds on average."""
    chance = Random(seed)
    requests: list[Request] = []
    at = 0.0
    while len(requests) < count:
        requests += [Request(at + 0.05 * n, chance.randint(10, 4000), chance.randint(1, 60)) for n in range(size)]
        at += every_s * chance.uniform(0.5, 1.5)
    return Trace("bursts.csv", 1_700_000_000.0, tuple(requests[:count]))


def setup(*words: str, name: str = "base") -> Setup:
    """Settings from words like `rpm=60`."""
    return parse_setup(name, with_words({}, words))


def write(path: Path, *rows: str, header: str = HEADER, end: str = "\n") -> Path:
    """A file of these lines."""
    path.write_bytes("".join(line + end for line in (header, *rows)).encode())
    return path


def rows_of(trace: Trace) -> list[str]:
    """A trace as lines of a file, seconds since 1970 as its times."""
    return [f"{trace.began_at + r.at_s:.4f},{r.input_tokens},{r.output_tokens}" for r in trace.requests]
