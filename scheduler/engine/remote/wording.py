"""Words leases and stops as the protocol's messages, for either door."""

from __future__ import annotations

import json

import orjson

from scheduler.engine.remote.seats import News
from scheduler.policy.remote import Given
from scheduler.policy.trace import TRACE_TAG, trace_of
from scheduler.protocol.messages import lease_text


def lease_texts(news: News) -> list[str]:
    """The lease messages."""
    return [lease_message(given) for given in news.leases]


def lease_message(given: Given) -> str:
    """One lease message."""
    task = given.task
    head: dict[str, object] = {
        "lease_id": task.lease,
        "task": task.task,
        "attempt": task.attempt,
        "kind": task.kind,
        "key": task.key,
        "pool": given.pool,
        "tenant": given.tenant,
        "ttl_s": given.ttl_s,
        "timeout_s": task.timeout_s,
        "deadline_at": task.deadline_at,
        "degraded": task.degraded,
    }
    if task.run is not None:
        head["run"] = task.run
    if task.max_output_tokens is not None:
        head["max_output_tokens"] = task.max_output_tokens
    if task.tags is not None and TRACE_TAG in task.tags:
        head["trace"] = trace_of(orjson.loads(task.tags))
    texts = {"upstream": task.upstream, "checkpoint": task.checkpoint, "tags": task.tags}
    return lease_text(head, payload=task.payload or "null", **texts)


def stop_texts(news: News) -> str:
    """Why to stop, by lease."""
    return json.dumps({str(lease): why for lease, why in news.stops.items()})
