"""Reads settings from TOML, `key=value` words and named variants of both.

Decides which keys exist and which values make sense; refuses the rest with every fault, named by its key. Short words
stand for the keys that are asked about most: `slots`, `rpm`, `tpm`, `concurrency`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar

from scheduler.policy.declarations import (
    PERMITS_MAX,
    QUEUED_MAX,
    RATE_MAX,
    SLOTS_MAX,
    WEIGHT_MAX,
    fault_in_name,
    fault_in_slug,
)
from scheduler.policy.types import PriorityClass
from scheduler.replay.faults import Faults, ReplayRefused
from scheduler.replay.settings import ClassModel, Counts, LimitModel, PoolModel, Price, Setup, TenantModel

Tree = dict[str, Any]
T = TypeVar("T")

SHORT: Final = {
    "rpm": "limits.requests.requests_per_minute",
    "tpm": "limits.tokens.tokens_per_minute",
    "concurrency": "limits.concurrency.concurrency",
}
POOL_KEYS: Final = {
    "slots": "slots",
    "seconds_per_request": "request_s",
    "seconds_per_input_token": "input_token_s",
    "seconds_per_output_token": "output_token_s",
    "noise": "noise",
}
RATES: Final = {"requests_per_minute": Counts.REQUESTS, "tokens_per_minute": Counts.TOKENS}
SECONDS_MAX: Final = 86_400.0
ENTRIES_MAX: Final = 1_000
CEILING_MAX: Final = 0.99
"""A class that must leave all of a bucket free could never start."""


def read_file(path: Path) -> Tree:
    """The settings in a TOML file, not yet checked. Raises ReplayRefused."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ReplayRefused(f"{path.name} cannot be read: {error.strerror}.", []) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReplayRefused(f"{path.name} is no TOML:", [str(error)]) from error


def with_words(tree: Mapping[str, Any], words: Iterable[str]) -> Tree:
    """The settings with some changed by words like `rpm=240` or `tenants.acme.weight=3`. Raises ReplayRefused."""
    changed = _copy(tree)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ReplayRefused("Settings cannot be used:", [f"{word!r} must look like key=value"])
        _put(changed, _path(key.strip(), changed), value.strip(), word)
    return changed


def variant(tree: Mapping[str, Any], text: str) -> tuple[str, Tree]:
    """A named variant of settings, as `NAME:key=value,key=value`. Raises ReplayRefused."""
    name, colon, words = text.partition(":")
    if not colon or fault_in_name(name) is not None:
        raise ReplayRefused("Settings cannot be used:", [f"{text!r} must look like NAME:key=value,key=value"])
    return name, with_words(tree, [word for word in words.split(",") if word.strip()])


def parse_setup(name: str, tree: Mapping[str, Any]) -> Setup:
    """Check settings. Raises ReplayRefused with every fault, named by its key."""
    faults = Faults()
    look = _Look(tree, "", faults)
    limits = look.entries("limits", _limit, fault_in_name)
    pools = look.entries("pools", _pool, fault_in_name)
    tenants = look.entries("tenants", _tenant, fault_in_slug)
    classes = look.entries("classes", _class)
    known = {p.label: p for p in PriorityClass}
    for label in sorted(set(classes) - set(known)):
        faults.add(f"classes.{label}: there are critical, high, normal and low")
    setup = Setup(
        name=name,
        pools=pools or Setup(name="").pools,
        limits=limits,
        tenants=tenants or Setup(name="").tenants,
        classes=_mix({known[label]: each for label, each in classes.items() if label in known}),
        price=_price(look),
        seed=int(look.number("seed", 1, most=2**31, whole=True)),
        by_content=look.choice("assign", ("chance", "content")) == "content",
    )
    for pool, model in setup.pools.items():
        for need in model.needs or ():
            if need not in limits:
                faults.add(f"pools.{pool}.needs: there is no limit {need!r}")
    if sum(tenant.share for tenant in setup.tenants.values()) <= 0.0:
        faults.add("tenants: no tenant has a share")
    look.unknown()
    faults.refuse_if_any(f"Settings {name!r} cannot be used:")
    return setup


