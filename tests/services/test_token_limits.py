"""Limits on tokens: estimated from the call when it is submitted, corrected when it ends, lowered by the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.errors import Refused
from scheduler.models import ResourceState, Task
from scheduler.policy.admission import Submission
from scheduler.policy.settlement import Left
from scheduler.policy.types import Outcome, PoolId, PriorityClass
from scheduler.services.settle import Report, settle
from scheduler.services.submit import submit
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "a" * 4000}]}
PRICES = {"ceiling_input_usd_per_mtok": "0", "ceiling_output_usd_per_mtok": "0"}


def make_llm_pool(**config: Any) -> PoolId:
    return make_pool(executor="llm", slots=50, config={"base_url": "http://127.0.0.1:9", **PRICES, **config})


def amounts_of(payload: dict[str, Any], **fields: Any) -> list[float]:
    """What a call takes of the limits on tokens, in the order in which these were made."""
    (task,) = submit_tasks(make_tenant(f"t{Task.objects.count()}"), payload=json.dumps(payload), **fields)
    return list(Task.objects.get(pk=task).amounts)


@pytest.mark.parametrize(
    ("limit", "call", "least", "most"),
    [
        ({"reserve": "none"}, {}, 1000, 1030),
        ({}, {}, 1000 + 1024, 1030 + 1024),
        ({}, {"max_tokens": 500}, 1500, 1530),
        ({}, {"max_tokens": 500, "n": 2}, 2000, 2030),
        ({"reserve": "max_of"}, {"max_tokens": 500}, 1000, 1030),
        ({"reserve": "max_of"}, {"max_tokens": 5000}, 5000, 5000),
        ({"weights": {"input": 0, "output": 5}}, {"max_tokens": 500}, 2500, 2500),
        ({"weights": {"input": 0}, "reserve": "none"}, {}, 1, 1),
        ({}, {"max_tokens": 900_000}, 100_000, 100_000),
        ({}, {"api": "messages"}, 1000 + 4096, 1030 + 4096),
    ],
)
def test_a_call_takes_what_the_provider_will_charge(
    limit: dict[str, Any], call: dict[str, Any], least: float, most: float
) -> None:
    make_bucket("tpm", rate=1_000.0, burst=100_000.0)
    make_llm_pool(tokens={"tpm": limit})
    (amount,) = amounts_of(CHAT | call)
    assert least <= amount <= most


def test_what_bounds_the_output_bounds_the_estimate() -> None:
    make_bucket("tpm", rate=1_000.0, burst=100_000.0)
    make_llm_pool(tokens={"tpm": {"weights": {"input": 0}}}, max_output_tokens=300)
    assert amounts_of(CHAT) == [300.0]
    assert amounts_of(CHAT | {"max_tokens": 200}) == [200.0]
    assert amounts_of(CHAT | {"max_tokens": 400}) == [300.0]


def test_embeddings_write_nothing_and_models_may_have_limits_of_their_own() -> None:
    make_bucket("tpm", rate=1_000.0, burst=100_000.0)
    make_bucket("other", rate=1_000.0, burst=100_000.0)
    own = {"tokens": {"other": {"reserve": "none"}}, "api": "responses"}
    make_llm_pool(tokens={"tpm": {}}, models={"apart": own, "free": {"tokens": {}}})
    for model in ("m", "apart"):
        (amount,) = amounts_of({"model": model, "input": "a" * 400})
        assert 100 <= amount <= 103
    demands = Task.objects.order_by("id").values_list("demand_id", flat=True)
    assert demands[0] != demands[1]
    assert amounts_of({"model": "free", "input": "a"}) == []


def test_an_amount_that_the_submitter_names_stands() -> None:
    make_bucket("tpm", rate=1_000.0, burst=100_000.0)
    make_bucket("rpm", rate=10.0, burst=10.0)
    make_llm_pool(tokens={"tpm": {}})
    assert amounts_of(CHAT, resources={"tpm": 7.0, "rpm": 1.0}) == [7.0, 1.0]


def test_the_same_content_is_the_same_task_whatever_its_estimate() -> None:
    make_bucket("tpm", rate=1_000.0, burst=100_000.0)
    make_llm_pool(tokens={"tpm": {}})
    tenant = make_tenant()
    wanted = Submission(pool="p", payload=json.dumps(CHAT), priority=PriorityClass.NORMAL, key="k")
    first, second = submit(tenant, wanted), submit(tenant, wanted)
    assert (second.id, second.duplicate) == (first.id, True)


def test_a_limit_that_does_not_exist_is_told() -> None:
    make_llm_pool(tokens={"typo": {}})
    with pytest.raises(Refused, match="counts tokens in 'typo'") as caught:
        submit_tasks(make_tenant(), payload=json.dumps(CHAT))
    assert caught.value.code == "unknown_resource"


def level_after(report_left: dict[str, Left], *, actual: dict[str, float] | None = None, rate: float = 1e-6) -> float:
    """The level of a bucket of 100 from which 10 were taken, after this report."""
    make_bucket("tpm", rate=rate, burst=100.0)
    pool = make_pool(slots=5)
    submit_tasks(make_tenant(), resources={"tpm": 10.0})
    (leased,) = HandWorker({pool: 5}).start()
    settle([Report(leased.lease, Outcome.SUCCEEDED, result="1", actual=actual or {}, left=report_left)])
    return ResourceState.objects.get(resource__name="tpm").level


@pytest.mark.parametrize(("told", "level"), [(40.0, 40.0), (0.0, 0.0), (90.0, 90.0), (95.0, 90.0), (1_000_000.0, 90.0)])
def test_the_provider_s_word_lowers_a_level_and_never_raises_one(told: float, level: float) -> None:
    assert level_after({"tpm": Left(told, 0.0), "gone": Left(1.0, 0.0)}) == pytest.approx(level, abs=0.01)


def test_what_refilled_since_the_provider_counted_is_added_to_its_word() -> None:
    assert level_after({"tpm": Left(10.0, 20.0)}, rate=1.0) == pytest.approx(30.0, abs=2.0)


def test_measured_amounts_and_the_provider_s_word_go_together() -> None:
    assert level_after({"tpm": Left(40.0, 0.0)}, actual={"tpm": 80.0}) == pytest.approx(20.0, abs=0.01)
