"""`manage.py replay_trace FILE.csv`: how traffic of the past would have fared under other limits, tenants and pools."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import orjson
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.management.own_database import is_inside, run_in_own_database
from scheduler.replay.comparing import compare, compare_live
from scheduler.replay.faults import ReplayRefused
from scheduler.replay.live import prepare_database
from scheduler.replay.page import as_html
from scheduler.replay.provider import Provider
from scheduler.replay.reading import parse_price, parse_setup, read_file, variant, with_words
from scheduler.replay.settings import Setup
from scheduler.replay.summary import Summary
from scheduler.replay.text import as_text
from scheduler.replay.trace import Trace, first_part, read_trace

FORECASTS: Final = 64
SETUPS_MAX: Final = 12
SPEED_MAX: Final = 1000.0


class Command(BaseCommand):
    """Needs no database in virtual time; a live replay makes one of its own and drops it."""

    help = "Replay a trace (CSV: time, input tokens, output tokens) under the settings given, and report."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        option = parser.add_argument
        option("trace", type=Path, metavar="FILE.csv", help="columns TIMESTAMP, ContextTokens, GeneratedTokens")
        option("--settings-file", type=Path, metavar="FILE.toml", help="pools, limits, tenants, classes, prices")
        option("--set", action="append", default=[], metavar="KEY=VALUE", help="slots, rpm, tpm, concurrency, or a.b.c")
        option("--setting", action="append", default=[], metavar="NAME:KEY=VALUE,…", help="one more to compare with")
        option("--compare", nargs="+", type=Path, default=[], metavar="FILE.toml", help="files to compare with")
        option("--price", metavar="input=N,output=N", help="US dollars for a million tokens; without it no cost")
        option("--seed", type=int, help="repeat another draw of tenants, classes and noise")
        option("--from-s", type=float, default=0.0, help="leave out what came earlier (seconds from the first)")
        option("--until-s", type=float, default=float("inf"), help="leave out what came later")
        option("--forecasts", type=int, default=FORECASTS, help="forecasts to judge; 0: none (%(default)s)")
        option("--live", action="store_true", help="replay live as well: a real engine, a provider, real time")
        option("--speed", type=float, help="how many times as fast (default: 20; 1 with --provider)")
        option("--provider", metavar="URL", help="an OpenAI-compatible API instead of the simulated provider")
        option("--model", metavar="NAME", help="the model to ask for at --provider")
        option("--api-key-env", metavar="VARIABLE", help="environment variable that holds the key for --provider")
        option("--json", action="store_true", help="print one JSON object")
        option("--html", type=Path, metavar="FILE.html", help="write a report of one file, with plots")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read everything, replay, then report; a fault in the input ends it before anything is done."""
        try:
            trace = read_trace(options["trace"])
            if options["from_s"] > 0.0 or options["until_s"] < float("inf"):
                trace = first_part(trace, from_s=options["from_s"], until_s=options["until_s"])
            setups = _setups(options)
            if options["live"] and not is_inside():
                _check_live(options, setups)
                sys.exit(run_in_own_database())
            summaries = compare(trace, setups, forecasts=max(0, options["forecasts"]))
            if options["live"]:
                call_command("migrate", verbosity=0, interactive=False)
                prepare_database()
                provider, speed = _provider(options), options["speed"] or (1.0 if options["provider"] else 20.0)
                summaries.append(asyncio.run(compare_live(trace, setups[0], speed=speed, provider=provider)))
        except ReplayRefused as refused:
            raise CommandError(str(refused)) from refused
        self._report(trace, summaries, options)

    def _report(self, trace: Trace, summaries: list[Summary], options: dict[str, Any]) -> None:
        if options["html"] is not None:
            _write(options["html"], as_html(trace, summaries))
            print(f"The report is in {options['html']}.", file=sys.stderr)  # noqa: T201 - beside what is piped on
        if options["json"]:
            head = {"trace": trace.name, "requests": len(trace.requests), "span_s": trace.span_s, "notes": trace.notes}
            body = {**head, "settings": [asdict(s) for s in summaries]}
            self.stdout.write(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        else:
            self.stdout.write(as_text(trace, summaries), ending="")


def _setups(options: dict[str, Any]) -> list[Setup]:
    """The settings to replay under: those of the file and the words, the variants of them, and those of other files."""
    path = options["settings_file"]
    tree = with_words({} if path is None else read_file(path), options["set"])
    prices = {} if options["price"] is None else {"price": parse_price(options["price"])}
    named = {} if options["compare"] and path is None and not options["set"] else {path.stem if path else "base": tree}
    for name, changed in [variant(tree, text) for text in options["setting"]]:
        named[_free(name, named)] = changed
    for file in options["compare"]:
        named[_free(file.stem, named)] = read_file(file)
    if len(named) > SETUPS_MAX:
        raise ReplayRefused(f"There are {len(named)} settings; at most {SETUPS_MAX} can be compared.", [])
    setups = [parse_setup(name, {**each, **prices}) for name, each in named.items()]
    return setups if options["seed"] is None else [replace(setup, seed=options["seed"]) for setup in setups]


def _check_live(options: dict[str, Any], setups: list[Setup]) -> None:
    speed = options["speed"]
    if len(setups) > 1:
        raise ReplayRefused("A live replay takes one setting; compare others in virtual time.", [])
    if speed is not None and not 0.0 < speed <= SPEED_MAX:
        raise ReplayRefused(f"--speed must be above 0 and at most {SPEED_MAX:g}.", [])
    if (options["provider"] is None) != (options["model"] is None):
        raise ReplayRefused("--provider and --model go together.", [])


def _provider(options: dict[str, Any]) -> Provider | None:
    if options["provider"] is None:
        return None
    return Provider(base_url=options["provider"], model=options["model"], api_key_env=options["api_key_env"])


def _free(name: str, taken: dict[str, Any]) -> str:
    if name in taken:
        raise ReplayRefused(f"Two settings are named {name!r}; give each a name of its own.", [])
    return name


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
