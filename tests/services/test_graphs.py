"""Tasks that come after others, on a real database: what starts, what is skipped, and what a group does to its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.errors import Conflict, Refused
from scheduler.models import Run, Task, TaskEdge, TaskGroup, TaskPayload
from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.graph import Dependency, EdgeCondition, JoinPolicy
from scheduler.policy.runs import Asked
from scheduler.policy.states import TaskState
from scheduler.policy.types import FailureClass, PoolId, TaskId, TenantId
from scheduler.reads.upstream import with_upstream
from scheduler.services.cancel import cancel
from scheduler.services.graphs import tend
from scheduler.services.replay import replay
from scheduler.services.runs import create_run
from scheduler.services.submit import Accepted, submit, submit_batch
from tests.support.work import HandWorker, make_pool, make_tenant, state_of

pytestmark = pytest.mark.django_db

S, F, C = EdgeCondition.SUCCESS, EdgeCondition.FAILURE, EdgeCondition.COMPLETE
ONCE = RetrySettings(max_attempts=1)


def node(key: str, *after: str | tuple[str, EdgeCondition], **fields: object) -> Submission:
    """A task with a key that comes after others by key."""
    edges = tuple(Dependency(each) if isinstance(each, str) else Dependency(each[0], on=each[1]) for each in after)
    return replace(Submission("{}", pool="p", key=key, retry=ONCE, after=edges), **fields)  # type: ignore[arg-type]  # a builder


class World:
    """One tenant, one pool, one worker; tasks by key."""

    def __init__(self) -> None:
        self.tenant: TenantId = make_tenant()
        self.pool: PoolId = make_pool(slots=50)
        self.worker = HandWorker({self.pool: 50})

    def batch(self, *nodes: Submission) -> dict[str | None, Accepted]:
        return {answer.key: answer for answer in submit_batch(self.tenant, nodes)}

    def id(self, key: str) -> TaskId:
        return TaskId(Task.objects.get(key=key).pk)

    def states(self, keys: str) -> list[str]:
        return [state_of(self.id(key)) for key in keys.split()]

    def run(self) -> dict[str | None, int]:
        """Start what can start; leases by key."""
        self.leased = {leased.key: leased for leased in self.worker.start()}
        return {key: leased.lease for key, leased in self.leased.items()}

    def succeed(self, *keys: str) -> int:
        return self.worker.succeed([self.leased[key] for key in keys]).woken

    def fail(self, *keys: str, permanent: bool = False) -> int:
        kind = FailureClass.PERMANENT if permanent else FailureClass.ERROR
        return self.worker.fail([self.leased[key] for key in keys], kind).woken


@pytest.fixture
def world() -> World:
    return World()


def test_a_task_starts_when_all_that_it_comes_after_have_succeeded(world: World) -> None:
    answers = world.batch(node("c", "a", "b"), node("a"), node("b"))
    assert [answers[k].state for k in "cab"] == [TaskState.BLOCKED, TaskState.READY, TaskState.READY]
    assert set(world.run()) == {"a", "b"}
    assert world.succeed("a") == 0
    assert world.states("c") == ["blocked"]
    assert world.succeed("b") == 1
    assert world.states("c") == ["ready"]
    assert Task.objects.get(key="c").ready_at is not None
    assert set(world.run()) == {"c"}


@pytest.mark.parametrize(
    ("end", "skipped", "freed"),
    [
        ("succeeded", "f", "s c"),
        ("failed", "s", "f c"),
        ("dead_lettered", "s", "f c"),
        ("cancelled", "s f", "c"),
    ],
)
def test_each_end_meets_the_edges_that_it_should(world: World, end: str, skipped: str, freed: str) -> None:
    world.batch(node("a"), node("s", ("a", S)), node("f", ("a", F)), node("c", ("a", C)))
    world.run()
    match end:
        case "succeeded":
            world.succeed("a")
        case "cancelled":
            cancel(world.id("a"), world.tenant, actor="ada")
            world.succeed("a")
        case _:
            world.fail("a", permanent=end == "failed")
    assert world.states("a") == [end]
    assert set(world.states(skipped)) == {"skipped"}
    assert set(world.states(freed)) == {"ready"}
    assert Task.objects.filter(state="skipped", finished_at=None).count() == 0


def test_a_retry_is_no_end(world: World) -> None:
    world.batch(node("a", retry=RetrySettings(max_attempts=2)), node("b", ("a", C)))
    world.run()
    world.fail("a")
    assert world.states("a b") == ["retrying", "blocked"]


def test_skipping_goes_on_through_the_graph_and_stops_where_an_edge_is_met(world: World) -> None:
    world.batch(
        node("a"),
        node("b", "a"),
        node("c", "b"),
        node("d", "c", "x"),
        node("x"),
        node("e", ("d", C)),
        node("f", ("d", F)),
    )
    world.run()
    world.fail("a")
    assert world.states("b c d e f x") == ["skipped", "skipped", "skipped", "ready", "skipped", "running"]
    world.succeed("x")
    assert not TaskEdge.objects.filter(met=None).exists(), "edges of a task that has ended are decided too"


def test_a_chain_of_a_thousand_is_skipped_in_the_settlement_of_its_head(world: World) -> None:
    world.batch(*(node(str(n), *[str(n - 1)] * (n > 0)) for n in range(1_000)))
    world.run()
    world.fail("0")
    assert Task.objects.filter(state="skipped").count() == 999


def test_many_to_one(world: World) -> None:
    maps = [f"m{n}" for n in range(40)]
    world.batch(*map(node, maps), node("reduce", *maps))
    world.run()
    for key in maps[1:]:
        world.succeed(key)
    assert world.states("reduce") == ["blocked"]
    world.succeed("m0")
    assert world.states("reduce") == ["ready"]


def test_cancelling_a_waiting_task_is_an_end_too(world: World) -> None:
    world.batch(node("a"), node("b", "a"), node("c", "b"), node("d", ("b", C)))
    cancel(world.id("b"), world.tenant, actor="ada")
    assert world.states("a b c d") == ["ready", "cancelled", "skipped", "ready"]
    world.run()
    world.succeed("a")
    assert world.states("b") == ["cancelled"]


def test_a_start_ahead_and_a_deadline_outlast_the_waiting(world: World) -> None:
    world.batch(node("a"), node("b", "a", start_in_s=3600.0, deadline_in_s=4000.0), node("c", "a", start_in_s=0.0))
    world.run()
    world.succeed("a")
    assert world.states("b c") == ["scheduled", "ready"]
    later = Task.objects.get(key="b")
    assert (later.due_at is not None, later.latest_start is not None, later.ready_at) == (True, True, None)


def test_parents_that_ended_before_decide_at_once(world: World) -> None:
    world.batch(node("good"), node("bad"))
    world.run()
    world.succeed("good")
    world.fail("bad")
    answers = world.batch(
        node("a", "good"),
        node("b", "bad"),
        node("c", ("bad", F)),
        node("d", "b"),
        node("e", "good", "bad"),
        node("f", "a"),
    )
    assert [answers[k].state.value for k in "abcdef"] == ["ready", "skipped", "ready", "skipped", "skipped", "blocked"]
    assert world.states("a b c d e f") == ["ready", "skipped", "ready", "skipped", "skipped", "blocked"]
    assert set(world.run()) == {"a", "c"}


def test_a_parent_of_before_is_linked_and_then_wakes_its_child(world: World) -> None:
    world.batch(node("a"))
    submit(world.tenant, node("b", "a"))
    by_id = submit(world.tenant, replace(node("c"), after=(Dependency(id=world.id("a")),)))
    assert by_id.state is TaskState.BLOCKED
    tend()
    assert set(TaskEdge.objects.values_list("linked", flat=True)) == {True}
    world.run()
    assert world.succeed("a") == 2
    assert world.states("b c") == ["ready", "ready"]


def test_the_sweep_finds_a_parent_that_ended_unnoticed(world: World) -> None:
    world.batch(node("a"))
    submit(world.tenant, node("b", "a"))
    world.run()
    assert world.succeed("a") == 0, "nobody has told it that somebody comes after it"
    assert world.states("b") == ["blocked"]
    assert tend() == 1
    assert world.states("b") == ["ready"]
    assert tend() == 0


@pytest.mark.parametrize(
    ("nodes", "code", "loc"),
    [
        ([node("a", "a")], "cycle", ("after", 0)),
        ([node("a", "c"), node("b", "a"), node("c", "b")], "cycle", ("tasks", 0, "after", 0)),
        ([node("a"), node("b", "a", "nobody")], "unknown_dependency", ("tasks", 1, "after", 1)),
        ([replace(node("a"), after=(Dependency(id=TaskId(2**40)),))], "unknown_dependency", ("after", 0)),
    ],
)
def test_what_cannot_be_a_graph_is_refused_whole(
    world: World, nodes: Sequence[Submission], code: str, loc: tuple[object, ...]
) -> None:
    with pytest.raises(Refused) as refused:
        submit_batch(world.tenant, nodes)
    assert (refused.value.code, refused.value.errors[0].loc) == (code, loc)
    assert not Task.objects.exists()


def test_another_tenants_task_is_unknown(world: World) -> None:
    world.batch(node("a"))
    rival = make_tenant("globex")
    for after in (Dependency("a"), Dependency(id=world.id("a"))):
        with pytest.raises(Refused, match="There is no task"):
            submit(rival, replace(node("b"), after=(after,)))


def test_a_repeated_batch_is_the_first_one_again(world: World) -> None:
    graph = [node("a"), node("b", "a")]
    world.batch(*graph)
    world.run()
    world.succeed("a")
    again = world.batch(*graph)
    assert [(a.duplicate, a.state) for a in again.values()] == [(True, TaskState.SUCCEEDED), (True, TaskState.READY)]
    assert TaskEdge.objects.count() == 1
    with pytest.raises(Refused) as refused:
        world.batch(node("a"), node("b", ("a", C)))
    assert refused.value.code == "key_reused"


def test_a_pool_may_wait_for_keys_that_nobody_has_used(world: World) -> None:
    pool = make_pool("patient", unknown_dependency="await")
    submit(world.tenant, node("b", "a", pool="patient"))
    tend()
    assert world.states("b") == ["blocked"]
    world.batch(node("a"))
    tend()
    world.run()
    assert world.succeed("a") == 1
    assert world.states("b") == ["ready"]
    assert HandWorker({pool: 1}).start()[0].has_parents


def test_waiting_for_a_key_ends_with_its_time(world: World) -> None:
    make_pool("hasty", unknown_dependency="await", await_timeout_s=0.0)
    submit(world.tenant, node("b", "a", pool="hasty"))
    submit(world.tenant, node("c", ("b", C)))
    tend()
    tend()
    assert world.states("b c") == ["skipped", "ready"]


def test_a_circle_closed_by_an_awaited_key_is_skipped(world: World) -> None:
    make_pool("patient", unknown_dependency="await")
    submit(world.tenant, node("a", "c", pool="patient"))
    submit(world.tenant, node("b", "a"))
    submit(world.tenant, node("c", "b"))
    tend()
    tend()
    assert world.states("a b c") == ["skipped", "skipped", "skipped"]


def test_two_that_await_each_other_are_skipped(world: World) -> None:
    make_pool("patient", unknown_dependency="await")
    submit(world.tenant, node("a", "b", pool="patient"))
    submit(world.tenant, replace(node("b", "c", pool="patient")))
    submit(world.tenant, replace(node("c", "a", pool="patient")))
    tend()
    tend()
    assert world.states("a b c") == ["skipped", "skipped", "skipped"]


def test_a_replay_undoes_nothing_that_the_first_end_led_to(world: World) -> None:
    world.batch(node("a"), node("b", "a"), node("c", ("a", F)))
    world.run()
    world.fail("a")
    replay(world.id("a"), world.tenant, actor="ada")
    world.run()
    world.succeed("a", "c")
    assert world.states("a b c") == ["succeeded", "skipped", "succeeded"]


def test_what_ended_while_it_waited_is_replayed_only_once_its_parents_ended_well(world: World) -> None:
    world.batch(node("a"), node("b", "a"))
    Task.objects.filter(key="b").update(state="shed")
    with pytest.raises(Conflict, match="comes after"):
        replay(world.id("b"), world.tenant, actor="ada")
    world.run()
    world.succeed("a")
    assert world.states("b") == ["shed"]
    replay(world.id("b"), world.tenant, actor="ada")
    assert world.states("b") == ["ready"]


FAST = {"group": "g", "join": JoinPolicy.FAIL_FAST}


def test_the_first_failure_ends_a_group_that_fails_fast(world: World) -> None:
    world.batch(
        node("a", **FAST),
        node("b", **FAST),
        node("c", "b", **FAST),
        node("d", start_in_s=60.0, **FAST),
        node("out", ("c", C)),
    )
    world.run()
    assert world.fail("a") == 2, "one is told to stop, one outside is let go"
    assert world.states("a b c d out") == ["dead_lettered", "running", "cancelled", "cancelled", "ready"]
    world.succeed("b")
    assert world.states("b") == ["cancelled"]
    group = TaskGroup.objects.get()
    assert (group.cause, group.cancelled_at is not None, group.closed_at) == (world.id("a"), True, None)
    tend()
    assert TaskGroup.objects.get().closed_at is not None


def test_a_best_effort_group_goes_on(world: World) -> None:
    world.batch(*(node(key, group="g", join=JoinPolicy.BEST_EFFORT) for key in "ab"), node("c", ("a", C), ("b", C)))
    world.run()
    world.fail("a")
    world.succeed("b")
    assert world.states("a b c") == ["dead_lettered", "succeeded", "ready"]
    assert TaskGroup.objects.get().cancelled_at is None


def test_a_cancelled_group_takes_nobody_new_and_answers_for_the_old(world: World) -> None:
    world.batch(node("a", **FAST))
    world.run()
    world.fail("a")
    with pytest.raises(Refused) as refused:
        world.batch(node("b", **FAST))
    assert refused.value.code == "group_cancelled"
    assert world.batch(node("a", **FAST))["a"].duplicate
    with pytest.raises(Refused) as refused:
        world.batch(node("z", group="g", join=JoinPolicy.BEST_EFFORT))
    assert refused.value.code == "group_join_differs"


def test_a_member_that_was_missed_is_stopped_by_the_sweep(world: World) -> None:
    world.batch(node("a", **FAST))
    world.run()
    world.fail("a")
    tend()
    assert TaskGroup.objects.get().closed_at is not None
    late = submit(world.tenant, node("late"))
    TaskGroup.objects.update(closed_at=None)
    TaskPayload.objects.filter(task_id=late.id).update(group_id=TaskGroup.objects.get().pk)
    tend()
    assert world.states("late") == ["cancelled"]


def test_steps_of_a_run_join_with_the_names_of_what_is_missing(world: World) -> None:
    run = create_run(world.tenant, "{}", asked=Asked(max_width=8)).id
    world.batch(
        *(node(key, group="g", join=JoinPolicy.BEST_EFFORT, run=run) for key in "abc"),
        node("join", *((key, C) for key in "abc"), run=run),
    )
    assert set(world.run()) == {"a", "b", "c"}
    world.fail("b")
    world.succeed("a", "c")
    (joined,) = with_upstream(world.worker.start())
    assert joined.of_run
    told = json.loads(str(joined.upstream))
    states = {key: each["state"] for key, each in told.items()}
    assert states == {"a": "succeeded", "b": "dead_lettered", "c": "succeeded"}, "the miss is named as what it is"
    assert (told["a"]["result"], told["b"]["result"]) == ("done", None)


def test_the_first_failure_among_steps_of_a_run_ends_their_group_and_not_the_run(world: World) -> None:
    run = create_run(world.tenant, "{}", asked=Asked(max_width=2)).id
    world.batch(*(node(key, run=run, **FAST) for key in "abc"), node("d", "a", run=run, **FAST), node("other", run=run))
    assert len(world.run()) == 2
    first, second = world.leased
    world.fail(str(first))
    assert world.states("d") == ["cancelled"]
    world.succeed(str(second))
    assert world.states(str(second)) == ["cancelled"], "it ran, and was told to stop"
    assert sorted(world.states("a b c")) == ["cancelled", "cancelled", "dead_lettered"]
    assert (Run.objects.get().state, set(world.run())) == ("active", {"other"}), "its other steps go on"
