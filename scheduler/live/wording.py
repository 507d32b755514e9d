"""Decides how numbers, durations and times read on the console. Pure text; it must never read a clock or a setting."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

NONE = "—"
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
_MILLION = 1_000_000
_BILLION = 1_000_000_000
_NANO: Final = 9
_CENTS: Final = 2


def count(value: float | None) -> str:
    """A whole number with thousands separators; from a million on, three digits and a suffix."""
    if value is None:
        return NONE
    if abs(value) >= _BILLION:
        return f"{value / _BILLION:,.2f} G"
    if abs(value) >= _MILLION:
        return f"{value / _MILLION:.2f} M"
    return f"{value:,.0f}"


def amount(value: float | None) -> str:
    """A quantity that may be fractional: one decimal below 100, none above, never a trailing ``.0``."""
    if value is None:
        return NONE
    if abs(value) >= 100:  # noqa: PLR2004 - three digits are enough to read
        return count(value)
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def rate(value: float | None) -> str:
    """A number per second or minute; keeps its decimal below 100 so that a moving figure does not change width."""
    if value is None:
        return NONE
    return f"{value:.1f}" if abs(value) < 100 else count(value)  # noqa: PLR2004 - as in amount()


def percent(fraction: float) -> str:
    """A fraction as whole percent; never says 100 while something is left, nor 0 while something is used."""
    value = round(fraction * 100)
    if value == 100 and fraction < 1:  # noqa: PLR2004 - percent
        value = 99
    if value == 0 and fraction > 0:
        return "< 1 %"
    return f"{value} %"


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units that matter: ``0.4 s``, ``42 s``, ``4 min 12 s``, ``2 h 5 min``, ``3 d 4 h``."""
    if seconds is None:
        return NONE
    if seconds < 10:  # noqa: PLR2004 - tenths are worth reading below ten seconds
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return _two(whole // _MINUTE_S, "min", whole % _MINUTE_S, "s")
    if whole < _DAY_S:
        return _two(whole // _HOUR_S, "h", whole % _HOUR_S // _MINUTE_S, "min")
    return _two(whole // _DAY_S, "d", whole % _DAY_S // _HOUR_S, "h")


def glance(seconds: float | None) -> str:
    """The same in one unit, for a figure that is read from afar: ``0.4 s``, ``42 s``, ``21 min``, ``2 h``, ``3 d``."""
    number, unit, *_ = [*duration(seconds).split(" "), ""]
    return f"{number} {unit}".strip()


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def dollars(nano: int | None) -> str:
    """Nano-dollars with the digits that matter: ``$12,345``, ``$812.06``, ``$0.0121``, ``$0``. Rounded, never a float.

    Beside it stands what it was rounded from where somebody might add up: see `policy/money.py`.
    """
    if nano is None:
        return NONE
    usd = Decimal(nano).scaleb(-_NANO)
    if abs(usd) >= 10_000:  # noqa: PLR2004 - cents do not matter any more
        places = 0
    elif abs(usd) >= 1 or not usd:
        places = _CENTS
    else:
        places = min(_NANO, 2 - usd.adjusted())  # three digits that are not zero
    text = f"{abs(usd).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"
    if places > _CENTS:
        text = text.rstrip("0").ljust(text.index(".") + 1 + _CENTS, "0")
    sign = "-" if nano < 0 else ""
    return f"{sign}${text if nano else 0}"


def dollars_exact(nano: int) -> str:
    """Nano-dollars to the last digit: ``$1,000.00``, ``$0.000000001``."""
    whole, _, rest = f"{Decimal(abs(nano)).scaleb(-_NANO):,f}".partition(".")
    return f"{'-' if nano < 0 else ''}${whole}.{rest.rstrip('0').ljust(_CENTS, '0')}"


def plural(number: float, one: str, many: str | None = None) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def clock(at_s: float | None) -> str:
    """A Unix time as ``12:00:03`` UTC."""
    return NONE if at_s is None else f"{_utc(at_s):%H:%M:%S}"


def clock_utc(at_s: float | None) -> str:
    """A Unix time as ``12:00:03 UTC``."""
    return NONE if at_s is None else f"{clock(at_s)} UTC"


def day_and_clock(at_s: float | None) -> str:
    """A Unix time as ``2026-11-30 12:00:03 UTC``."""
    return NONE if at_s is None else f"{_utc(at_s):%Y-%m-%d %H:%M:%S} UTC"


def machine(at_s: float | None) -> str:
    """A Unix time in RFC 3339, for ``datetime`` attributes; empty when there is none."""
    return "" if at_s is None else f"{_utc(at_s):%Y-%m-%dT%H:%M:%SZ}"


def _utc(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, tz=UTC)


def name_list(names: list[str], at_most: int = 3) -> str:
    """``a, b and 4 more``."""
    if len(names) <= at_most:
        return ", ".join(names)
    return f"{', '.join(names[:at_most])} and {len(names) - at_most} more"
