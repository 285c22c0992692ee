"""Answers of an agent's subagents to the calls of its model: snapshots, responses, refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from littleghost.engine.commands import Answer, Command, Emit
from littleghost.engine.decide.agent import result_record
from littleghost.engine.decide.graph_state import text_of
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.steps import children_of
from littleghost.engine.subagent_call import told_by_call
from littleghost.engine.subagent_state import (
    FAILED,
    GONE,
    PROGRESS,
    Identity,
    SubagentLimits,
    cut,
    failed,
    path_of,
    restored,
    scope_of,
)
from littleghost.json_values import dumps


class Answers:
    """What a coordinator knows, and how it tells it to whoever waits."""

    def __init__(self, lease: Lease, assembly: Any, env: Collaborators) -> None:
        self._lease, self._env = lease, env
        self._limits: SubagentLimits = assembly.subagent_limits
        tokens = assembly.limits.max_tool_result_tokens
        # A result that is cut in the middle would be no JSON any more.
        self._response_chars = min(self._limits.response_chars, 3 * (tokens or 10**9))
        self._path, self._scope = path_of(lease.header), scope_of(lease.header)
        self._working = {key: json.loads(value) for key, value in lease.working.items()}
        self._state = deepcopy(dict(lease.state)) or {
            "read": 0, "n": 0, "turns": 0, "ids": {}, "waits": [], "asks": {}, "talks": {},
        }  # fmt: skip
        self._ids = restored(self._working, self._path, self._scope)
        self._ids |= {name: Identity.from_json(item) for name, item in self._state["ids"].items()}
        self._children = children_of(lease)
        self._commands: list[Command] = []
        self._async: list[tuple[Identity, Mapping[str, Any]]] = []
        self._wake_s: float | None = None

    def _answer_async(self) -> None:
        """Answer those who do not wait for the turn they asked for, now that it may have begun."""
        for item, request in self._async:
            answer = failed(GONE) if item.is_over else {"status": "working"}
            self._reply(request, {**self._snapshot(item), **answer})

    def _answer_waits(self) -> None:
        left: list[dict[str, Any]] = []
        for wait in self._state["waits"]:
            items = [self._ids[name] for name in wait["ids"]]
            left_ms = wait["until"] - self._lease.now_ms
            is_done = not any(item.is_working for item in items)
            if not is_done and left_ms > 0:
                left.append(wait)
                known = [] if self._wake_s is None else [self._wake_s]
                self._wake_s = min([*known, left_ms / 1000])
                continue
            share = max(1, len(items))
            told = [
                {
                    **self._snapshot(item, share),
                    **({} if item.is_working else self._response(item, share)),
                }
                for item in items
            ]
            status = "finished" if is_done else "still_working"
            request = self._lease.records[wait["at"]]["q"]
            self._reply(request, {"status": status, "subagents": told})
        self._state["waits"] = left

    def _snapshot(self, item: Identity, share: int = 1) -> dict[str, Any]:
        """Say how an identity is; `share` is how many are told of in the same answer."""
        told: dict[str, Any] = {
            "status": "working" if item.is_working else item.status,
            "subagent_id": item.id,
            "kind": item.kind,
            "turn": item.turns,
        }
        if item.is_working or item.is_over:
            before = self._last(item)
            if before:
                told["previous_response"] = cut(before, self._response_chars // share)[0]
        progress = self._working.get(PROGRESS + item.digest)
        is_known = isinstance(progress, Mapping) and progress.get("turn") == item.turns
        if progress and is_known and item.status == "running":
            text = str(progress.get("message", ""))[: self._limits.progress_chars]
            told["progress"] = {"sequence": progress.get("sequence"), "message": text}
        return told

    def _response(self, item: Identity, share: int = 1) -> dict[str, Any]:
        if item.is_over:
            return failed(FAILED)
        text, is_cut = cut(self._last(item), self._response_chars // share)
        told: dict[str, Any] = {"status": "finished", "response": text}
        return {**told, "response_truncated": True} if is_cut else told

    def _last(self, item: Identity) -> str:
        if item.last is None:
            return item.said
        return text_of(self._children[item.last]["r"].get("output", ""))

    def _reply(self, request: Mapping[str, Any], told: Mapping[str, Any]) -> None:
        self._answer(request, dumps(dict(told)), "success")

    def _error(self, request: Mapping[str, Any], text: str) -> None:
        self._answer(request, text, "error")

    def _answer(self, request: Mapping[str, Any], content: str, status: str) -> None:
        call = request["call"]
        self._commands.append(Answer(call, result_record(request["use"], content, status)))
        data = {"name": request["tool"], "status": status}
        agent = str(self._lease.header.get("up", ""))
        self._commands.append(Emit("tool_stop", data, result=call, participant=agent))
        self._commands += told_by_call(self._lease.header, request["use"], request["tool"],
                                       "tool_finished", agent)  # fmt: skip

    def _tell(self, event: str, item: Identity, **more: Any) -> None:
        if item.kind:
            data = {"event": event, "subagent_id": item.id, "kind": item.kind,
                    "conversation_id": item.digest, "resumed": item.resumed,
                    "status": item.status, "turn": item.turns, **more}  # fmt: skip
            self._commands.append(Emit("subagent", data))
