"""What the simulator can be told when it starts.

Decides options, their units and defaults. It must never read the environment: everything that matters is on the command
line, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scheduler.demo.provider_sim.faults import Fault, parse_faults
from scheduler.demo.provider_sim.limits import LIMITS, SCOPES, LimitSettings, is_amount

MODELS: Final = ("sim-small", "sim-large", "sim-embed")
EMBEDDING_MODEL: Final = "sim-embed"
MODEL_LATENCY_FACTOR: Final[Mapping[str, float]] = {"sim-small": 1.0, "sim-large": 2.5, "sim-embed": 0.25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One simulator. Latency is log-normal: half of the answers take longer than the median, `sigma` makes the tail."""

    host: str = "127.0.0.1"
    port: int = 0
    limits: LimitSettings = field(default_factory=LimitSettings)
    faults: tuple[Fault, ...] = ()
    latency_median_s: float = 0.4
    latency_sigma: float = 0.5
    latency_max_s: float = 60.0
    output_tokens_median: float = 60.0
    output_tokens_sigma: float = 0.6
    seed: int = 1
    scripted: bool = False
    api_key: str | None = None
    clock_skew_s: float = 0.0
    arrivals_max: int = 20_000
    url_file: Path | None = None
    exit_on_stdin_eof: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; `settings_from` reads them back."""
    option = parser.add_argument
    option("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    option("--port", type=int, default=0, help="port to listen on; 0 takes a free one (%(default)s)")
    option("--url-file", type=Path, help="write the URL to this file once listening")
    option("--rate", type=float, help="requests per second (token bucket); no limit without it")
    option("--burst", type=float, help="requests at once; default: one second of the rate")
    option("--tokens-per-minute", type=float, help="tokens per minute (token bucket); no limit without it")
    option("--tokens-burst", type=float, help="tokens at once; default: one minute of the rate")
    option("--input-tokens-per-minute", type=float, help="input tokens per minute, where input counts apart")
    option("--output-tokens-per-minute", type=float, help="output tokens per minute, where output counts apart")
    option("--concurrency", type=int, help="requests in flight; no limit without it")
    option("--scope", choices=SCOPES, default="global", help="what a limit counts (%(default)s)")
    option("--limits", type=Path, help="JSON file as for POST /limits; goes before the options above")
    option("--faults", type=Path, help="JSON file as for POST /faults")
    option("--latency-median-s", type=float, default=0.4, help="median time to answer (%(default)s)")
    option("--latency-sigma", type=float, default=0.5, help="spread of the log-normal latency (%(default)s)")
    option("--latency-max-s", type=float, default=60.0, help="no answer takes longer (%(default)s)")
    option("--output-tokens-median", type=float, default=60.0, help="median length of an answer (%(default)s)")
    option("--output-tokens-sigma", type=float, default=0.6, help="spread of the length (%(default)s)")
    option("--seed", type=int, default=1, help="seed of latency and chance (%(default)s)")
    option("--scripted", action="store_true", help="prompts like '[takes 0.25 s, 120 tokens in, 30 out]' are obeyed")
    option("--api-key", help="refuse requests without this key")
    option("--clock-skew-s", type=float, default=0.0, help="how far this provider's clock is ahead (%(default)s)")
    option("--exit-on-stdin-eof", action="store_true", help="stop when standard input closes, as when its parent dies")


def settings_from(options: Mapping[str, object]) -> Settings:
    """Settings from parsed options. Raises ValueError, with a sentence, for values that make no sense."""
    known = {name: options[name] for name in Settings.__dataclass_fields__ if name in options}
    limit_names = (*LIMITS, "scope")
    limits = LimitSettings().edited({name: options[name] for name in limit_names if options.get(name) is not None})
    limits_file, faults_file = options.get("limits"), options.get("faults")
    if isinstance(limits_file, Path):
        limits = limits.edited(_read_json(limits_file))
    known["limits"] = limits
    known["faults"] = parse_faults(_read_json(faults_file)) if isinstance(faults_file, Path) else ()
    for name in ("latency_median_s", "latency_sigma", "latency_max_s", "output_tokens_median", "output_tokens_sigma"):
        if not is_amount(options.get(name, 0.0)):
            raise ValueError(f"{name} must be a number that is not negative.")
    return Settings(**known)  # type: ignore[arg-type]  # argparse has converted each value to its field's type


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read as JSON: {error}") from error
