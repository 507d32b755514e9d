"""A refusal is understood by its code: the same status stands for many things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.errors import MESSAGE_CHARS_MAX, ProviderErrorKind, classify, short_message

K = ProviderErrorKind


def openai(code: str | None, type_: str = "requests", message: str = "No.") -> dict[str, object]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def anthropic(type_: str, message: str = "No.", **more: object) -> dict[str, object]:
    return {"type": "error", "error": {"type": type_, "message": message, **more}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, openai("rate_limit_exceeded"), K.THROTTLED),
        (429, openai("slow_down"), K.THROTTLED),
        (503, openai("slow_down"), K.THROTTLED),
        (429, openai("insufficient_quota", "insufficient_quota"), K.PROVIDER_BILLING),
        (429, openai("credit_balance_exhausted"), K.PROVIDER_BILLING),
        (429, openai("organization_spend_limit_exceeded"), K.PROVIDER_BILLING),
        (429, openai("project_spend_limit_exceeded"), K.PROVIDER_BILLING),
        (429, openai("organization_usage_limit_exceeded"), K.PROVIDER_BILLING),
        (503, openai("server_is_overloaded", "server_error"), K.OVERLOADED),
        (503, {"error": {"message": "The engine is currently overloaded"}}, K.OVERLOADED),
        (500, openai(None, "server_error"), K.OVERLOADED),
        (502, "<html>Bad gateway</html>", K.OVERLOADED),
        (429, openai(None, message="Resource unavailable. Please try later."), K.CAPACITY),
        (429, openai("rate_limit_exceeded", "tokens", "Request too large for m on tokens per min (TPM)"), K.PERMANENT),
        (400, openai("context_length_exceeded", "invalid_request_error"), K.PERMANENT),
        (401, openai("invalid_api_key", "invalid_request_error"), K.PERMANENT),
        (404, openai("model_not_found", "invalid_request_error"), K.PERMANENT),
        (429, {"error": {"code": "429", "message": "Requests to the deployment have exceeded the limit"}}, K.THROTTLED),
        (408, {"error": {"code": "Timeout", "message": "The operation was timeout."}}, K.TIMEOUT),
        (429, anthropic("rate_limit_error"), K.THROTTLED),
        (
            429,
            anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            K.PROVIDER_BILLING,
        ),
        (
            400,
            anthropic("invalid_request_error", "You have reached your specified API usage limits."),
            K.PROVIDER_BILLING,
        ),
        (
            429,
            anthropic("rate_limit_error", "You have reached your specified workspace usage limits."),
            K.PROVIDER_BILLING,
        ),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to call the API."),
            K.PROVIDER_BILLING,
        ),
        (400, anthropic("invalid_request_error", "max_tokens: must be positive"), K.PERMANENT),
        (402, anthropic("billing_error"), K.PROVIDER_BILLING),
        (529, anthropic("overloaded_error"), K.OVERLOADED),
        (200, anthropic("overloaded_error"), K.OVERLOADED),
        (413, anthropic("request_too_large"), K.PERMANENT),
        (504, anthropic("timeout_error"), K.TIMEOUT),
        (409, anthropic("conflict_error"), K.ERROR),
        (429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded."}}, K.THROTTLED),
        (503, [{"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded."}}], K.OVERLOADED),
        (504, {"error": {"code": 504, "status": "DEADLINE_EXCEEDED"}}, K.TIMEOUT),
        (429, {"__type": "ThrottlingException", "message": "Too many tokens"}, K.THROTTLED),
        (498, openai("capacity_exceeded"), K.CAPACITY),
        (498, None, K.CAPACITY),
        (402, {"error": {"code": 402, "message": "Insufficient credits"}}, K.PROVIDER_BILLING),
        (402, None, K.PROVIDER_BILLING),
        (429, None, K.THROTTLED),
        (425, "", K.ERROR),
        (524, "", K.TIMEOUT),
        (418, [], K.PERMANENT),
        (302, "", K.PERMANENT),
        (200, {"error": {"message": "something"}}, K.ERROR),
        (200, "a chunk is not JSON", K.ERROR),
    ],
)
def test_each_provider_s_refusals(status: int, body: object, kind: ProviderErrorKind) -> None:
    assert classify(status, {}, body).kind is kind


def test_a_spend_limit_goes_before_every_other_reading() -> None:
    body = openai("insufficient_quota", "requests", "Request too large")
    assert classify(429, {}, body).kind is K.PROVIDER_BILLING


def test_the_code_is_told_even_when_it_decides_nothing() -> None:
    verdict = classify(400, {}, openai("Content_Filter", "invalid_request_error", "Blocked."))
    assert (verdict.code, verdict.message) == ("content_filter", "HTTP 400: Blocked.")
    assert classify(500, {}, None).code is None


def test_growing_too_fast_is_told_apart_from_being_too_fast() -> None:
    assert classify(429, {}, openai("slow_down")).slow_down
    assert not classify(429, {}, openai("rate_limit_exceeded")).slow_down


@pytest.mark.parametrize(
    ("details", "daily"),
    [
        ([{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}], True),
        ([{"violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute"}]}], False),
        ([{"violations": [None, {}]}, {"violations": "x"}, "y"], False),
        ("x", False),
    ],
)
def test_a_spent_day_is_told_apart_from_a_spent_minute(details: object, *, daily: bool) -> None:
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}
    assert classify(429, {}, body).daily is daily


@pytest.mark.parametrize(
    ("status", "header", "kind"),
    [
        (500, "false", K.PERMANENT),
        (500, "true", K.OVERLOADED),
        (400, "true", K.ERROR),
        (400, "false", K.PERMANENT),
        (429, "false", K.THROTTLED),
        (402, "true", K.PROVIDER_BILLING),
    ],
)
def test_the_provider_s_word_counts_where_no_code_does(status: int, header: str, kind: ProviderErrorKind) -> None:
    assert classify(status, {"X-Should-Retry": header}, None).kind is kind


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "sk-ab****************wxyz",
        "Bearer abc.def",
        "AIzaSyA1234567890abcdef",
        "gsk_abcdefghijk",
        "cq_1_secretsecret",
    ],
)
def test_no_credential_gets_into_a_message(secret: str) -> None:
    message = classify(401, {}, openai("invalid_api_key", message=f"Incorrect key provided: {secret}, sorry.")).message
    assert secret not in message
    assert "[redacted]" in message


@given(st.text(max_size=500))
def test_messages_are_one_short_printable_line(message: str) -> None:
    short = short_message(message)
    assert len(short) <= MESSAGE_CHARS_MAX
    assert short.isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "code", "type", "message", "details", "status", "violations", "quotaId"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.integers(100, 599), JSON)
def test_every_body_gets_a_verdict(status: int, body: object) -> None:
    assert classify(status, {}, body).kind in K
