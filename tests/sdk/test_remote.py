"""The clients and the command against a real server, with an engine beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scheduler.sdk import ApiError, AsyncClient, Client, Dep, Task, TaskFailed
from scheduler.sdk.cli.main import cronoq
from scheduler.services.tokens import create_token
from tests.conftest import LiveDatabase
from tests.engine.running import engine
from tests.sdk.terminal import CTRL_C, on_terminal
from tests.support.processes import environment, free_port
from tests.support.server import running_server
from tests.support.work import make_bucket, make_pool, make_tenant


@pytest.fixture
def served(live_database: LiveDatabase) -> Iterator[tuple[str, str]]:
    """A server with a pool that adds one, and an operator's token of one tenant."""
    make_tenant("acme")
    make_pool("p")
    make_pool("idle", executor="remote")
    make_bucket("api", rate=5.0, burst=10.0)

    async def add_one(ctx: Any, payload: int) -> int:
        return payload + 1

    token = create_token(scopes=["submit", "read", "operate"], tenant="acme", name="t", actor="test").text
    with running_server(live_database.url) as url, engine({"p": add_one}):
        yield url, token


@pytest.mark.acceptance
def test_clients_and_the_command_do_what_they_say(served: tuple[str, str], tmp_path: Path) -> None:
    url, token = served
    with Client(url, token=token) as client:
        _submits_and_waits(client)
        _refusals_say_what_to_change(client)
        _runs_have_steps(client)
        waiting = client.submit(1, pool="idle", key="waits")
        assert "worker" in client.why(waiting.id).reasons[0]["text"]
        assert [pool["name"] for pool in client.pools()] == ["idle", "p"]
        asyncio.run(_asks_as_well_with_a_loop(url, token, waiting.id))
    run = partial(_run, url, token)
    _the_command_submits_shows_and_refuses(run, tmp_path)
    _the_command_works_on_all_that_match(run)
    _the_command_asks_on_a_terminal(url, token, run)


def _submits_and_waits(client: Client) -> None:
    one = client.submit(1, pool="p", key="one", tags={"a": "b"}, deadline_in=5.0)
    assert client.result(one.id, timeout=30.0) == 2
    again = client.submit(1, pool="p", key="one", tags={"a": "b"}, deadline_in=5.0)
    assert (again.id, again.duplicate) == (one.id, True)
    parent, child = client.submit_batch([Task(5, pool="p", key="x"), Task(6, pool="p", deps=[Dep("x", on="complete")])])
    assert client.wait(child.id, 30.0).result == 7
    assert [seen.state for seen in client.watch(parent.id)] == ["succeeded"]
    found = client.find("x")
    assert found is not None
    assert (found.id, found.ended) == (parent.id, True)
    broken = client.submit("text", pool="p")
    client.cancel(broken.id)
    with pytest.raises(TaskFailed) as raised:
        client.result(broken.id, timeout=30.0)
    assert raised.value.status == "cancelled"


def _refusals_say_what_to_change(client: Client) -> None:
    with pytest.raises(ApiError) as raised:
        client.submit(1, pool="nowhere")
    assert (raised.value.code, raised.value.retryable) == ("unknown_pool", False)
    with pytest.raises(ApiError) as raised:
        client.get(2**40)
    assert (raised.value.code, raised.value.status) == ("unknown_task", 404)
    with pytest.raises(TimeoutError, match="is ready after"):
        client.result(client.submit(1, pool="idle").id, timeout=0.01)


async def _asks_as_well_with_a_loop(url: str, token: str, waiting: int) -> None:
    async with AsyncClient(url, token=token) as client:
        task = await client.submit(41, pool="p")
        assert await client.result(task.id, timeout=30.0) == 42
        assert (await client.cancel(waiting)).state == "cancelled"
        assert [seen.state async for seen in client.watch(waiting)] == ["cancelled"]
        assert (await client.snapshot()).seq > 0
        assert [each.id async for each in client.tasks("state:cancelled pool:idle", limit=1)] == [waiting]
        with pytest.raises(ApiError, match="every tenant"):
            await client.pause("p")


def _runs_have_steps(client: Client) -> None:
    run = client.create_run({"order": 7}, key="order-7", caps={"max_steps": 2})
    assert client.create_run({"order": 7}, key="order-7", caps={"max_steps": 2}).duplicate
    step = client.submit(1, pool="p", run=run.id, effect="write")
    assert client.result(step.id, timeout=30.0) == 2
    assert client.run(run.id).steps == {"succeeded": 1}
    assert client.kill_run(run.id, "enough").state == "killed"
    assert client.resume_run(run.id, caps={"max_steps": 3}).caps["max_steps"] == 3
    assert client.finish_run(run.id, "done").result is None
    assert client.run(run.id).result == "done"


