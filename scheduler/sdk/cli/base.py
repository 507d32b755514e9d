"""What all commands share: which server they speak with, how they answer, and how what went wrong is told.

An error is a sentence on stderr (with `--json` an object on stdout) and an exit status: 1 refused, failed or
unreachable, 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import click
from rich.console import Console, RenderableType

from scheduler.sdk.cli.profile import of_process
from scheduler.sdk.errors import ApiError, SchedulerError
from scheduler.sdk.remote.client import Client

out: Final = Console(highlight=False)
err: Final = Console(stderr=True, highlight=False)


class State:
    """What every command is given: a client made when it is needed, and how to answer."""

    def __init__(self, url: str | None, token: str | None, profile: str | None) -> None:
        self._asked = (url, token, profile)

    def client(self) -> Client:
        """The client of the server in question. Raises SchedulerError with what to set."""
        found = of_process(*self._asked)
        return Client(found.url, token=found.token)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", help="Where the server is (CRONOQ_URL).")
@click.option("--token", help="A token for it (CRONOQ_TOKEN).")
@click.option("--profile", help="A profile of the configuration file (CRONOQ_PROFILE).")
@click.version_option(package_name="cronoq-app", prog_name="cronoq")
@click.pass_context
def cronoq(context: click.Context, url: str | None, token: str | None, profile: str | None) -> None:
    """Submit work to a cronoq server, look at it, and ask why it waits."""
    context.obj = State(url, token, profile)


def command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command with `--json`, whose errors are sentences."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @cronoq.command(name, help=function.__doc__)
        @click.option("--json", "as_json", is_flag=True, help="Answer with JSON, for programs.")
        @click.pass_obj
        def run(state: State, /, **options: Any) -> None:
            try:
                with state.client() as client:
                    function(client, **options)
            except ApiError as error:
                _refuse(error, as_json=options["as_json"])
            except SchedulerError as error:
                err.print("[red]error:[/red] ", end="")
                err.print(str(error), markup=False, soft_wrap=True)
                sys.exit(1)

        # The arguments and options that stand above the function belong to the command.
        run.params[:0] = reversed(getattr(function, "__click_params__", []))
        return run

    return decorate


def _refuse(error: ApiError, *, as_json: bool) -> None:
    if as_json:
        problem = {"code": error.code, "status": error.status, "detail": error.detail, "errors": error.errors}
        click.echo(json.dumps({"error": problem | {"retryable": error.retryable}}))
    else:
        err.print("[red]error:[/red] ", end="")
        err.print(error.detail, markup=False, soft_wrap=True)
        for each in error.errors:
            where = ".".join(str(step) for step in each.get("loc", ()))
            if where and each.get("msg") != error.detail:
                err.print(f"  {where}: {each.get('msg')}", markup=False, soft_wrap=True)
        later = " (the same may work later)" if error.retryable else ""
        err.print(f"  code {error.code}{later}", style="dim", markup=False)
    sys.exit(1)


def answer(body: Any, text: RenderableType, *, as_json: bool) -> None:
    """Answer a program with `body`, a person with `text`."""
    if as_json:
        click.echo(json.dumps(body, ensure_ascii=False))
    else:
        out.print(text)
