"""What becomes of an agent's subagents: start a turn, queue a message, answer a waiting call.

One coordinator serves one agent. Its list holds, in the order in which they came: requests
`{"q": {"do", "call", "use", "context", …}}` of the agent's calls, replies `{"reply": call, "text",
"calls"}` of subagents that were spoken to in mid-turn, and what its children gave back. It never
appends anything itself, so a place in the list stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from littleghost.engine.commands import ChangeState, Command, Forget, Keep, Post, SetState, Wake
from littleghost.engine.decide.agent import record_of
from littleghost.engine.decide.graph_state import text_of
from littleghost.engine.interjection import entry_of
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.subagent_state import (
    DURABLE,
    ENDED,
    FAILED,
    KEPT,
    MAX_PATH,
    Identity,
    below,
    cut,
    failed,
    full,
    invalid,
    orphans,
    page,
)
from littleghost.engine.subagent_turns import Turns
from littleghost.messages import assistant, user


def decide(lease: Lease, assembly: Any, env: Collaborators) -> list[Command]:
    """Look at what is new, and say what follows."""
    return _Deciding(lease, assembly, env).decide()


class _Deciding(Turns):
    """One decision of one coordinator."""

    def decide(self) -> list[Command]:
        """Take in what is new, start what may start, and answer who waited."""
        records = self._lease.records
        if not self._lease.state:
            # Such as those of a subagent whose first turn failed or was cancelled.
            self._forget(orphans(self._working, self._path, self._scope).values())
        new = range(self._state["read"], len(records))
        # A turn that ends with its reply leaves both at once, its end first.
        for place in new:
            if "reply" in records[place]:
                self._replied(records[place])
        for place in new:
            self._take(place, records[place])
        self._state["read"] = len(records)
        self._start_turns()
        self._answer_async()
        self._answer_waits()
        used = {name: item.to_json() for name, item in self._ids.items() if item.first is not None}
        found = [*self._commands, SetState({**self._state, "ids": used})]
        if self._wake_s is not None:
            found.append(Wake(self._wake_s))
        return found

    def _take(self, place: int, record: Any) -> None:
        if "q" in record:
            request = record["q"]
            _REQUESTS[request["do"]](self, place, request)
        elif "p" in record:
            self._ended(record)

    # Requests of the agent's model.

    def spawn(self, place: int, request: Mapping[str, Any]) -> None:
        name = f"{self._path}/{request['task_name']}"
        known = self._ids.get(name)
        if len(name) > MAX_PATH:
            return self._reply(request, invalid("Subagents are nested too deeply."))
        if known is not None:
            return self._reply(
                request,
                invalid(f"There is a subagent {name} already; send it a message, or use another "
                        "task_name."),
            )  # fmt: skip
        alive = sum(item.takes_room for item in self._ids.values())
        if alive >= self._limits.identities:
            return self._reply(
                request, full("identities", self._limits.identities, "No more subagents fit.")
            )
        if self._refuses(request):
            return None
        made = Identity(
            id=name,
            kind=request["kind"],
            assembly=request["assembly"],
            scope=self._scope,
            persist=request.get("persist", True),
        )
        self._ids[name] = made
        self._tell("spawned", made)
        return self._queue(made, place, request)

    def send(self, place: int, request: Mapping[str, Any]) -> None:
        item = self._named(request)
        if item is None or self._refuses(request):
            return
        if item.is_over:
            self._reply(request, {**self._snapshot(item), **failed(ENDED)})
        elif len(item.queue) >= self._limits.queued:
            self._reply(
                request, full("queued", self._limits.queued, "Too many messages wait for it.")
            )
        else:
            if item.first is None:
                self._declare(item, request["kinds"])
            self._queue(item, place, request)

    def ask(self, place: int, request: Mapping[str, Any]) -> None:
        """Take a call of a tool whose context is preserved: one subagent without limits."""
        name = f"{self._path}#{request['name']}"
        item = self._ids.setdefault(
            name,
            Identity(id=name, kind="", assembly=request["assembly"], scope=self._scope,
                     persist=False),
        )  # fmt: skip
        self._queue(item, place, request)

    @staticmethod
    def _declare(item: Identity, kinds: Mapping[str, Any]) -> None:
        """Have an identity of an earlier run be what its kind is now, if there is such a kind."""
        known = kinds.get(item.kind)
        item.assembly = known["assembly"] if known else ""
        item.persist = bool(known and known["persist"])

    def _queue(self, item: Identity, place: int, request: Mapping[str, Any]) -> None:
        if item.first is None:
            item.first = place
        item.queue.append(place)
        item.updated = self._lease.now_ms
        if item.status != "running":
            item.status = "queued"
        self._tell("message_queued", item)
        if request.get("mode") == "async":
            self._async.append((item, request))

    def _refuses(self, request: Mapping[str, Any]) -> bool:
        """Answer a message that may not be taken; gives whether it was."""
        limits = self._limits
        waiting = sum(len(item.queue) for item in self._ids.values() if item.kind)
        if len(request["message"]) > limits.message_chars:
            self._reply(request, invalid(f"Use at most {limits.message_chars} characters."))
        elif limits.turns is not None and self._state["turns"] + waiting >= limits.turns:
            self._reply(request, full("turns", limits.turns, "Subagents took all their turns."))
        else:
            return False
        return True

    def interject(self, place: int, request: Mapping[str, Any]) -> None:
        item = self._named(request)
        if item is None:
            return None
        if item.pid is None:
            return self._error(request, f"{item.id} is not running; send it a message instead.")
        if item.asked >= self._limits.interjections:
            return self._error(request, f"{item.id} got too many messages in this turn.")
        if len(request["message"]) > self._limits.message_chars:
            return self._error(request, f"Use at most {self._limits.message_chars} characters.")
        item.asked += 1
        call = request["call"]
        self._state["asks"][call] = {"id": item.id, "pid": item.pid, "at": place}
        reply = {"to": self._lease.participant, "call": call}
        entry = entry_of(user(request["message"]), call, None, reply)
        self._commands.append(Post(item.pid, entry))
        return None

    def wait(self, place: int, request: Mapping[str, Any]) -> None:
        names: Sequence[str] | None = request.get("subagent_ids")
        if names is None:
            # Sorted, since calls of one answer come in any order.
            used = (item for item in self._ids.values() if item.kind and item.first is not None)
            names = sorted(item.id for item in used)
        elif len(set(names)) != len(names):
            return self._error(request, "A subagent is named twice.")
        for name in names:
            item = self._ids.get(name)
            if item is None or item.first is None or not item.kind:
                return self._error(request, f"Subagent {name[:200]} is not at work in this run.")
        until = self._lease.now_ms + round(self._limits.wait_s * 1000)
        self._state["waits"].append({"at": place, "ids": list(names), "until": until})
        return None

    def list(self, place: int, request: Mapping[str, Any]) -> None:
        kind = request.get("kind")
        items = [item for item in self._ids.values() if item.kind and kind in (None, item.kind)]
        try:
            shown, cursor = page(items, request.get("limit", 20), request.get("cursor"))
        except ValueError as error:
            return self._error(request, f"{error}.")
        told = {"status": "ok", "subagents": [self._snapshot(item) for item in shown]}
        return self._reply(request, {**told, **({"cursor": cursor} if cursor else {})})

    def _named(self, request: Mapping[str, Any]) -> Identity | None:
        name = str(request["subagent_id"])
        item = self._ids.get(name)
        if item is None or not item.kind:
            self._error(request, f"There is no subagent {name[:200]}; list_subagents names them.")
            return None
        return item

    # What the subagents do.

    def _ended(self, record: Mapping[str, Any]) -> None:
        item = next((one for one in self._ids.values() if one.pid == record["p"]), None)
        if item is None or item.now is None:
            return
        place, item.pid, item.now = item.now, None, None
        item.updated = self._lease.now_ms
        self._unanswered(record["p"])
        if "r" in record:
            self._finished(item, place, record)
        elif item.kind:
            item.status = "failed"
            self._tell("turn_failed", item, error_type=record["x"].get("type", ""))
            self._close(item, [place, *item.queue], failed(FAILED))
            item.queue = []
        else:
            item.status, item.broken = "queued" if item.queue else "idle", True
            request = self._lease.records[place]["q"]
            self._error(request, f"Tool failed ({record['x'].get('type', 'Error')})")

    def _finished(self, item: Identity, place: int, record: Mapping[str, Any]) -> None:
        request, result = self._lease.records[place]["q"], record["r"]
        output = text_of(result.get("output", ""))
        item.status = "queued" if item.queue else "idle"
        item.last, item.size, item.broken = record["p"], int(result.get("message", 0)) + 1, False
        self._state["talks"].setdefault(item.id, []).append([place, record["p"]])
        self._tell("turn_finished", item)
        if not item.kind:
            return self._answer(request, output, "success")
        if item.persist:
            said = (record_of(user(request["message"])), record_of(assistant(output)))
            in_run = self._scope != DURABLE
            self._commands.append(Keep(item.digest, item.kept(output), said, in_run=in_run))
            self._forget_oldest()
        if request.get("mode") != "async":
            self._reply(request, {**self._snapshot(item), **self._response(item)})
        return None

    def _forget_oldest(self) -> None:
        """Forget the conversations that are too many, with those of their own subagents."""
        kept = [item for item in self._ids.values() if item.resumed or (item.last and item.persist)]
        old = sorted((i for i in kept if i.first is None), key=lambda item: item.updated)
        for item in old[: max(0, len(kept) - self._limits.identities)]:
            del self._ids[item.id]
            self._forget(below(self._working, item.id, self._scope).values())

    def _forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            gone = {"op": "delete", "key": KEPT + key}
            forget = Forget(key, in_run=self._scope != DURABLE)
            self._commands += [forget, ChangeState([gone])]

    def _replied(self, record: Mapping[str, Any]) -> None:
        ask = self._state["asks"].pop(record["reply"], None)
        if ask is None:
            return
        text, is_cut = cut(str(record["text"]), self._response_chars)
        told = {
            **self._snapshot(self._ids[ask["id"]]),
            "status": "interjection_delivered",
            "response": text,
            "response_disposition": "text_with_tool_calls" if record["calls"] else "text_only",
        }
        if is_cut:
            told["response_truncated"] = True
        self._reply(self._lease.records[ask["at"]]["q"], told)

    def _unanswered(self, pid: str) -> None:
        """Tell those who spoke to a turn that ended without an answer to them."""
        for call, ask in list(self._state["asks"].items()):
            if ask["pid"] == pid:
                del self._state["asks"][call]
                request = self._lease.records[ask["at"]]["q"]
                self._error(request, f"{ask['id']} ended before it could answer.")


_REQUESTS: dict[str, Callable[[_Deciding, int, Mapping[str, Any]], None]] = {
    "spawn": _Deciding.spawn,
    "send": _Deciding.send,
    "ask": _Deciding.ask,
    "interject": _Deciding.interject,
    "wait": _Deciding.wait,
    "list": _Deciding.list,
}
