"""The commands for one task after the other, pools and limits. Each parses, asks the client, and shows.

0: done. 1: refused, failed or unreachable. 2: wrong usage. 124: the time given had passed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TextIO

import click
from click.shell_completion import get_completion_class
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from scheduler.sdk.cli import many, show
from scheduler.sdk.cli.base import answer, command, cronoq, err, out
from scheduler.sdk.declarations import Dep, Priority, Task
from scheduler.sdk.remote.answers import TaskInfo
from scheduler.sdk.remote.client import Client

__all__ = ["cronoq", "many"]

BATCH_TASKS: Final = 200
TIMED_OUT: Final = 124
LOOK_S: Final = 1.0


@command("submit")
@click.argument("payload", required=False)
@click.option("--file", "-f", type=click.File("r"), help="Take the payload from a file; - is standard input.")
@click.option("--lines", type=click.File("r"), help="Submit one task for each line of JSON of a file, in batches.")
@click.option("--pool", "-p", default="default", show_default=True)
@click.option("--kind", default="default", show_default=True)
@click.option("--priority", type=click.Choice([p.value for p in Priority]), default="normal", show_default=True)
@click.option("--key", help="The same key and content give the first task again.")
@click.option("--deadline-in", type=float, metavar="S")
@click.option("--start-in", type=float, metavar="S")
@click.option("--expires-in", type=float, metavar="S")
@click.option("--timeout", type=float, metavar="S", help="Seconds that an attempt may take.")
@click.option("--resource", "-r", "resources", multiple=True, metavar="NAME=AMOUNT")
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE")
@click.option("--after", multiple=True, metavar="KEY[:CONDITION]", help="success (default), failure or complete.")
@click.option("--tenant", help="Whose work it is; with a token of every tenant.")
@click.option("--wait", "-w", is_flag=True, help="Wait for the result.")
def submit(client: Client, *, payload: str | None, file: TextIO | None, lines: TextIO | None, **options: Any) -> None:
    """Submit a task. PAYLOAD is JSON; what is not JSON is taken as text."""
    as_json, waits = options.pop("as_json"), options.pop("wait")
    fields = _fields(options)
    if lines is not None:
        accepted = _submit_lines(client, lines, fields, quiet=as_json)
        answer([dict(each.raw) for each in accepted], f"{len(accepted):,} tasks submitted.", as_json=as_json)
        return
    text = file.read() if file is not None else payload
    if text is None:
        raise click.UsageError("Give a payload, --file or --lines.")
    done = client.submit(_value(text), **fields)
    if waits:
        _wait_for(client, [done.id], timeout=None, as_json=as_json)
        return
    word = "was there before" if done.duplicate else f"is {done.state}"
    answer(dict(done.raw), f"Task {done.id} {word}.", as_json=as_json)


@command("get")
@click.argument("task", type=int)
def get(client: Client, *, task: int, as_json: bool) -> None:
    """Show a task with its attempts, and its result."""
    found = client.get(task)
    answer(dict(found.raw), show.task(found), as_json=as_json)
    if found.state == "succeeded" and not as_json:
        out.print_json(json.dumps(found.result))


@command("wait")
@click.argument("tasks", type=int, nargs=-1, required=True)
@click.option("--timeout", type=float, metavar="S", help="Give up after so many seconds (exit status 124).")
def wait(client: Client, *, tasks: Sequence[int], timeout: float | None, as_json: bool) -> None:
    """Wait until tasks have ended, and show their results. Exit status 1 if one did not succeed."""
    _wait_for(client, tasks, timeout=timeout, as_json=as_json)


@command("why")
@click.argument("task", type=int)
def why(client: Client, *, task: int, as_json: bool) -> None:
    """Say why a task is not running, what comes before it, and when it should start."""
    found = client.why(task)
    answer(dict(found.raw), show.why(found), as_json=as_json)


@command("top")
@click.option("--once", is_flag=True, help="Show it once instead of live.")
@click.option("--interval", type=click.FloatRange(0.2), default=LOOK_S, show_default=True, metavar="S")
def top(client: Client, *, once: bool, interval: float, as_json: bool) -> None:
    """Show pools and limits live, until Ctrl-C."""
    found = client.snapshot()
    if as_json or once or not out.is_terminal:
        answer(dict(found.raw), show.top(found.body), as_json=as_json)
        return
    with Live(show.top(found.body), console=out, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(interval)
                live.update(show.top(client.snapshot().body), refresh=True)
        except KeyboardInterrupt:
            return


@command("pause")
@click.argument("pool")
@click.option("--reason", default="", help="Why, for the others.")
def pause(client: Client, *, pool: str, reason: str, as_json: bool) -> None:
    """Start nothing new in a pool; what runs goes on."""
    answer(dict(client.pause(pool, reason)), f"The pool {pool} is paused.", as_json=as_json)


@command("resume")
@click.argument("pool")
@click.option("--reason", default="", help="Why, for the others.")
def resume(client: Client, *, pool: str, reason: str, as_json: bool) -> None:
    """Start again with what waits in a pool."""
    answer(dict(client.resume(pool, reason)), f"The pool {pool} runs.", as_json=as_json)


@command("limits")
def limits(client: Client, *, as_json: bool) -> None:
    """Show the shared limits, what is left of them, and how many wait for them."""
    found = client.resources()
    answer(found, show.limits(found), as_json=as_json)


@cronoq.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completions for a shell: eval "$(cronoq completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"There are no completions for {shell}.")
    click.echo(found(cronoq, {}, "cronoq", "_CRONOQ_COMPLETE").source())


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `submit` as the fields of a task."""
    resources = {name: _amount(name, value) for name, value in _pairs("--resource", options.pop("resources"))}
    tags = dict(_pairs("--tag", options.pop("tags")))
    deps = [_dep(text) for text in options.pop("after")]
    given = {name: value for name, value in options.items() if value is not None}
    return given | {"resources": resources or None, "tags": tags or None, "deps": deps or None}