def _run(url: str, token: str, *words: str, status: int = 0) -> Result:
    done = CliRunner().invoke(cronoq, ["--url", url, "--token", token, *words])
    assert done.exit_code == status, (words, done.output, done.exception)
    return done


def _the_command_works_on_all_that_match(run: Callable[..., Result]) -> None:
    for n in range(3):
        run("submit", str(n), "-p", "idle", "--kind", "bulk", "--key", f"bulk {n}")
    listed = json.loads(run("list", "pool:idle", "kind:bulk", "-n", "2", "--json").output)
    assert [each["key"] for each in listed] == ["bulk 2", "bulk 1"]
    assert "bulk 1" in run("list", "kind:bulk", "key:bulk 1").output
    assert "No task matches." in run("list", "kind:none").output
    assert "There is no key 'pol'" in run("list", "pol:idle", status=1).stderr
    assert "one of the two" in run("cancel", status=2).stderr
    shown = run("cancel", "--filter", "kind:bulk", status=1)
    assert "3 to cancel" in shown.output
    assert "add --yes" in shown.stderr
    assert json.loads(run("cancel", "--filter", "kind:bulk", "--json").output)["count"] == 3
    assert "Nothing to replay matches" in run("replay", "--filter", "kind:bulk").output
    assert "--reason" in run("cancel", "--filter", "kind:bulk", "--yes", status=2).stderr
    begun = json.loads(
        run("cancel", "--filter", "kind:bulk", "--yes", "--reason", "test", "--no-wait", "--json").output
    )
    assert (begun["state"], begun["total"]) == ("starting", 3)
    assert "aborted: 0 of 3 cancelled" in run("operation", str(begun["id"]), "abort", status=1).output
    run("operation", str(begun["id"]), "resume")
    assert "done: 3 of 3 cancelled" in run("operation", str(begun["id"]), "--wait").output


def _the_command_asks_on_a_terminal(url: str, token: str, run: Callable[..., Result]) -> None:
    task = json.loads(run("submit", "1", "-p", "idle", "--kind", "asked", "--json").output)["id"]
    environ = environment(CRONOQ_URL=url, CRONOQ_TOKEN=token)
    command = ("scheduler.sdk.cli", "cancel", "--filter", "kind:asked")
    with on_terminal(*command, environ=environ) as terminal:
        terminal.wait_for("Cancel 1 task? [y/N]")
        terminal.press(CTRL_C)
        assert (terminal.status(), json.loads(run("get", str(task), "--json").output)["state"]) == (1, "ready")
    with on_terminal(*command, environ=environ) as terminal:
        terminal.wait_for("Cancel 1 task? [y/N]")
        terminal.press("y\r")
        terminal.wait_for("Why")
        terminal.press("test\r")
        terminal.wait_for("Ctrl-C takes it back")
        terminal.press(CTRL_C)
        assert terminal.status() == 1
        assert "aborted: 0 of 1 cancelled" in terminal.text


def _the_command_submits_shows_and_refuses(run: Callable[..., Result], tmp_path: Path) -> None:
    answer = json.loads(run("submit", "1", "-p", "p", "-r", "api=1", "--tag", "a=b", "--json").output)
    assert json.loads(run("wait", str(answer["id"]), "--json").output)["result"] == 2
    assert "is succeeded" in run("get", str(answer["id"])).output
    assert "2" in run("submit", "1", "-p", "p", "--wait").output
    lines = tmp_path / "lines"
    lines.write_text("1\n\n2\n3\n")
    submitted = json.loads(run("submit", "--lines", str(lines), "-p", "idle", "--key", "l", "--json").output)
    assert [each["key"] for each in submitted] == ["l-1", "l-3", "l-4"]
    waiting = str(submitted[0]["id"])
    assert "No worker" in run("why", waiting).output or "worker" in run("why", waiting).output
    assert "124" not in run("wait", waiting, "--timeout", "0.01", status=124).output
    assert "cancelled" in run("cancel", waiting).output
    top = run("top", "--once").output
    assert "idle" in top
    assert "api" in top
    assert "5/s, burst 10" in run("limits").output
    refused = run("get", "999999999", status=1)
    assert "There is no task 999999999." in refused.stderr
    assert json.loads(run("pause", "p", "--json", status=1).output)["error"]["code"] == "needs_all_tenants"
    assert "_CRONOQ_COMPLETE" in run("completion", "bash").output


def test_a_server_that_does_not_answer_is_an_error_in_the_time_given() -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", token="cq_none", timeout=0.3) as client,
        pytest.raises(ApiError) as raised,
    ):
        client.get(1)
    assert (raised.value.code, raised.value.retryable) == ("unreachable", True)
