"""The commands for many tasks: those that match a filter are listed, cancelled, replayed; first shown, then done.

Nothing is done to tasks that the person did not see counted: an operation is started with what its preview showed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from scheduler.sdk.cli import show
from scheduler.sdk.cli.base import answer, command, err, out
from scheduler.sdk.remote.answers import Operation, Preview
from scheduler.sdk.remote.client import Client
from scheduler.sdk.remote.connection import OperationKind

LOOK_S: Final = 0.5
Done = tuple[Mapping[str, Any], str]
"""What became of one task: the answer for a program, and words that follow its number."""
DONE_WORDS: Final = {"cancel": "cancelled", "replay": "replayed", "discard": "discarded", "restore": "restored"}


@command("list")
@click.argument("terms", nargs=-1, metavar="[FILTER]...")
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="Tasks at most.")
def list_tasks(client: Client, *, terms: Sequence[str], limit: int, as_json: bool) -> None:
    """List the tasks that match a filter, newest first.

    A filter is written as in the console: pool:llm state:dead reason:timeout class:high "age>10m" -tenant:test.
    After a term that begins with a minus sign no option is read; put -- before it.
    """
    found = list(client.tasks(_filter(terms), limit=limit))
    answer([dict(each.raw) for each in found], show.tasks(found), as_json=as_json)


def _filter(terms: Sequence[str]) -> str:
    """One filter of several words. A value with blanks that the shell has unquoted is quoted again."""
    return " ".join(_quoted(term) if " " in term and len(terms) > 1 else term for term in terms)


def _quoted(term: str) -> str:
    key, colon, value = term.partition(":")
    if '"' in term:
        return term
    return f'{key}:"{value}"' if colon and key.lstrip("-").isidentifier() else f'"{term}"'


def of_filter(function: Any) -> Any:
    """The options of a command that works on all tasks of a filter as well as on named ones."""
    for option in (
        click.option("--no-wait", is_flag=True, help="With --filter: do not wait until it is done."),
        click.option("--rate", type=click.FloatRange(0, min_open=True), metavar="N", help="With --filter: per second."),
        click.option("--yes", "-y", is_flag=True, help="With --filter: do not ask."),
        click.option("--filter", "wanted", metavar="FILTER", help="All tasks that match, as `cronoq list` shows them."),
        click.option("--reason", default="", help="Why, for the others."),
        click.argument("tasks", type=int, nargs=-1),
    ):
        function = option(function)
    return function


@command("cancel")
@of_filter
def cancel(client: Client, *, tasks: Sequence[int], wanted: str | None, reason: str, **options: Any) -> None:
    """Cancel tasks: at once while they wait, by telling the attempt to stop while they run.

    Name them, or give a --filter: what matches is counted and shown before anything is done.
    """

    def one(task: int) -> Done:
        done = client.cancel(task, reason)
        return done.raw, "was told to stop" if done.requested else f"is {done.state}"

    _change(client, "cancel", tasks, wanted, one, reason=reason, **options)


@command("replay")
@of_filter
def replay(client: Client, *, tasks: Sequence[int], wanted: str | None, reason: str, **options: Any) -> None:
    """Run failed, dead-lettered, shed or missed tasks afresh, under the same ids.

    Name them, or give a --filter: what matches is counted and shown before anything is done.
    """

    def one(task: int) -> Done:
        done = client.replay(task, reason)
        return done.raw, f"is {done.state}"

    _change(client, "replay", tasks, wanted, one, reason=reason, **options)


@command("operation")
@click.argument("number", type=int)
@click.argument("change", type=click.Choice(["pause", "resume", "abort"]), required=False)
@click.option("--reason", default="", help="Why, for the others.")
@click.option("--wait", "-w", "waits", is_flag=True, help="Wait until it is done.")
def operation(client: Client, *, number: int, change: Any, reason: str, waits: bool, as_json: bool) -> None:
    """Show how far an operation on many tasks is; pause, resume or abort it. What is done stays done."""
    found = client.operation(number) if change is None else client.change_operation(number, change, reason)
    _told(_watched(client, found, quiet=as_json) if waits else found, as_json=as_json)


def _change(
    client: Client,
    kind: OperationKind,
    tasks: Sequence[int],
    wanted: str | None,
    one: Callable[[int], Done],
    **options: Any,
) -> None:
    """Do `one` to each named task, or an operation to all that match the filter."""
    if bool(tasks) == (wanted is not None):
        raise click.UsageError("Name tasks by their numbers, or give a --filter: one of the two.")
    if wanted is not None:
        _operate(client, kind, wanted, **options)
    for task in tasks:
        raw, word = one(task)
        answer(dict(raw), f"Task {task} {word}.", as_json=options["as_json"])


def _operate(
    client: Client,
    kind: OperationKind,
    wanted: str,
    *,
    reason: str,
    yes: bool,
    rate: float | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Show what it would be done to, ask, start it, and follow it to its end."""
    found = client.preview(kind, wanted)
    if as_json and not yes:
        answer(dict(found.raw), "", as_json=True)
        return
    if not as_json:
        out.print(show.preview(found))
    if not found.count:
        if as_json:
            answer(dict(found.raw), "", as_json=True)
        return
    if not yes and not _confirmed(found):
        sys.exit(1)
    reason = reason or _why(yes=yes)
    begun = client.start_operation(kind, found.filter, reason=reason, rate=rate, as_of=found.as_of, shown=found.count)
    _told(begun if no_wait else _watched(client, begun, quiet=as_json), as_json=as_json)


def _confirmed(found: Preview) -> bool:
    if not sys.stdin.isatty():
        err.print("Nothing was done: add --yes to do it.")
        return False
    return click.confirm(f"{found.kind.capitalize()} {found.count:,} task{'s'[: found.count != 1]}?", err=True)


def _why(*, yes: bool) -> str:
    if yes or not sys.stdin.isatty():
        raise click.UsageError("Say why with --reason, for those who look at it later.")
    return str(click.prompt("Why, for those who look at it later", err=True))


def _watched(client: Client, begun: Operation, *, quiet: bool) -> Operation:
    """The operation once it has ended. Ctrl-C takes it back as long as nothing is done, and then stops looking only."""
    found = begun
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bars, console=err, disable=quiet, transient=True) as progress:
        bar = progress.add_task("", total=begun.total)
        try:
            for found in _looks(client, begun):
                progress.update(bar, completed=found.applied + found.skipped, description=_doing(found))
        except KeyboardInterrupt:
            if found.state == "starting":
                return client.change_operation(found.id, "abort", "taken back in the terminal")
            err.print(f"Operation {found.id} goes on: cronoq operation {found.id} [pause|abort]", markup=False)
    return found


def _looks(client: Client, begun: Operation) -> Iterator[Operation]:
    found = begun
    yield found
    while not found.ended and found.state != "paused":
        time.sleep(LOOK_S)
        found = client.operation(found.id)
        yield found


def _doing(found: Operation) -> str:
    if found.state == "starting" and found.starts_at is not None:
        left_s = (datetime.fromisoformat(found.starts_at) - datetime.now(UTC)).total_seconds()
        return f"starts in {max(0.0, left_s):.0f} s (Ctrl-C takes it back)"
    return found.kind


def _told(found: Operation, *, as_json: bool) -> None:
    answer(dict(found.raw), show.operation(found, DONE_WORDS[found.kind]), as_json=as_json)
    if found.state == "aborted":
        sys.exit(1)
