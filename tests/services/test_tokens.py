"""Tokens: what is stored, what opens, and the command that makes them."""

from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from scheduler.errors import NotFound, Refused
from scheduler.models import ApiToken, AuditEvent
from scheduler.services import tokens
from scheduler.services.tokens import authenticate, create_token, recall, revoke_token
from tests.support.work import make_pool, make_tenant

pytestmark = pytest.mark.django_db


def test_only_the_hash_of_a_secret_is_stored() -> None:
    made = create_token(scopes=["read"], actor="ada", name="ci")
    row = ApiToken.objects.get(public_id=made.public_id)
    secret = made.text.rpartition("_")[2]
    assert len(bytes(row.secret_sha256)) == 32
    assert secret not in str(AuditEvent.objects.get().after)
    assert secret.encode() not in bytes(row.secret_sha256)
    assert made.text not in str(row)


def test_a_token_opens_with_its_whole_text_only() -> None:
    tenant = make_tenant()
    made = create_token(scopes=["read", "submit", "read"], tenant="acme", actor="ada")
    caller = authenticate(made.text)
    assert caller is not None
    assert (caller.tenant_id, caller.tenant_slug, caller.actor) == (tenant, "acme", f"token:{made.public_id}")
    assert caller.scopes == {"read", "submit"}
    assert recall(made.text) == (caller,)
    assert recall(made.text[:-1] + ("0" if made.text[-1] != "0" else "1")) == (None,)
    for text in (made.text[:-1], made.text + "0", made.text.upper(), f" {made.text}", "", "cq_", "cq_a_b"):
        assert authenticate(text) is None, text
    assert recall("cq_") == (None,)
    assert recall("cq_0123456789ab_" + "0" * 48) is None


def test_a_token_that_is_forgotten_meanwhile_is_not_looked_up_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a token may end between any two looks at it."""
    make_tenant()
    made = create_token(scopes=["read"], tenant="acme", actor="ada")
    assert authenticate(made.text) is not None
    looks = iter([tokens._rows[made.public_id], None, None])
    monkeypatch.setattr(tokens, "_rows", SimpleNamespace(get=lambda _: next(looks)))
    assert recall(made.text) is not None, "it was there at the one moment that counts"
    assert recall(made.text) is None


def test_a_revoked_token_is_useless_here_at_once(django_capture_on_commit_callbacks: object) -> None:
    made = create_token(scopes=["read"], actor="ada")
    assert authenticate(made.text) is not None
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # pytest-django's fixture
        revoke_token(made.public_id, actor="ada")
    assert authenticate(made.text) is None
    with pytest.raises(NotFound):
        revoke_token(made.public_id, actor="ada")


@pytest.mark.parametrize(
    "asked",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": ["read"], "name": "\x00"},
        {"scopes": ["read"], "name": "x" * 201},
    ],
)
def test_unusable_tokens_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(Refused):
        create_token(**asked, actor="ada")  # type: ignore[arg-type]  # as from outside


def test_the_command_prints_a_token_that_opens() -> None:
    make_tenant()
    make_pool("p")
    out = StringIO()
    call_command("create_token", "--tenant=acme", "--scope=submit", "--scope=read", "--pool=p", stdout=out)
    caller = authenticate(out.getvalue().strip())
    assert caller is not None
    assert caller.scopes == {"submit", "read"}
    assert caller.pools == frozenset({"p"})
    with pytest.raises(CommandError, match="nobody"):
        call_command("create_token", "--tenant=nobody", "--scope=read", stdout=out)