def parse_price(text: str) -> Tree:
    """The words of `--price input=0.15,output=0.60` as settings. Raises ReplayRefused."""
    named = dict(part.partition("=")[::2] for part in text.split(","))
    if set(named) != {"input", "output"}:
        raise ReplayRefused("The price cannot be used:", [f"{text!r} must look like input=0.15,output=0.60"])
    return {"input_usd_per_mtok": named["input"].strip(), "output_usd_per_mtok": named["output"].strip()}


class _Look:
    """A table of settings while its keys are looked up; a key that nobody asked for is a fault."""

    def __init__(self, table: Mapping[str, Any], place: str, faults: Faults) -> None:
        self.table, self.place, self.faults = table, place, faults
        self._asked: set[str] = set()

    def get(self, key: str) -> Any:
        self._asked.add(key)
        return self.table.get(key)

    def fault(self, key: str, sentence: str) -> None:
        self.faults.add(f"{self.place}{key}: {sentence}")

    def number(self, key: str, default: float, *, least: float = 0.0, most: float, whole: bool = False) -> float:
        """A number, or text that is one."""
        value = self.get(key)
        if value is None:
            return default
        try:
            number = float("" if isinstance(value, bool) else value)
        except (TypeError, ValueError):
            number = float("nan")
        if not isfinite(number) or not least <= number <= most or (whole and number != int(number)):
            kind = "a whole number" if whole else "a number"
            self.fault(key, f"{value!r} must be {kind} from {least:g} to {most:g}")
            return default
        return number

    def maybe(self, key: str, *, least: float = 0.0, most: float, whole: bool = False) -> float | None:
        return None if self.get(key) is None else self.number(key, least, least=least, most=most, whole=whole)

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.get(key)
        if value is not None and value not in choices:
            self.fault(key, f"{value!r} must be one of {', '.join(choices)}")
        return value if value in choices else choices[0]

    def entries(
        self, key: str, parse: Callable[[_Look], T], fault_in: Callable[[str], Any] | None = None
    ) -> dict[str, T]:
        """A table of named tables."""
        table = self.get(key)
        if table is None:
            return {}
        if not isinstance(table, Mapping) or len(table) > ENTRIES_MAX:
            self.fault(key, f"must be a table of at most {ENTRIES_MAX:,} tables")
            return {}
        found = {}
        for name, fields in table.items():
            if fault_in is not None and (fault := fault_in(name)) is not None:
                self.fault(f"{key}.{name}", fault.msg)
            elif not isinstance(fields, Mapping):
                self.fault(f"{key}.{name}", "must be a table")
            else:
                look = _Look(fields, f"{self.place}{key}.{name}.", self.faults)
                found[name] = parse(look)
                look.unknown()
        return found

    def unknown(self) -> None:
        for key in sorted(set(self.table) - self._asked):
            self.fault(key, f"is not known; there are: {', '.join(sorted(self._asked))}")


def _pool(look: _Look) -> PoolModel:
    default = PoolModel()
    needs = look.get("needs")
    if needs is not None and not (isinstance(needs, list) and all(isinstance(each, str) for each in needs)):
        look.fault("needs", "must be a list of names of limits")
        needs = None
    return PoolModel(
        slots=int(look.number("slots", default.slots, least=1, most=SLOTS_MAX, whole=True)),
        request_s=look.number("seconds_per_request", default.request_s, most=SECONDS_MAX),
        input_token_s=look.number("seconds_per_input_token", default.input_token_s, most=SECONDS_MAX),
        output_token_s=look.number("seconds_per_output_token", default.output_token_s, most=SECONDS_MAX),
        noise=look.number("noise", default.noise, most=2.0),
        needs=None if needs is None else tuple(dict.fromkeys(needs)),
    )


