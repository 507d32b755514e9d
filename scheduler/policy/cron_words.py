"""Decides how a cron expression reads in words, where it is one of the usual kinds; of any other it says nothing.

It never says more than the expression does: what is not understood wholly stays an expression.
"""

from __future__ import annotations

from typing import Final

from scheduler.policy.cron import Cron

_DAYS: Final = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_DAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ANY: Final = "*"
_TIMES_MAX: Final = 4


def in_words(cron: Cron) -> str | None:
    """``every day at 02:30``, ``every 10 minutes``, ``on weekdays at 09:00 and 17:00``; None for the unusual."""
    seconds, fields = _split(cron.text)
    minute, hour, day, month, weekday = fields
    if month != _ANY:
        return None
    if seconds != "0":
        return _every(seconds, "second") if fields == [_ANY] * 5 else None
    if (hour, day, weekday) == (_ANY, _ANY, _ANY):
        return _every(minute, "minute") or _each_hour(minute)
    days = _days(day, weekday)
    times = _times(minute, hour)
    if days is None:
        return None
    if times is None:
        return _hours(minute, hour) if days == "every day" else None
    return f"{days} at {times}"


def _split(text: str) -> tuple[str, list[str]]:
    fields = text.lower().split()
    return (fields[0], fields[1:]) if len(fields) > 5 else ("0", fields)  # noqa: PLR2004 - with seconds there are six


def _every(field: str, unit: str) -> str | None:
    """``*`` and ``*/n``."""
    if field == _ANY:
        return f"every {unit}"
    step = field.removeprefix("*/")
    if step == field or not step.isdigit():
        return None
    # Steps that do not divide the hour are shorter at its end, so that "every" would be wrong.
    return f"every {int(step)} {unit}s" if int(step) > 1 and 60 % int(step) == 0 else None


def _each_hour(minute: str) -> str | None:
    return f"every hour at minute {int(minute)}" if minute.isdigit() else None


def _hours(minute: str, hour: str) -> str | None:
    """``m */n``."""
    step = hour.removeprefix("*/")
    if step == hour or not (step.isdigit() and minute.isdigit()) or int(step) < 2 or 24 % int(step):  # noqa: PLR2004 - a step of one is none
        return None
    return f"every {int(step)} hours at minute {int(minute)}"


def _times(minute: str, hour: str) -> str | None:
    """``02:30``, or some of them."""
    hours = hour.split(",")
    if not minute.isdigit() or len(hours) > _TIMES_MAX or not all(part.isdigit() for part in hours):
        return None
    return _joined([f"{int(part):02d}:{int(minute):02d}" for part in hours])


def _days(day: str, weekday: str) -> str | None:
    if weekday == _ANY:
        if day == _ANY:
            return "every day"
        parts = day.split(",")
        if not all(part.isdigit() for part in parts):
            return None
        return f"on day {_joined([str(int(part)) for part in parts])} of every month"
    return _weekdays(weekday) if day == _ANY else None


def _weekdays(field: str) -> str | None:
    if field in ("1-5", "mon-fri"):
        return "on weekdays"
    numbers = [_day_number(part) for part in field.split(",")]
    known = [number for number in numbers if number is not None]
    return f"on {_joined([_DAYS[number] for number in known])}" if len(known) == len(numbers) else None


def _day_number(part: str) -> int | None:
    if part in _DAY_NAMES:
        return _DAY_NAMES.index(part)
    return int(part) if part.isdigit() and int(part) < len(_DAYS) else None


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
