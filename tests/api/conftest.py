"""A web process on a database of its own for a whole file, with clients that hold the ways in."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from pytest_django import DjangoDbBlocker

from scheduler.services.seeding import seed_defaults
from scheduler.services.tenants import add_tenant
from scheduler.services.tokens import create_token, forget_tokens
from tests.support import database
from tests.support.server import running_server

PROVIDER_URL = "http://127.0.0.1:9/v1"


@dataclass(frozen=True, slots=True)
class Site:
    """A served product: its address and tokens. `token` is acme's, `rival` is globex's."""

    url: str
    token: str
    rival: str
    admin: str

    def client(self, token: str | None = None) -> httpx2.Client:
        """A keep-alive client with a token (acme's by default; "" for none)."""
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30.0, trust_env=False)


@pytest.fixture(scope="module")
def site(django_db_setup: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Site]:
    """The product, served; its tables are emptied after the file."""
    with django_db_blocker.unblock():
        try:
            seed = seed_defaults(provider_url=PROVIDER_URL)
            rival = create_token(scopes=["submit", "read", "work", "operate"], tenant="globex", actor="test").text
            add_tenant("initech", actor="test")
            with running_server(database.url_of(django_db_setup)) as url:
                yield Site(url, seed.token, rival, seed.admin_token)
        finally:
            database.empty_tables(django_db_setup)
            forget_tokens()


@pytest.fixture
def api(site: Site) -> Iterator[httpx2.Client]:
    """A client of acme."""
    with site.client() as client:
        yield client


@pytest.fixture
def admin(site: Site) -> Iterator[httpx2.Client]:
    """A client with every scope and no tenant."""
    with site.client(site.admin) as client:
        yield client
