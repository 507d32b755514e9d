"""Which rehearsals there are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.demo.rehearsal import campaign, campaign_cast, tickets
from scheduler.demo.rehearsal.progress import Progress
from scheduler.demo.rehearsal.promises import Verdict

Play = Callable[[Path, float, int, Progress], Coroutine[Any, Any, Verdict]]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One story. `play(folder, scale, seed, progress)` plays it in an empty, migrated database."""

    name: str
    story: str
    play: Play


REPERTOIRE: Final[Mapping[str, Rehearsal]] = {
    "campaign": Rehearsal("campaign", campaign_cast.STORY, campaign.play),
    "tickets": Rehearsal("tickets", tickets.STORY, tickets.play),
}
