"""When signing in must wait: by name, by address, from many at once, and not where a name is at home."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from scheduler.models import SignInCount
from scheduler.services import sign_ins
from scheduler.services.sign_ins import ADDRESS, NAME, NAME_AT_ADDRESS
from scheduler.services.sweep import sweep

HOME = "192.0.2.1"


def elsewhere(number: int) -> str:
    return f"198.51.{number // 250}.{number % 250}"


def let_pass(seconds: float) -> None:
    gone = timedelta(seconds=seconds)
    SignInCount.objects.update(last_at=F("last_at") - gone, free_at=F("free_at") - gone)


def guess(times: int, name: str = "mira", address: str = HOME) -> list[float]:
    """What each of so many tries had to wait."""
    return [sign_ins.begin(name, address).wait_s for _ in range(times)]


def guess_from_everywhere(times: int, name: str = "mira") -> list[float]:
    return [sign_ins.begin(name, elsewhere(number)).wait_s for number in range(times)]


@pytest.mark.django_db
@pytest.mark.parametrize(("tries", "seconds"), [(1, 0), (4, 0), (5, 30), (6, 60), (8, 240), (20, 900), (10_000, 900)])
def test_waiting_doubles_up_to_a_quarter_hour(tries: int, seconds: float) -> None:
    pair = sign_ins.begin("mira", HOME).pair
    if tries > 1:
        SignInCount.objects.filter(pk=pair).update(tries=tries - 1)
        assert sign_ins.begin("mira", HOME).wait_s == 0.0
    kept = SignInCount.objects.get(pk=pair)
    assert (kept.free_at - kept.last_at).total_seconds() == seconds


@pytest.mark.django_db
def test_what_comes_too_early_is_not_counted_and_time_heals() -> None:
    free = NAME_AT_ADDRESS.free
    waits = guess(free + 3)
    assert waits[:free] == [0.0] * free
    assert all(25.0 < wait <= 30.0 for wait in waits[free:])
    let_pass(31)
    assert guess(2)[0] == 0.0
    let_pass(7_200)
    assert guess(free) == [0.0] * free


@pytest.mark.django_db
def test_one_address_is_stopped_whatever_names_it_tries() -> None:
    waits = [sign_ins.begin(f"name {number}", HOME).wait_s for number in range(ADDRESS.free + 1)]
    assert waits[:-1] == [0.0] * ADDRESS.free
    assert waits[-1] > 25.0
    assert guess(1, address=elsewhere(1)) == [0.0]


@pytest.mark.django_db
@pytest.mark.parametrize("addresses", [("2001:db8::1", "2001:db8::ffff"), ("192.0.2.1", "::ffff:192.0.2.1")])
def test_who_has_many_addresses_is_one(addresses: tuple[str, str]) -> None:
    guess(NAME_AT_ADDRESS.free, address=addresses[0])
    assert guess(1, address=addresses[1])[0] > 0.0
    assert guess(1, address="2001:db8:0:1::1") == guess(1, address="no address") == [0.0]


@pytest.mark.django_db
def test_many_addresses_slow_a_name_and_do_not_lock_it_out_of_its_own() -> None:
    sign_ins.succeed(sign_ins.begin("mira", HOME))
    waits = guess_from_everywhere(NAME.free + 1)
    assert waits[:-1] == [0.0] * NAME.free
    assert 0.0 < waits[-1] <= NAME.first_s
    SignInCount.objects.filter(tries__gte=NAME.free).update(tries=10_000)
    let_pass(NAME.longest_s)
    guess_from_everywhere(1)
    assert 0.0 < guess_from_everywhere(1)[0] <= NAME.longest_s
    assert guess(1) == [0.0]
    assert guess(1, name="noor") == [0.0]


@pytest.mark.django_db
def test_who_shares_an_address_with_a_guesser_still_gets_in() -> None:
    sign_ins.succeed(sign_ins.begin("mira", HOME))
    for number in range(ADDRESS.free + 1):
        sign_ins.begin(f"name {number}", HOME)
    assert guess(1, name="noor")[0] > 0.0
    assert guess(NAME_AT_ADDRESS.free + 1)[-1] > 0.0
    let_pass(31)
    assert guess(1) == [0.0]


@pytest.mark.django_db
def test_a_success_is_nobodys_fault_and_excuses_only_itself() -> None:
    guess(2, name="noor")
    sign_ins.succeed(sign_ins.begin("mira", HOME))
    tries = sorted(round(count.tries, 2) for count in SignInCount.objects.all())
    assert tries == [0.0, 0.0, 2.0, 2.0, 2.0]


@pytest.mark.django_db
def test_old_counts_are_forgotten_and_who_is_known_later() -> None:
    guess(1, name="noor")
    sign_ins.succeed(sign_ins.begin("mira", HOME))
    assert sweep() == 0
    let_pass(sign_ins.KEEP_S + 1)
    sweep()
    assert [count.known for count in SignInCount.objects.all()] == [True]
    let_pass(sign_ins.KNOWN_S)
    assert sign_ins.forget_tries() == 1


@pytest.mark.usefixtures("live_database")
def test_many_at_the_same_moment_get_no_more_looks() -> None:
    looked: list[float] = []
    together = threading.Barrier(8)

    def guesser() -> None:
        try:
            together.wait(30)
            looked.extend(wait_s for wait_s in guess(4) if wait_s == 0.0)
        finally:
            connection.close()

    threads = [threading.Thread(target=guesser) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(looked) == NAME_AT_ADDRESS.free
