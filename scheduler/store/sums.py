"""The sums of the ledger by day, and how far they go."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("sums.sql")


class Mark(NamedTuple):
    """Entries up to the number `summed` are summed up, and those up to `end` come next.

    `is_over`: every transaction has ended that was under way when `end` was set.
    """

    summed: int
    end: int
    is_over: bool


class Discord(NamedTuple):
    """A sum that is not what the ledger says, in nano-dollars. `what` is a day, or a tenant's slug."""

    what: str
    summed: int
    ledger: int


def load_newest_entry() -> int:
    """The newest number that an entry of the ledger has drawn, whether it is visible or not."""
    ((newest,),) = queries.fetch(_SQL["newest_entry"])
    return int(newest)


def load_summed() -> int:
    """Up to which number the ledger is summed up."""
    ((summed,),) = queries.fetch(_SQL["read_summed"])
    return int(summed)


def lock_mark() -> Mark:
    """How far the sums go, until the transaction ends the only one who knows."""
    queries.run(_SQL["have_mark"])
    ((summed, end, is_over),) = queries.fetch(_SQL["lock_mark"])
    return Mark(summed, end, is_over)


def set_end(last: int) -> bool:
    """Let the next stretch end at a number that was drawn before. True."""
    return queries.run(_SQL["set_end"], {"last": last}) == 1


def add_sums(*, after: int, last: int) -> None:
    """Add the entries of these numbers to the sums."""
    queries.run(_SQL["add_sums"], {"after": after, "last": last})


def move_mark(last: int) -> None:
    """Everything up to this number is summed up."""
    queries.run(_SQL["move_mark"], {"last": last})


def load_discord() -> list[Discord]:
    """Where sums and ledger differ. Reads the whole ledger."""
    return [Discord(*row) for row in queries.fetch(_SQL["read_discord"])]


def clear() -> None:
    """Forget all sums."""
    queries.run(_SQL["clear_sums"])
    queries.run(_SQL["clear_mark"])