def _limit(look: _Look) -> LimitModel:
    margin = look.number("margin", LimitModel(counts=Counts.REQUESTS).margin, most=0.5)
    given = [key for key in (*RATES, "concurrency") if look.get(key) is not None]
    burst, ceilings = look.maybe("burst", most=RATE_MAX), _ceilings(look)
    if len(given) != 1:
        look.fault("", "needs one of requests_per_minute, tokens_per_minute and concurrency")
        return LimitModel(counts=Counts.REQUESTS)
    (key,) = given
    if key == "concurrency":
        if burst is not None:
            look.fault("burst", "is of no use to a concurrency")
        if ceilings:
            look.fault("ceilings", "are of no use to a concurrency")
        return LimitModel(
            counts=Counts.CONCURRENCY, permits=int(look.number(key, 1, most=PERMITS_MAX, whole=True)), margin=0.0
        )
    per_minute = look.number(key, 0.0, most=RATE_MAX)
    at_once = max(1.0, per_minute / 60.0) if RATES[key] is Counts.REQUESTS else per_minute
    return LimitModel(
        counts=RATES[key],
        per_minute=per_minute,
        burst=at_once if burst is None else burst,
        margin=margin,
        ceilings=ceilings,
    )


def _ceilings(look: _Look) -> dict[PriorityClass, float]:
    table = look.get("ceilings")
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        look.fault("ceilings", "must be a table of classes, like ceilings.low=0.2")
        return {}
    inner = _Look(table, f"{look.place}ceilings.", look.faults)
    found = {p: inner.number(p.label, 0.0, most=CEILING_MAX) for p in PriorityClass}
    inner.unknown()
    return {p: part for p, part in found.items() if part > 0.0}


def _tenant(look: _Look) -> TenantModel:
    rate, burst = look.maybe("start_rate", most=RATE_MAX), look.maybe("start_burst", least=1.0, most=RATE_MAX)
    in_flight = look.maybe("max_in_flight", most=QUEUED_MAX, whole=True)
    if burst is not None and rate is None:
        look.fault("start_burst", "goes with a start_rate; give both or neither")
    return TenantModel(
        weight=look.number("weight", 1.0, most=WEIGHT_MAX),
        share=look.number("share", 1.0, most=1e6),
        start_rate=rate,
        start_burst=burst,
        max_in_flight=None if in_flight is None else int(in_flight),
    )


def _class(look: _Look) -> ClassModel:
    return ClassModel(
        share=look.number("share", 0.0, most=1e6),
        slo_s=look.maybe("slo_s", most=SECONDS_MAX),
        deadline_s=look.maybe("deadline_s", most=SECONDS_MAX),
    )


def _mix(classes: dict[PriorityClass, ClassModel]) -> dict[PriorityClass, ClassModel]:
    """Requests without a class are normal ones unless shares say something else."""
    if any(each.share > 0.0 for each in classes.values()):
        return classes
    normal = classes.get(PriorityClass.NORMAL, ClassModel())
    return classes | {PriorityClass.NORMAL: ClassModel(share=1.0, slo_s=normal.slo_s, deadline_s=normal.deadline_s)}


def _price(look: _Look) -> Price | None:
    table = look.get("price")
    if table is None:
        return None
    if not isinstance(table, Mapping):
        look.fault("price", "must be a table")
        return None
    inner = _Look(table, "price.", look.faults)
    found = [_dollars(inner, key) for key in ("input_usd_per_mtok", "output_usd_per_mtok")]
    inner.unknown()
    return Price(input=found[0], output=found[1])


def _dollars(look: _Look, key: str) -> Decimal:
    value = look.get(key)
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        dollars = Decimal("NaN")
    if not dollars.is_finite() or not 0 <= dollars <= 100_000:  # noqa: PLR2004 - dollars for a million tokens
        look.fault(key, f"{value!r} must be US dollars for a million tokens, from 0 to 100000")
        return Decimal(0)
    return dollars


def _path(key: str, tree: Tree) -> list[str]:
    """Where a key is; those of the only or first pool can be said without it."""
    if key in POOL_KEYS:
        pools = tree.get("pools")
        pool = next(iter(pools)) if isinstance(pools, dict) and pools else Setup(name="").pool
        return ["pools", pool, key]
    return SHORT.get(key, key).split(".")


def _put(tree: Tree, path: list[str], value: str, word: str) -> None:
    table = tree
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ReplayRefused("Settings cannot be used:", [f"{word!r}: {part} is no table"])
    table[path[-1]] = value


def _copy(tree: Mapping[str, Any]) -> Tree:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in tree.items()}
