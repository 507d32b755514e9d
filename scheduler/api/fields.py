"""The kinds of values that requests and answers are made of, with their bounds.

Numbers are numbers and texts are texts: "5" is not 5, and true is not 1. Durations are seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field, Strict

from scheduler.policy.money import parse_usd
from scheduler.policy.payload import fault_in_text
from scheduler.reads.tasks import ID_MAX

YEAR_S: Final = 366 * 86_400.0
WEEK_S: Final = 7 * 86_400.0


def _text(value: str) -> str:
    said = fault_in_text(value)
    if said is not None:
        raise ValueError(f"This text {said}.")
    return value


def _written(value: object) -> object:
    if not isinstance(value, str | datetime):
        raise ValueError("Write a time as text: 2026-01-31T12:00:00Z.")  # noqa: TRY004 - pydantic hears ValueError
    return value


Text = Annotated[str, Strict(), AfterValidator(_text)]
Name = Annotated[Text, Field(min_length=1, max_length=64)]
Reason = Annotated[Text, Field(max_length=500, description="Why; kept in the audit")]


def _usd(value: str) -> str:
    parse_usd(value)
    return value


Usd = Annotated[str, Strict(), AfterValidator(_usd), Field(description='US dollars as text, like "12.50"')]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Whole = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
Version = Annotated[int, Strict(), Field(ge=1, le=ID_MAX, description="The version that you read")]
Seconds = Annotated[Number, Field(gt=0, le=WEEK_S, description="Seconds")]
Ahead = Annotated[Number, Field(ge=0, le=YEAR_S, description="Seconds from now")]
Moment = Annotated[AwareDatetime, BeforeValidator(_written), Field(description="RFC 3339 with a zone")]
Priority = Literal["critical", "high", "normal", "low"]
Json = Any


class FaultOut(BaseModel):
    """One fault in a request."""

    loc: list[str | int] = Field(description="The path to the field")
    msg: str = Field(description="What to do about it")


class Problem(BaseModel):
    """A problem document (RFC 9457). Decide by `code`; `title` and `detail` are for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FaultOut]
    retry_after: float | None = Field(None, description="Seconds after which the same request may succeed")


PROBLEMS: Final = (400, 401, 403, 404, 409, 413, 422, 429, 500, 503)
"""The statuses that carry a problem document."""
