"""Says what calls take from the limits on tokens of their pools, where their submitters do not say it themselves.

Decides amounts only; whether they are to be had is the planner's. What a call really took is corrected when it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson

from scheduler.errors import Refused
from scheduler.policy.admission import PoolTerms, Submission
from scheduler.policy.types import ResourceView
from scheduler.providers.llm_config import (
    MESSAGES_OUTPUT_DEFAULT_TOKENS,
    ApiName,
    LlmConfig,
    LlmConfigError,
    ModelTerms,
)
from scheduler.providers.requests import Call, api_of, read_call


def with_tokens(submission: Submission, pool: PoolTerms | None, resources: Mapping[str, ResourceView]) -> Submission:
    """The submission with the amounts that its call is expected to take. Raises Refused when a limit does not exist.

    An amount that the submitter names stands. A call that is larger than the limit takes all of it, and leaves a debt.
    """
    if pool is None or pool.executor != "llm" or not {"tokens", "models"} & set(pool.config):
        return submission
    try:
        config = LlmConfig.parse(pool.config)
    except LlmConfigError:
        # Its executor refuses to serve it, and says why.
        return submission
    payload = orjson.loads(submission.payload)
    call = read_call(payload, model=config.model)
    terms = None if call.model is None else config.terms_of(call.model)
    if terms is None or not terms.tokens or not isinstance(payload, dict):
        return submission
    output_most = _output_most(call, terms, api_of(payload, by_pool=terms.api))
    amounts = {}
    for name, limit in terms.tokens.items():
        view = resources.get(name)
        if view is None:
            detail = (
                f"Pool {submission.pool!r} counts tokens in {name!r}, which does not exist: POST /resources adds it."
            )
            raise Refused(detail, code="unknown_resource")
        amounts[name] = min(limit.estimate(input_tokens=call.input_likely, output_most=output_most), view.burst)
    return replace(submission, resources={**amounts, **submission.resources})


def _output_most(call: Call, terms: ModelTerms, api: ApiName) -> int | None:
    """The most that the call may write, all its answers together; None when nothing says."""
    if api is ApiName.EMBEDDINGS:
        return 0
    known = [n for n in (call.output_most, terms.max_output_tokens) if n is not None]
    most = min(known, default=MESSAGES_OUTPUT_DEFAULT_TOKENS if api is ApiName.MESSAGES else None)
    return None if most is None else most * call.answers
