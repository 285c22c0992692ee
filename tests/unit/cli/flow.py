"""Events of a composite, as its watchers get them."""

from __future__ import annotations

from typing import Any

from littleghost.events import StreamEvent


class Flow:
    """Makes a composite's events.

    Args:
        inside: The composite that this one is a step of, and the step's name.
    """

    def __init__(self, kind: str, name: str = "flow", inside: tuple[Flow, str] | None = None):
        self.kind, self.name = kind, name
        self.operation = "r:0" if inside is None else inside[0].operation_of(inside[1])
        self.up = None if inside is None else inside[0].operation
        self.path: list[dict[str, Any]] = [] if inside is None else inside[0].path_of(inside[1])
        self._numbers: dict[str, int] = {}

    def operation_of(self, step: str) -> str:
        return f"{self.operation}.{self._number(step)}"

    def path_of(self, step: str) -> list[dict[str, Any]]:
        place = {
            "assembly_id": self.name,
            "assembly_kind": self.kind,
            "participant": step,
            "step_id": self._id(step),
            "branch_id": None,
        }
        return [*self.path, place]

    def start(self, step: str, kind: str = "agent") -> StreamEvent:
        return self._event("step_start", self._about(step, kind))

    def stop(self, step: str, **usage: int) -> StreamEvent:
        return self._event("step_stop", {**self._about(step, "agent"), "usage": usage})

    def error(self, step: str, attempt: int = 1, *, again: bool = False) -> StreamEvent:
        return self._event("step_error", {**self._try(step, attempt), "terminal": not again})

    def retry(self, step: str, delay: float, attempt: int = 1) -> StreamEvent:
        return self._event("step_retry", {**self._try(step, attempt), "delay": delay})

    def transition(self, before: str, after: str) -> StreamEvent:
        return self._event("transition", {"from": before, "to": after, "step": 1})

    def fork(self, before: str, *branches: str) -> StreamEvent:
        return self._event("fork", {"from": before, "branches": list(branches)})

    def join(self, before: list[str], after: str) -> StreamEvent:
        return self._event("join", {"from": before, "to": after})

    def agent(self, step: str, kind: str, data: dict[str, Any] | None = None) -> StreamEvent:
        source = {
            "agent_id": step,
            "operation_id": self.operation_of(step),
            "parent_operation_id": self.operation,
            "assembly_path": self.path_of(step),
        }
        event = {"type": kind, "data": data or {}}
        return StreamEvent("1", "agent_stream", {"source": source, "event": event})

    def _number(self, step: str) -> int:
        return self._numbers.setdefault(step, len(self._numbers))

    def _id(self, step: str) -> str:
        return self.operation_of(step).partition(":")[2]

    def _about(self, step: str, kind: str) -> dict[str, Any]:
        about = {"assembly_id": step, "assembly_kind": kind, "participant": step}
        return {**about, "step_id": self._id(step)}

    def _try(self, step: str, attempt: int) -> dict[str, Any]:
        about = {"step_id": self._id(step), "participant": step, "attempt": attempt}
        return {**about, "error_type": "OverloadedError", "usage": {}}

    def _event(self, kind: str, data: dict[str, Any]) -> StreamEvent:
        source = {
            "agent_id": self.name,
            "operation_id": self.operation,
            "parent_operation_id": self.up,
            "assembly_path": self.path,
        }
        own = {"assembly_id": self.name, "assembly_kind": self.kind}
        return StreamEvent("1", f"assembly_{kind}", {**own, **data, "source": source})
