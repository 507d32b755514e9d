"""Estimates what submitted tasks may cost, where their pools price work or they name a maximum themselves.

Work whose price nobody knows is refused here, before it is stored: it is never taken for free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import orjson

from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import Admitted, PoolTerms, Priced, Submission
from scheduler.policy.charges import Pricing
from scheduler.policy.money import NANO, USD_MAX, format_usd
from scheduler.policy.prices import OUTPUT_DEFAULT_TOKENS, Asked, estimate
from scheduler.policy.types import TenantId
from scheduler.providers.llm_config import ApiName, config_of
from scheduler.providers.requests import Call, read_call
from scheduler.services.prices import PriceBook, ceiling_of, load_book
from scheduler.store import submit as store

COST_MAX: Final = USD_MAX * NANO


def price_rows(
    rows: Sequence[tuple[int, Admitted]], items: Sequence[tuple[TenantId, Submission]], terms: store.Terms
) -> tuple[dict[int, Priced], dict[int, Refused]]:
    """By place, what those cost that cost anything, and the refusals of those whose price is unknown or too high."""
    if not any(pool.prices for pool in terms.pools.values()) and all(s.max_cost_nano is None for _, s in items):
        return {}, {}
    calls = {
        place: call
        for place, _ in rows
        if (pool := terms.pools[items[place][1].pool]).executor == "llm"
        and (call := _call(items[place][1], pool)) is not None
    }
    book = load_book({call.model for call in calls.values() if call.model is not None})
    prices: dict[int, Priced] = {}
    refusals: dict[int, Refused] = {}
    for place, row in rows:
        submission = items[place][1]
        try:
            pool, call = terms.pools[submission.pool], calls.get(place)
            called = None if call is None else _priced_call(call, pool, book, terms.now)
            priced = _price(submission, row, pool, called)
        except Refused as refusal:
            refusals[place] = refusal
            continue
        if priced is not None:
            prices[place] = priced
    return prices, refusals


def _call(submission: Submission, pool: PoolTerms) -> Call | None:
    """The call that a payload is; None for one that is none, which its executor refuses before anything is sent."""
    payload, default = orjson.loads(submission.payload), _text(pool.config, "model")
    call = read_call(payload, model=default)
    if call.model is None:
        return None
    api = _text(config_of(pool.config, call.model), "api")
    return call if api is None else read_call(payload, model=default, api=ApiName(api))


def _price(submission: Submission, row: Admitted, pool: PoolTerms, called: tuple[Pricing, int] | None) -> Priced | None:
    """What the call costs that it makes, if it makes one, and its worker's time; at most what it names itself."""
    pricing, least = called or (Pricing(most=0), 0)
    if pool.worker_second_nano is not None:
        seconds = submission.timeout_s or pool.timeout_s or row.expected_s
        time_cost = int(seconds * 1_000_000) * pool.worker_second_nano // 1_000_000 + 1
        pricing = replace(pricing, most=pricing.most + time_cost, input_cost=pricing.input_cost + time_cost)
        least += time_cost
    limit = submission.max_cost_nano
    if limit is not None:
        if called is None and pool.worker_second_nano is None:
            pricing, least = Pricing(most=limit), limit
        elif least > limit:
            raise _refused(
                "max_cost_too_low",
                "max_cost_usd",
                f"It costs at least ${format_usd(least)}: raise max_cost_usd, or make the input or its output shorter.",
            )
        pricing = replace(pricing, most=min(pricing.most, limit))
    elif called is None and pool.worker_second_nano is None:
        return None
    most = min(pricing.most, COST_MAX)
    # What its worker's time costs is known without: nothing need be kept and read again for every attempt.
    is_time_alone = called is None and pool.worker_second_nano is not None
    return Priced(most, min(least, most), None if is_time_alone else orjson.dumps(pricing.as_json()).decode())


def _priced_call(call: Call, pool: PoolTerms, book: PriceBook, now: float) -> tuple[Pricing, int]:
    config = config_of(pool.config, call.model)
    provider, base_url = (_text(config, name) for name in ("price_provider", "base_url"))
    assert call.model is not None  # noqa: S101 - others are no calls
    table = book.find(call.model, at=now, provider=provider or "", base_url=base_url, tier=call.tier)
    table = table or ceiling_of(config)
    if table is None:
        raise _refused(
            "unknown_price",
            "payload",
            f"The price of the model {call.model!r} is not known, so it cannot be budgeted. Add it with POST /prices or"
            " give its pool a ceiling price (ceiling_input_usd_per_mtok, ceiling_output_usd_per_mtok).",
        )
    bound = config.get("max_output_tokens")
    limits = [n for n in (call.output_most, bound) if isinstance(n, int)]
    output_most = min(limits, default=None)
    asked = Asked(
        call.input_most, call.input_likely, output_most, call.answers, call.writes_1h, has_output=call.has_output
    )
    found = estimate(table, asked, output_default=OUTPUT_DEFAULT_TOKENS)
    pricing = Pricing(
        most=found.most,
        model=call.model,
        provider=provider or "",
        base_url=base_url,
        tier=call.tier,
        table=table,
        input_likely=call.input_likely,
        input_cost=found.input_cost,
        output_most=found.output_most,
        output_rate=found.output_rate,
    )
    return pricing, found.least


def _text(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    return value if isinstance(value, str) else None


def _refused(code: str, field: str, detail: str) -> Refused:
    return Refused(detail, code=code, errors=(FieldError((field,), detail),))
