"""Calls that a person must allow: what is asked, what each answer does, what waits meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pydantic
import pytest

from littleghost import Edge, Graph, Limits, Run, Tool, Workflow, tool
from littleghost.errors import ApprovalError, DefinitionError, InvocationError, RunNotFoundError
from littleghost.pending import Pending
from littleghost.tool import APPROVAL_TIMEOUT_S
from littleghost.watch import Watch
from littleghost.wiring import Runtime, runtime
from tests.integration.scripted import calls, kinds, make_agent, results, terminals, until

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()
RUN: list[int] = []


@pytest.fixture(autouse=True)
def no_runs_before() -> Iterator[None]:
    RUN.clear()
    yield
    RUN.clear()


class Refund(Tool):
    """Pay money back."""

    name = "refund"
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"n": {"type": "integer"}, "why": {"type": "string"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    requires_approval = True

    def call(self, input: dict[str, Any]) -> str:
        RUN.append(input["n"])
        return f"paid {input['n']}"


def asked(run: Run, count: int = 1) -> list[Pending]:
    """Wait until a run waits for so many answers and for nothing else."""
    until(lambda: run.status == "waiting" and len(run.pending) == count, f"{count} of {run!r} wait")
    return run.pending


def refunds(*numbers: int, then: str = "done", **attributes: Any) -> type[Any]:
    uses = calls(*[("refund", {"n": number}) for number in numbers])
    return make_agent([uses, then], attributes.pop("tool", Refund), **attributes)


def told(run: Run, kind: str) -> list[dict[str, Any]]:
    return [dict(event.data) for event in run.events() if event.type == kind]


def told_so_far(run: Run, kind: str) -> list[dict[str, Any]]:
    """Do the same without waiting for the end."""
    page = next(iter(Watch(runtime(), run.id).pages(0, 5)))
    return [dict(event.data) for event in page if event.type == kind]


# Questions.


def test_a_question_says_exactly_what_is_to_be_called_and_until_when() -> None:
    given = {"n": 7, "why": 'späť "now"\n'}
    agent = make_agent([calls(("refund", given)), "done"], Refund, assembly_id="payer")
    run = agent.enqueue("Go")
    [pending] = asked(run)

    assert (pending.kind, pending.tool, pending.participant) == ("approval", "refund", "payer")
    assert pending.arguments == given
    assert pending.expires_at is not None
    left = pending.expires_at - datetime.now(UTC)
    assert timedelta(0) <= timedelta(seconds=APPROVAL_TIMEOUT_S) - left < timedelta(seconds=20)
    shown = pending.to_json()
    assert shown["arguments"] == given
    assert datetime.fromisoformat(shown["expires_at"]) == pending.expires_at
    assert RUN == []

    assert run.approve(pending.id, by="ann") is run
    assert run.wait(20).response == "done"
    assert results(run) == [("success", "paid 7")]
    assert RUN == [7]
    assert run.pending == []


def test_events_tell_of_questions_and_answers_as_they_are() -> None:
    run = refunds(1, assembly_id="payer").enqueue("Go")
    [pending] = asked(run)
    run.approve(pending.id, by="ann")
    run.wait(20)

    [question] = told(run, "approval_requested")
    source = question.pop("source")
    assert source["agent_id"] == "payer"
    assert question.pop("tool_use")["input"] == {"n": 1}
    assert question == {"id": pending.id, "timeout_s": APPROVAL_TIMEOUT_S}
    [answer] = told(run, "approval_answered")
    assert answer.pop("source") == source
    assert answer == {"id": pending.id, "answer": {"verdict": "approved", "by": "ann"}}
    order = kinds(run)
    places = [order.index(kind) for kind in ("tool_start", *_PERSON, "tool_stop")]
    assert places == sorted(places)


_PERSON = ("approval_requested", "approval_answered")


def test_who_wants_no_agent_events_is_asked_all_the_same() -> None:
    run = refunds(1).enqueue("Go", include_agent_events=False)
    [pending] = asked(run)
    run.approve(pending.id)
    run.wait(20)
    assert "tool_start" not in kinds(run)
    assert {event.type for event in run.events()} >= set(_PERSON)


def test_calls_of_one_answer_are_allowed_separately_in_any_order_beyond_the_width() -> None:
    """Those nobody is asked about run meanwhile; a question takes no place in the width."""

    @tool(idempotent=True)
    def look(n: int) -> str:
        """Look."""
        RUN.append(n)
        return f"saw {n}"

    numbers = (1, 2, 3, 4)
    uses = calls(*[("refund", {"n": n}) for n in numbers], ("look", {"n": 5}), ("look", {"n": 6}))
    agent = make_agent([uses, "done"], Refund, look, limits=Limits(max_parallel_calls=2))
    run = agent.enqueue("Go")
    pending = asked(run, 4)
    assert [item.arguments["n"] for item in pending] == [1, 2, 3, 4]
    assert sorted(RUN) == [5, 6]

    for place in (3, 0):
        run.approve(pending[place].id)
        until(lambda place=place: numbers[place] in RUN, f"call {place} ran alone")
    assert [item.arguments["n"] for item in asked(run, 2)] == [2, 3]
    run.reject(pending[2].id, "no more")
    run.approve(pending[1].id)
    run.wait(20)

    assert [text.partition(" The reason")[0] for _, text in results(run)] == [
        "paid 1",
        "paid 2",
        "This call was rejected by a person, and was not made.",
        "paid 4",
        "saw 5",
        "saw 6",
    ]
    assert sorted(RUN) == [1, 2, 4, 5, 6]


def test_an_exclusive_batch_goes_in_the_models_order_whatever_the_order_of_answers() -> None:
    class InOrder(Refund):
        """Pay in order."""

        name = "refund"
        exclusive = True

        def requires_approval(self, input: dict[str, Any]) -> bool:
            return input["n"] % 2 == 1

    run = refunds(1, 2, 3, 4, tool=InOrder).enqueue("Go")
    first, third = asked(run, 2)
    assert (first.arguments["n"], third.arguments["n"]) == (1, 3)
    assert RUN == []
    run.approve(third.id)
    [still] = asked(run)
    assert (still.id, RUN) == (first.id, [])
    run.approve(first.id)
    run.wait(20)
    assert RUN == [1, 2, 3, 4]
    assert [text for _, text in results(run)] == [f"paid {n}" for n in (1, 2, 3, 4)]


# Who decides whether somebody is asked.


class Sum(pydantic.BaseModel):
    n: int


class WithModel(Tool):
    """Decide by a model instance."""

    name = "refund"
    input_schema = Sum

    def requires_approval(self, input: Sum) -> bool:
        assert isinstance(input, Sum)
        assert self.invocation.actor_id == "ann", "it sees whose call it is"
        return input.n > 100

    def call(self, input: Sum) -> str:
        RUN.append(input.n)
        return f"paid {input.n}"


@tool(name="refund", requires_approval=lambda given: given["n"] > given["limit"])
def with_types(n: int, limit: int = 100) -> str:
    """Decide by a dict, in which defaults stand."""
    RUN.append(n)
    return f"paid {n}"


WITH_FUNCTION = Tool.define(
    name="refund",
    description="Decide by the input.",
    call=lambda given: RUN.append(given["n"]) or f"paid {given['n']}",
    requires_approval=lambda given: given["n"] > 100,
)


@pytest.mark.parametrize("declared", [WithModel, with_types, WITH_FUNCTION])
def test_a_method_decides_by_the_input_of_each_call(declared: Any) -> None:
    run = refunds(5, 500, tool=declared).enqueue("Go", actor_id="ann")
    [pending] = asked(run)
    assert pending.arguments == {"n": 500}
    assert RUN == [5]
    run.approve(pending.id)
    run.wait(20)
    assert [text for _, text in results(run)] == ["paid 5", "paid 500"]


def test_a_method_that_fails_asks() -> None:
    @tool(name="refund", requires_approval=lambda given: given["nothing"])
    def broken(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    run = refunds(1, tool=broken).enqueue("Go")
    [pending] = asked(run)
    run.approve(pending.id)
    assert run.wait(20).response == "done"


def test_a_call_with_a_refused_input_asks_nobody() -> None:
    agent = make_agent([calls(("refund", {"n": "many"})), "done"], Refund)
    run = agent.ask("Go")
    [(status, text)] = results(run)
    assert status == "error"
    assert text.startswith("Invalid tool input: ")
    assert not told(run, "approval_requested")


async def later(given: dict[str, Any]) -> bool:
    return False


@pytest.mark.parametrize(
    "options",
    [
        {"requires_approval": "yes"},
        {"requires_approval": lambda: True},
        {"requires_approval": later},
        {"approval_timeout_s": 0},
        {"approval_timeout_s": None},
    ],
)
def test_declarations_that_ask_for_nothing_sensible_are_refused(options: dict[str, Any]) -> None:
    wrong = Tool.define(name="x", description="x", call=lambda given: "", **options)
    with pytest.raises(DefinitionError, match=next(iter(options))):
        make_agent(["x"], wrong).enqueue("Go")


# Answers.


def test_the_first_answer_counts_and_the_same_again_changes_nothing() -> None:
    agent = refunds(1, 2)
    run = agent.enqueue("Go")
    first, second = asked(run, 2)
    run.approve(first.id, by="ann")
    run.approve(first.id, by="ann")
    with pytest.raises(ApprovalError, match="approved already by 'ann'"):
        run.reject(first.id, "too late")
    with pytest.raises(ApprovalError, match="approved already"):
        run.approve(first.id, by="bob")
    run.edit(second.id, {"n": 3}, by="ann")
    run.wait(20)
    assert RUN == [1, 3]
    # Also when nothing is left of the calls.
    run.approve(first.id, by="ann")
    run.edit(second.id, {"n": 3}, by="ann")
    with pytest.raises(ApprovalError, match="approved already by 'ann'"):
        run.edit(second.id, {"n": 4}, by="ann")
    assert len(told(run, "approval_answered")) == 2


@pytest.mark.parametrize("act", ["approve", "reject", "edit"])
def test_an_id_under_which_nothing_waits_is_refused(act: str) -> None:
    def answer(run: Run, pending_id: str) -> None:
        getattr(run, act)(pending_id, *([{"n": 1}] if act == "edit" else []))

    run = refunds(1).enqueue("Go")
    [pending] = asked(run)
    for wrong in ("0-c9.9", "0-t0", "", "0-t1", "\n"):
        with pytest.raises(ApprovalError, match="nothing waits"):
            answer(run, wrong)
    run.cancel().wait(20)
    with pytest.raises(ApprovalError, match="nothing waits"):
        answer(run, pending.id)
    with pytest.raises(RunNotFoundError):
        Run.get("00-nobody").approve(pending.id)


def test_the_model_reads_why_a_call_was_rejected() -> None:
    run = refunds(1, 2).enqueue("Go")
    first, second = asked(run, 2)
    run.reject(first.id, "not before Monday", by="ann")
    run.reject(second.id)
    run.wait(20)
    why = "This call was rejected by a person, and was not made."
    assert results(run) == [
        ("error", f"{why} The reason given: not before Monday"),
        ("error", why),
    ]
    assert RUN == []


def test_a_person_may_change_what_a_call_is_made_with() -> None:
    run = refunds(100).enqueue("Go")
    [pending] = asked(run)
    run.edit(pending.id, {"n": 40, "why": "half"}, by="ann")
    run.wait(20)
    assert results(run) == [
        (
            "success",
            '(A person changed the input of this call to {"n":40,"why":"half"}.)\npaid 40',
        )
    ]
    assert RUN == [40]
    assert run.result is not None
    [use] = run.result.messages[1].tool_uses
    assert use.input == {"n": 100}, "the conversation keeps what the model said"


def test_the_tool_checks_what_a_person_wrote() -> None:
    run = refunds(100).enqueue("Go")
    [pending] = asked(run)
    for wrong in ({"n": {1}}, [1], "n", None, {"n": float("nan")}):
        with pytest.raises(InvocationError, match="arguments"):
            run.edit(pending.id, wrong)  # type: ignore[arg-type]
    assert [item.id for item in asked(run)] == [pending.id]
    run.edit(pending.id, {"n": "forty"})
    run.wait(20)
    [(status, text)] = results(run)
    assert status == "error"
    assert "Invalid tool input: " in text
    assert RUN == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda run, at: run.reject(at, "x" * 2001),
        lambda run, at: run.approve(at, by="x" * 201),
        lambda run, at: run.reject(at, 7),
        lambda run, at: run.approve(at, by="\ud800"),
    ],
)
def test_what_is_too_long_or_no_text_is_refused(answer: Callable[[Run, str], Any]) -> None:
    run = refunds(1).enqueue("Go")
    [pending] = asked(run)
    with pytest.raises(InvocationError, match="must be text of 1 to"):
        answer(run, pending.id)
    assert len(asked(run)) == 1
    run.cancel()


def test_a_question_that_nobody_answers_in_time_is_a_rejection() -> None:
    class Hurried(Refund):
        """Pay at once."""

        name = "refund"
        approval_timeout_s = 0.2

    run = refunds(1, tool=Hurried).enqueue("Go")
    run.wait(20)
    [(status, text)] = results(run)
    assert (status, RUN) == ("error", [])
    assert text == (
        "This call was not made: it needs a person's approval, and nobody answered in time."
    )
    [answer] = told(run, "approval_answered")
    assert answer["answer"] == {"verdict": "expired"}
    with pytest.raises(ApprovalError, match="expired already"):
        run.approve(answer["id"])


def test_an_answer_counts_as_late_though_the_keeper_has_not_looked() -> None:
    class Hurried(Refund):
        """Pay at once."""

        name = "refund"
        approval_timeout_s = 1e-3

    run = refunds(1, tool=Hurried).enqueue("Go")
    [question] = until(lambda: told_so_far(run, "approval_requested"), "it is asked")
    with pytest.raises(ApprovalError, match="expired already"):
        run.approve(question["id"])
    assert run.wait(20).outcome == "completed"


# Waiting.


def test_a_run_that_waits_holds_no_slot_and_can_be_cancelled() -> None:
    runs = [refunds(1).enqueue("Go") for _ in range(40)]
    for run in runs:
        asked(run)
        assert {task["s"] for task in run.record.tasks.values()} == {"wait"}
        assert (run.outcome, run.is_finished) == (None, False)
    assert make_agent(["quick"]).ask("Go").response == "quick"
    for run in runs:
        assert run.cancel("enough").wait(20).outcome == "cancelled"
        assert run.pending == []
        assert terminals(run) == ["run_cancel"]


def test_a_deadline_comes_while_it_waits() -> None:
    run = refunds(1).ask("Go", deadline=timedelta(seconds=0.4))
    assert run.outcome == "partial"
    assert terminals(run) == ["run_partial"]
    assert RUN == []


def test_the_audit_says_that_a_person_can_move_it_and_mends_its_timer(embedded: Runtime) -> None:
    run = refunds(1).enqueue("Go")
    [pending] = asked(run)
    assert embedded.keeper.audit(run.id, mend=False) == "person"
    _, prefix = embedded.journal.place(run.id)
    name = f"{run.id}|{pending.id}"
    before = embedded.client.zscore(f"{prefix}timers", name)
    embedded.client.zrem(f"{prefix}timers", name)
    assert embedded.keeper.audit(run.id, mend=True) == "person"
    assert embedded.client.zscore(f"{prefix}timers", name) == before
    run.approve(pending.id)
    assert run.wait(20).outcome == "completed"


def test_a_run_that_waits_keeps_its_session() -> None:
    session = f"approvals-{next(_numbers)}"
    run = refunds(1).enqueue("Go", session_id=session)
    later = make_agent(["later"]).enqueue("And then?", session_id=session)
    [pending] = asked(run)
    assert later.refresh().record.waits_for_session
    run.approve(pending.id)
    assert run.wait(20).response == "done"
    assert later.wait(20).result is not None
    assert [m.role for m in later.result.messages] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip


# Participants.


def test_another_assembly_may_need_approval_to_be_asked() -> None:
    clerk = make_agent(lambda request: f"did {request.messages[-1].text}")
    ask = clerk.as_tool(
        name="clerk",
        description="Works.",
        requires_approval=lambda given: given["input"] != "a little",
        approval_timeout_s=60,
    )
    uses = calls(*[("clerk", {"input": text}) for text in ("a little", "a lot", "too much")])
    run = make_agent([uses, "done"], ask).enqueue("Go")
    lot, much = asked(run, 2)
    assert (lot.tool, lot.arguments) == ("clerk", {"input": "a lot"})
    assert lot.expires_at is not None
    assert lot.expires_at - datetime.now(UTC) <= timedelta(seconds=60)
    assert len(clerk.brain.requests) == 1
    run.edit(lot.id, {"input": "half"})
    run.reject(much.id)
    run.wait(20)
    assert [text for _, text in results(run)] == [
        "did a little",
        '(A person changed the input of this call to {"input":"half"}.)\ndid half',
        "This call was rejected by a person, and was not made.",
    ]
    assert len(clerk.brain.requests) == 2


def test_options_of_as_tool_are_checked() -> None:
    clerk = make_agent(["x"])
    with pytest.raises(DefinitionError, match="approval_timeout_s"):
        make_agent(["x"], clerk.as_tool(name="clerk", approval_timeout_s=-1)).enqueue("Go")


def test_participants_of_a_graph_and_a_workflow_ask_too() -> None:
    payer = refunds(1, then="paid", assembly_id="payer")
    other = refunds(2, then="paid too", assembly_id="other")
    body = {
        "nodes": {"pay": payer, "again": other},
        "start": "pay",
        "edges": [Edge("pay", "again")],
        "finish": "again",
        "__module__": __name__,
    }
    graph: Any = type(f"Approvals{next(_numbers)}Graph", (Graph,), body)

    def perform(self: Workflow) -> Any:
        one = self.invoke(graph, name="graph")
        two = self.invoke(payer, name="alone")
        return " and ".join(self.parallel(one, two))

    body = {"perform": perform, "__module__": __name__}
    flow: Any = type(f"Approvals{next(_numbers)}Workflow", (Workflow,), body)
    run = flow.enqueue("Go")
    pending = asked(run, 2)
    assert [item.participant for item in pending] == ["payer", "payer"]
    for item in pending:
        run.approve(item.id)
    [last] = asked(run)
    assert last.participant == "other"
    [*_, question] = told_so_far(run, "approval_requested")
    path = [item["participant"] for item in question["source"]["assembly_path"]]
    assert path == ["graph", "again"]
    run.reject(last.id)
    assert run.wait(20).response == "paid too and paid", run.error
    assert RUN == [1, 1]


def test_a_question_of_a_tool_that_is_gone_is_still_answered() -> None:
    """A deployment took the tool out while the run waited."""
    offered = [Refund]
    agent = make_agent([calls(("refund", {"n": 1})), "done"])
    agent.tools = [type("Provider", (), {"tools": staticmethod(lambda binding: list(offered))})]
    agent._declarations = None
    run = agent.enqueue("Go")
    [pending] = asked(run)
    offered.clear()
    run.approve(pending.id)
    run.wait(20)
    [(status, text)] = results(run)
    assert status == "error"
    assert text.startswith("Unknown tool: refund")
    assert RUN == []
