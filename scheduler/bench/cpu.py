"""Processor time of the processes that a measurement runs on; it says more than the clock where a machine is shared.

Reads Linux's /proc. The time of a process that has ended counts with its parent.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from scheduler.store.bench import own_process

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_PARENT: Final = 1
_OWN: Final = slice(11, 13)
_WITH_ENDED: Final = slice(11, 15)
"""Places in /proc/N/stat after the command's name: the parent, own time, and with the time of children that ended."""


class Cpu:
    """What named groups of processes, and the database server if it is here, spend from now on."""

    def __init__(self, pids: Mapping[str, Collection[int]]) -> None:
        self._pids = pids
        self._server = _database_server()
        self._began = self._total_s()

    def spent_s(self) -> dict[str, float]:
        """Seconds of a processor since then."""
        return {name: total - self._began[name] for name, total in self._total_s().items()}

    def _total_s(self) -> dict[str, float]:
        totals = {name: sum(sum(_stat(pid)[_WITH_ENDED]) for pid in group) for name, group in self._pids.items()}
        if self._server is not None:
            running = sum(sum(fields[_OWN]) for fields in _children(self._server))
            totals["database"] = running + sum(_stat(self._server)[_WITH_ENDED])
        return {name: ticks / _TICKS_PER_S for name, ticks in totals.items()}


def _database_server() -> int | None:
    """The process whose children serve connections; None where it is on another machine."""
    backend = own_process()
    try:
        is_here = "postgres" in (_PROC / str(backend) / "cmdline").read_text()
    except OSError:
        return None
    return _stat(backend)[_PARENT] if is_here else None


def _children(parent: int) -> Iterator[list[int]]:
    for place in _PROC.iterdir():
        if place.name.isdecimal():
            try:
                fields = _stat(int(place.name))
            except OSError:
                # It ended meanwhile; its parent has its time.
                continue
            if fields[_PARENT] == parent:
                yield fields


def _stat(pid: int) -> list[int]:
    """The numbers of /proc/N/stat after the name, which may hold anything; the state's letter counts as 0."""
    text = (_PROC / str(pid) / "stat").read_text()
    return [int(field) if field.lstrip("-").isdecimal() else 0 for field in text.rpartition(")")[2].split()]
