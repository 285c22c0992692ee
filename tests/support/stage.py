"""A stage for one workflow: its advances one by one, without a journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from littleghost import Workflow
from littleghost.engine import commands as c
from littleghost.engine.decide.workflow import decide
from littleghost.engine.ports import Lease, RunMemory
from littleghost.failure import Failure
from littleghost.messages import Message, user


class Env:
    """What starting children needs."""

    @staticmethod
    def queue(kind: str, lane: str) -> str:
        return kind + lane


class Stage:
    """A journal of one workflow, as far as its advances see it."""

    def __init__(self, perform: Callable[[Any], Any], *opening: Message) -> None:
        self.records: list[Any] = list(opening or [user("go")])
        self.state: dict[str, Any] = {}
        self.now_ms = 1_000_000
        self.memory = _memory(self.records)
        self.become(perform)

    def become(self, perform: Callable[[Any], Any]) -> None:
        """Deploy other code."""
        self.assembly = type("PlayWorkflow", (Workflow,), {"perform": perform}, abstract=True)
        self.memory = _memory(self.records)

    def advance(self) -> list[c.Command]:
        """Let the workflow decide, and record what it decided."""
        lease = Lease(
            run_id="r", task_id="0-a", kind="advance", participant="0", queue="turns", attempt=1,
            lost=0, failures=0, idempotent=False, payload={}, assembly="x", root_assembly="x",
            participant_kind="workflow", state=self.state, memory=self.memory, left_s=None,
            working={}, fingerprint="", lane="", base=0, now_ms=self.now_ms, header={"n": "play"},
            awaited=None,
        )  # fmt: skip
        env: Any = Env()
        found = decide(lease, self.assembly, env)
        for command in found:
            if isinstance(command, c.Append):
                self.records += command.values
            if isinstance(command, c.SetState):
                self.state = dict(command.state)
        return found

    def answer(self, child: str, output: Any) -> None:
        """Have a child end."""
        self.records.append({"p": child, "b": 1, "e": 2, "r": {"output": output}})

    def refuse(self, child: str, error: Exception) -> None:
        """Have a child fail."""
        self.records.append({"p": child, "b": 1, "e": 2, "x": Failure.of(error).to_json()})


def _memory(records: list[Any]) -> RunMemory:
    """Make what a process that has only just come to the run knows of it."""
    memory = RunMemory("1", {"message": user("go").to_json(), "run_id": "r",
                             "invocation_id": "r", "session_id": "r"})  # fmt: skip
    memory.lists["0"] = records
    return memory


def only(commands: list[c.Command], kind: type) -> Any:
    found = [item for item in commands if isinstance(item, kind)]
    assert len(found) == 1, commands
    return found[0]


def started(commands: list[c.Command]) -> list[str]:
    return [p.id for item in commands if isinstance(item, c.Start) for p in item.participants]


def failed(commands: list[c.Command]) -> Failure:
    return Failure.from_json(only(commands, c.Fail).error)
