"""What a first view transfers, and that pages go compressed."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from scheduler.models import Pool
from tests.web.conftest import SignIn

FIRST_VIEW_BYTES_MAX = 70_000
REQUESTS_MAX = 8
ASSET = re.compile(r'(?:href|src)="/static/([^"#]+)')


def assets_of(html: str) -> set[str]:
    """The files that a page makes a browser load."""
    return set(ASSET.findall(html))


def compressed(asset: str) -> int:
    path = finders.find(asset)
    assert isinstance(path, str)
    return len(gzip.compress(Path(path).read_bytes()))


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("path", ["/ops/", "/ops/pools/llm/", "/ops/tasks/", "/ops/slo/"])
def test_a_first_view_is_small_with_everything_it_loads(path: str, signed_in: SignIn, llm: Pool) -> None:
    answer = signed_in("operator").get(path, headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    loaded = assets_of(gzip.decompress(answer.content).decode())
    assert len(answer.content) + sum(map(compressed, loaded)) <= FIRST_VIEW_BYTES_MAX
    assert 5 <= len(loaded) < REQUESTS_MAX


@pytest.mark.usefixtures("snapshot")
def test_who_takes_no_compressed_pages_gets_plain_ones(signed_in: SignIn) -> None:
    assert not signed_in("viewer").get("/ops/").has_header("Content-Encoding")


@pytest.mark.usefixtures("snapshot")
def test_only_pages_are_compressed(signed_in: SignIn) -> None:
    """The live view's answers keep the ETag that they are asked for with again."""
    client = signed_in("viewer")
    said = client.get("/ops/_live/overview/", headers={"Accept-Encoding": "gzip"})
    assert not said.has_header("Content-Encoding")
    assert not said["ETag"].startswith("W/")
    refused = Client().get("/api/v1/tasks", headers={"Accept-Encoding": "gzip"})
    assert not refused.has_header("Content-Encoding")