def _pairs(option: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"{option} is NAME=VALUE, not {text!r}.")
        yield name, value


def _amount(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--resource {name} needs an amount, not {text!r}.") from None


def _dep(text: str) -> Dep:
    key, sign, condition = text.rpartition(":")
    if sign and condition in ("success", "failure", "complete"):
        return Dep(key, on=condition)  # type: ignore[arg-type]  # one of the three, as was just seen
    return Dep(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _submit_lines(client: Client, lines: TextIO, fields: dict[str, Any], *, quiet: bool) -> list[Any]:
    """Submit batch after batch. A key becomes the prefix of each line's own."""
    key = fields.pop("key", None)
    numbered = ((n, line) for n, line in enumerate(lines, 1) if line.strip())
    accepted = []
    with Progress(
        TextColumn("submitting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, disable=quiet
    ) as progress:
        bar = progress.add_task("submitting", total=None)
        while batch := list(islice(numbered, BATCH_TASKS)):
            tasks = [Task(_value(line), **fields, key=f"{key}-{n}" if key else None) for n, line in batch]
            accepted += client.submit_batch(tasks)
            progress.update(bar, completed=len(accepted))
    return accepted


def _wait_for(client: Client, tasks: Sequence[int], *, timeout: float | None, as_json: bool) -> None:
    give_up_at = None if timeout is None else time.monotonic() + timeout
    found: list[TaskInfo] = []
    with Progress(
        TextColumn("waiting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        disable=as_json,
        transient=True,
    ) as progress:
        bar = progress.add_task("waiting", total=len(tasks))
        for task in tasks:
            left_s = None if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            found.append(client.wait(task, left_s))
            progress.advance(bar)
    for each in found:
        answer(dict(each.raw), show.state(f"{each.id} {each.state}"), as_json=as_json)
        if as_json:
            continue
        if each.state == "succeeded":
            out.print_json(json.dumps(each.result))
        elif each.message:
            out.print(f"  {each.message}", markup=False)
    if any(not each.ended for each in found):
        sys.exit(TIMED_OUT)
    sys.exit(0 if all(each.state == "succeeded" for each in found) else 1)
