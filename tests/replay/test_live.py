"""A live replay: the real engine, the simulated provider, a database; and the provider's script."""

from __future__ import annotations

import asyncio
import json

import pytest

from scheduler.demo.provider_sim.asks import Ask
from scheduler.demo.provider_sim.chat_api import ChatApi
from scheduler.demo.provider_sim.http_request import Request as HttpRequest
from scheduler.demo.provider_sim.settings import Settings
from scheduler.replay.comparing import compare, compare_live
from scheduler.replay.live import said_if_late
from scheduler.replay.provider import Provider
from scheduler.replay.trace import Request, Trace
from scheduler.replay.world import lay_out
from tests.conftest import LiveDatabase
from tests.replay.traffic import bursts, setup

SPEED = 20.0
OWN = ("tenants.a.weight=2", "tenants.a.start_rate=50", "tenants.a.max_in_flight=9", "limits.requests.ceilings.low=0.5")


@pytest.mark.acceptance
def test_a_live_replay_does_to_every_request_what_virtual_time_does(live_database: LiveDatabase) -> None:
    """One slot for all of a burst: whatever the machine does, no wait is shorter than in virtual time, none is lost."""
    trace = bursts(40, every_s=10.0)
    named = setup("slots=1", "noise=0", "seconds_per_request=1", "rpm=600", "tpm=900000", "concurrency=5", *OWN)
    (virtual,) = compare(trace, [named])
    live = asyncio.run(compare_live(trace, named, speed=SPEED, provider=None))
    assert (live.name, live.how) == ("base-live", "live at 20×")
    assert (live.requests, live.refused, live.unfinished, live.failed) == (40, 0, 0, 0)
    assert live.total.started == 40
    assert live.total.p50 is not None
    assert virtual.total.p50 is not None
    # The provider takes its time under any load; what the product adds on a busy machine has no bound here.
    assert live.total.p50 >= 0.8 * virtual.total.p50
    assert "attempts were retries" in live.notes[0]


def test_a_replay_that_the_machine_could_not_keep_up_with_says_so() -> None:
    assert said_if_late(0.04, speed=SPEED) == ()
    (sentence,) = said_if_late(0.5, speed=SPEED)
    assert "10 s of the trace" in sentence
    assert "--speed" in sentence


def read(payload: str, settings: Settings) -> Ask:
    request = HttpRequest("POST", "/v1/chat/completions", "", {}, payload.encode(), keep_alive=True, chunks_known=True)
    return ChatApi().parse(request, settings)


def test_a_request_tells_the_simulator_what_to_answer() -> None:
    work = lay_out(Trace("t", 0.0, (Request(0.0, 4808, 10),)), setup("noise=0"))[0]
    payload = Provider(base_url="http://x/v1", model="sim-small", simulated=True).payload(work, speed=2.0)
    scripted = read(payload, Settings(scripted=True))
    assert (scripted.input_tokens, scripted.output_tokens) == (4808, 10)
    assert scripted.latency_s == pytest.approx(work.expected_s / 2.0, abs=1e-6)
    plain = read(payload, Settings())
    assert plain.latency_s is None
    assert plain.input_tokens < 100


def test_another_provider_gets_as_many_tokens_and_a_bound_for_the_answer() -> None:
    work = lay_out(Trace("t", 0.0, (Request(0.0, 4808, 0),)), setup())[0]
    body = json.loads(Provider(base_url="http://x/v1", model="m").payload(work, speed=1.0))
    assert (body["model"], body["max_tokens"]) == ("m", 1)
    assert len(body["messages"][0]["content"].split()) == 4808
