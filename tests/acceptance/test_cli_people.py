"""The verbs by which people reach a run, and how a run that waits for them looks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.acceptance.conftest import SHOP, Place, newest_run
from tests.acceptance.processes import CLI, ROOT, Terminal, littleghost, without_styles
from tests.support.redis_server import wait_until

pytestmark = pytest.mark.worker


def said(fleet: Place, *arguments: str, code: int = 0, text: str | None = None) -> str:
    done = littleghost(*arguments, env=fleet.env, text=text)
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout if code in (0, 5) else done.stderr


def facts(fleet: Place, *arguments: str, code: int = 0) -> Any:
    return json.loads(said(fleet, *arguments, "--json", code=code))


def waiting(fleet: Place, agent: str, message: str, count: int = 1) -> str:
    """Start a run and wait until so much is pending."""
    run_id = said(fleet, "run", f"{SHOP}:{agent}", message, "--detach", "-q").strip()
    key = f"lg:{{{run_id[:2]}}}:r:{run_id}"

    def asked() -> bool:
        tasks = [
            json.loads(v) for k, v in fleet.client.hgetall(f"{key}:t").items() if k[:2] == "t:"
        ]
        is_idle = all(task["s"] == "wait" for task in tasks)
        return is_idle and sum("ap" in t or "sg" in t for t in tasks) == count

    wait_until(asked, f"{agent} waits for {count}")
    return run_id


def outcome(fleet: Place, run_id: str) -> str:
    return said(fleet, "tail", run_id).splitlines()[-2]


# respond.


def test_what_is_pending_is_listed_with_the_command_that_answers(fleet: Place) -> None:
    run_id = waiting(fleet, "PayerAgent", "2", 2)
    listed = said(fleet, "respond", run_id, code=5).splitlines()
    assert listed[0].startswith('payer asks for refund {"eur":1}  until ')
    assert listed[1].strip() == f"littleghost respond {run_id} 0-c0.0 --approve"
    told = facts(fleet, "respond", run_id[:-2], code=5)
    assert (told["id"], told["status"]) == (run_id, "waiting")
    assert [item["id"] for item in told["pending"]] == ["0-c0.0", "0-c0.1"]
    assert run_id in said(fleet, "runs", "--status", "waiting")
    assert " person" in littleghost("doctor", "--runs", env=fleet.env).stdout

    assert "2 calls wait" in said(fleet, "respond", run_id, "--approve", code=1)
    one = facts(fleet, "respond", run_id, "0-c0.1", "--reject", "too dear", "--by", "ann")
    assert one["answered"] == {"id": "0-c0.1", "verdict": "rejected"}
    assert [item["id"] for item in one["pending"]] == ["0-c0.0"]
    assert "0-c0.0 approved" in said(fleet, "respond", run_id, "--edit", '{"eur": 7}')

    tail = said(fleet, "tail", run_id).splitlines()
    assert f'  ? refund {{"eur":1}}  waiting: littleghost respond {run_id} 0-c0.0 --approve' in tail
    assert '  · refund {"eur":2}  rejected by ann: too dear' in tail
    assert '  · refund {"eur":1}  approved with other arguments' in tail
    assert "= completed" in tail
    assert "paid 7" in said(fleet, "show", run_id)
    assert said(fleet, "respond", run_id) == ""
    assert "nothing waits" in littleghost("respond", run_id, env=fleet.env).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("--approve", "--reject"), 2, "exclude each other"),
        (("0-c0.0",), 2, "say --approve"),
        (("--edit", "{"), 2, "no JSON"),
        (("--edit", "[1]"), 2, "arguments"),
        (("--edit", "null"), 2, "arguments"),
        (("0-c7.7", "--approve"), 1, "nothing waits for an answer under '0-c7.7'"),
        (("0-c7.7", "--edit", "{}"), 1, "nothing waits for an answer under '0-c7.7'"),
    ],
)
def test_answers_that_are_refused(
    fleet: Place, arguments: tuple[str, ...], code: int, why: str
) -> None:
    run_id = waiting(fleet, "PayerAgent", "1")
    assert why in said(fleet, "respond", run_id, *arguments, code=code)
    assert len(facts(fleet, "respond", run_id, code=5)["pending"]) == 1
    said(fleet, "cancel", run_id, "--yes")
    assert "is cancelled" in said(fleet, "respond", run_id, "--approve", code=1)


def test_arguments_and_messages_come_from_stdin(fleet: Place) -> None:
    run_id = waiting(fleet, "PayerAgent", "1")
    said(fleet, "interject", run_id, "-", text="by the way")
    said(fleet, "respond", run_id, "--edit", "-", text='{"eur": 3}')
    assert outcome(fleet, run_id) == "= completed"
    shown = said(fleet, "show", run_id)
    assert "paid 3" in shown
    assert "by the way" in shown


# signal and interject.


def test_a_signal_is_sent_and_the_run_goes_on(fleet: Place) -> None:
    run_id = waiting(fleet, "DeliveryWorkflow", "1")
    said(fleet, "respond", run_id, "--approve")
    wait_until(
        lambda: littleghost("respond", run_id, env=fleet.env).returncode == 5, "it waits again"
    )
    listed = said(fleet, "respond", run_id, code=5).splitlines()
    assert listed[0] == "delivery waits for the signal arrived"
    assert listed[1].strip() == f"littleghost signal {run_id} arrived JSON"
    assert "no call of run" in said(fleet, "respond", run_id, "--approve", code=1)
    assert "no JSON" in said(fleet, "signal", run_id, "arrived", "tea", code=2)
    assert "must be 1 to 64" in said(fleet, "signal", run_id, "a b", code=2)

    sent = facts(fleet, "signal", run_id, "arrived", '{"what": "tea"}', "--id", "s1")
    assert sent["id"] == run_id
    tail = said(fleet, "tail", run_id)
    assert f"  ? signal arrived  waiting: littleghost signal {run_id} arrived JSON" in tail
    assert "= completed" in tail
    assert json.loads(facts(fleet, "show", run_id)["response"])["arrived"] == {"what": "tea"}
    assert "is completed" in said(fleet, "signal", run_id, "arrived", code=1)


def test_a_message_is_answered(fleet: Place) -> None:
    run_id = waiting(fleet, "PayerAgent", "1")
    assert "kept for the agent" in said(fleet, "interject", run_id, "first", "--id", "m1")
    late = said(fleet, "interject", run_id, "x", "--wait", "--timeout", "0.1", code=1)
    assert "it was taken back" in late
    asking = subprocess.Popen(
        [*CLI, "interject", run_id, "first", "--id", "m1", "--wait", "--json"],
        cwd=ROOT, env=fleet.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said(fleet, "respond", run_id, "--approve")
        answered, _ = asking.communicate(timeout=60)
    finally:
        asking.kill()
    told = json.loads(answered)
    assert told["answer"]["text"] == "I wait for somebody."
    assert (told["run"], told["id"], told["participant"]) == (run_id, "m1", "0")
    assert outcome(fleet, run_id) == "= completed"
    assert "is completed" in said(fleet, "interject", run_id, "x", code=1)


@pytest.mark.parametrize("verb", [("respond",), ("signal", "go"), ("interject", "x"), ("show",)])
def test_an_unknown_run_is_not_found(fleet: Place, verb: tuple[str, ...]) -> None:
    name, *rest = verb
    for more in ((), ("--json",)):
        told = said(fleet, name, "no-such-run", *rest, *more, code=6)
        assert told.count("\n") == 1


# What a run that waits looks like.


def test_show_gives_participants_tasks_and_what_waits(fleet: Place) -> None:
    run_id = waiting(fleet, "DeliveryWorkflow", "2", 2)
    shown = said(fleet, "show", run_id).split("\n\n")
    participants = next(part for part in shown if part.startswith("participants")).splitlines()
    assert participants[1].startswith("  delivery  workflow  waiting  ")
    assert participants[2].startswith("    0-a  advance  waiting  lg.turns  attempt 1")
    assert participants[3].startswith("    paying (payer)  agent  waiting  ")
    assert participants[4].startswith("      0.0-c0.0  call  waiting  lg.tools")
    pending = next(part for part in shown if part.startswith("pending")).splitlines()
    assert pending[1].startswith('  payer asks for refund {"eur":1}')

    told = facts(fleet, "show", run_id)
    assert [item["id"] for item in told["pending"]] == ["0.0-c0.0", "0.0-c0.1"]
    root, child = told["participants"]
    assert (child["parent"], child["name"], child["agent"]) == ("0", "paying", "payer")
    assert (root["status"], child["status"]) == ("waiting", "waiting")
    assert child["messages"][0]["role"] == "user"
    assert root["messages"] is None
    assert {task["participant"] for task in told["tasks"]} == {"0", "0.0"}
    said(fleet, "cancel", run_id, "--yes")
    over = facts(fleet, "show", run_id)
    assert [item["status"] for item in over["participants"]] == ["cancelled", "cancelled"]
    assert (over["pending"], over["tasks"]) == ([], [])


def test_a_participant_of_a_call_stands_below_its_agent(fleet: Place) -> None:
    said(fleet, "run", f"{SHOP}:BossAgent", "Go", "-q")
    run_id = newest_run(fleet.client)
    told = facts(fleet, "show", run_id)
    assert [(item["id"].count("."), item["agent"]) for item in told["participants"]] == [
        (0, "boss"),
        (1, "echo"),
    ]
    boss, echo = told["participants"]
    assert (boss["status"], echo["status"], echo["parent"]) == ("completed", "completed", "0")
    total = {key: sum(item["usage"][key] for item in (boss,)) for key in boss["usage"]}
    assert total == told["usage"], "what is above includes what is below"
    assert sum(echo["usage"].values()) < sum(boss["usage"].values())


def test_run_in_a_pipe_says_that_it_waits_and_waits_on(fleet: Place) -> None:
    process = subprocess.Popen(
        [*CLI, "run", f"{SHOP}:PayerAgent", "1"],
        cwd=ROOT, env=fleet.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        assert " waits:" in first
        assert 'asks for refund {"eur":1}' in process.stderr.readline()
        assert process.poll() is None
        said(fleet, "respond", first.split()[1], "--approve")
        answer, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (answer, process.returncode) == ("paid 1\n", 0)


def test_on_a_terminal_a_question_is_shown_and_ctrl_c_detaches(fleet: Place) -> None:
    terminal = Terminal([*CLI, "run", f"{SHOP}:PayerAgent", "1"], fleet.env)
    try:
        terminal.read_until(lambda text: "waits for a person" in text, "it asks")
        terminal.interrupt()
        assert terminal.end() == 130
    finally:
        terminal.close()
    assert "--approve" in without_styles(terminal.output)
    run_id = newest_run(fleet.client)
    assert facts(fleet, "show", run_id)["status"] == "waiting"
    said(fleet, "cancel", run_id, "--yes")


def test_hostile_text_in_a_question_cannot_reach_the_terminal(fleet: Place) -> None:
    run_id = waiting(fleet, "PayerAgent", "1")
    said(fleet, "respond", run_id, "--reject", "no \u202e\u009b2J", "--by", "\u202eann")
    assert "= completed" in said(fleet, "tail", run_id)
    for words in (("tail", run_id), ("show", run_id, "-v"), ("respond", run_id)):
        done = littleghost(*words, env=fleet.env)
        assert not [
            mark for mark in ("\x1b", "\u202e", "\x9b") if mark in done.stdout + done.stderr
        ]


# graph.


def test_an_assembly_is_described_without_redis() -> None:
    shown = littleghost("graph", f"{SHOP}:FlowGraph").stdout.splitlines()
    assert shown[0] == f"graph flow  ({SHOP}:FlowGraph)"
    assert f"    first: agent echo  ({SHOP}:EchoAgent)  [start]" in shown
    assert "      tool refund  [a person must allow it]" in shown
    assert "        start; hands off to payer, bad" in shown
    edges = shown[shown.index("  edges") + 1 :]
    assert [line.strip() for line in edges] == [
        "first → pay, help  [condition; fork]",
        "first → sorry",
        "sorry → last",
        "pay, help → last  [join]",
        "first → sorry  [error: InvalidRequestError]",
    ]


def test_a_graph_has_a_flowchart_and_others_have_none() -> None:
    drawn = littleghost("-A", SHOP, "graph", "flow", "--format", "mermaid")
    assert drawn.stdout.startswith("flowchart TD\n")
    told = json.loads(littleghost("graph", f"{SHOP}:FlowGraph", "--json").stdout)
    assert told["mermaid"] == drawn.stdout
    assert told["definition"]["kind"] == told["kind"] == "graph"
    for name, word in (("HelpSwarm", "swarm"), ("DeliveryWorkflow", "workflow")):
        refused = littleghost("graph", f"{SHOP}:{name}", "--format", "mermaid")
        assert (refused.returncode, f"is a {word}" in refused.stderr) == (2, True)
        assert littleghost("graph", f"{SHOP}:{name}").stdout.startswith(word)
    assert littleghost("graph", f"{SHOP}:Nothing").returncode == 2
