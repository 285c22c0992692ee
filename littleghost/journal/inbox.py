"""What people and other programs send into a run: answers to questions, signals, messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from littleghost.engine.interjection import entry_of
from littleghost.errors import (
    ApprovalError,
    InterjectionError,
    RunNotFoundError,
    RunOverError,
    SignalError,
)
from littleghost.journal.contents import marked, open_key, read_hash, tree_key
from littleghost.journal.headers import parent_of
from littleghost.journal.scripts import guarded
from littleghost.journal.store import RedisJournal, ready_tasks
from littleghost.json_values import dumps
from littleghost.messages import Message

# How many signals may wait for somebody to ask for them, and how many messages a run takes in all.
MAX_SIGNALS = 1_000
MAX_MESSAGES = 1_000
# In place of a payload: the answer counts only if it was given before.
ONLY_REPEAT = "-"


class Inbox:
    """Sends into runs. Every method is one script: it happens whole or not at all."""

    def __init__(self, journal: RedisJournal) -> None:
        self._journal = journal

    def respond(
        self, run_id: str, task_id: str, answer: Mapping[str, Any], payload: str | None = None
    ) -> None:
        """Answer for a call that a person must allow.

        Args:
            answer: `{verdict: approved|rejected, reason?, by?, edited?}`.
            payload: The call with other input, as the journal keeps it; or ONLY_REPEAT.

        Raises:
            ApprovalError: Nothing waits under this id, or another answer stands.

        Idempotent: yes, for the same answer.
        """
        key, prefix = self._journal.place(run_id)
        told = self._journal.scripts.run(
            "respond", key, prefix, run_id, task_id, dumps(dict(answer)), payload or ""
        )
        if told[0] == "none":
            raise ApprovalError(
                f"nothing waits for an answer under {task_id!r} in run {run_id!r}; Run.pending "
                "lists what does"
            )
        self._journal.publish(ready_tasks(told[-1] if isinstance(told[-1], list) else ()))
        if told[0] == "answered":
            stands = json.loads(told[1])
            by = f" by {stands['by']!r:.80}" if stands.get("by") else ""
            raise ApprovalError(f"{task_id!r} of run {run_id!r} is {stands['verdict']} already{by}")

    def signal(self, run_id: str, name: str, value: Any, signal_id: str | None) -> None:
        """Send a signal to whoever waits for its name, now or later.

        Raises:
            RunNotFoundError, RunOverError: Nobody can get it.
            SignalError: The id was used for another signal, or too many wait already.

        Idempotent: yes, for the same id, name and value.
        """
        key, prefix = self._journal.place(run_id)
        record = dumps({"g": name, "v": value, **({"id": signal_id} if signal_id else {})})
        told = self._journal.scripts.run(
            "signal",
            key,
            prefix,
            run_id,
            dumps({"n": name, "r": record}),
            name,
            f"s:{signal_id}" if signal_id else "",
            _digest(record),
            MAX_SIGNALS,
        )
        _refuse_missing(run_id, told)
        if told[0] == "differs":
            raise SignalError(
                f"run {run_id!r} got another signal with the id {signal_id!r}; use an id for one "
                "signal only"
            )
        if told[0] == "full":
            raise SignalError(
                f"{MAX_SIGNALS} signals wait in run {run_id!r} and nobody takes them; check the "
                f"name {name!r}"
            )
        self._journal.publish(ready_tasks(told[1]))

    def interject(
        self, run_id: str, message: Message, message_id: str, batch_key: str | None
    ) -> tuple[str, int]:
        """Put a message into the inbox of the one agent that is at work.

        Returns:
            The participant that gets it, and the number of the newest event before it.

        Raises:
            RunNotFoundError, RunOverError: Nobody can get it.
            InterjectionError: None or several agents are at work, the id was used for another
                message, or the run took too many.

        Idempotent: yes, for the same id and message.
        """
        key, prefix = self._journal.place(run_id)
        entry = entry_of(message, message_id, batch_key)
        told = ["moved"]
        while told[0] == "moved":
            agents = self._agents(key)
            told = self._journal.scripts.run(
                "interject",
                key,
                prefix,
                run_id,
                entry,
                f"m:{message_id}",
                _digest(entry),
                MAX_MESSAGES,
                len(agents),
                agents[0] if agents else "",
            )
        _refuse_missing(run_id, told)
        if told[0] == "differs":
            raise InterjectionError(
                f"run {run_id!r} got another message with the id {message_id!r}; use an id for "
                "one message only"
            )
        if told[0] == "full":
            raise InterjectionError(f"run {run_id!r} took {MAX_MESSAGES} messages; no more fit")
        if told[0] == "agents":
            raise InterjectionError(
                f"{told[1]} agents are at work in run {run_id!r}; a message needs exactly one, "
                "since it is for whoever is speaking"
            )
        return str(told[1]), int(told[2])

    def _agents(self, key: str) -> list[str]:
        """List the agents at work that somebody may speak to.

        What works for an agent, as its tool or subagent, is not spoken to directly.
        """
        client = self._journal.client
        names = list(marked(read_hash(client, open_key(key), match="x:*"), "x:"))
        if not names:
            return []
        fields = [f"p:{name}" for name in names]
        rows = cast("list[str | None]", guarded(lambda: client.hmget(tree_key(key), fields)))
        agents = {
            name
            for name, row in zip(names, rows, strict=True)
            if row and json.loads(row)["k"] == "agent"
        }
        return [name for name in agents if not _is_below(name, agents)]

    def withdraw(self, run_id: str, participant: str, message_id: str) -> bool:
        """Take a message back; False when the agent has got it already."""
        key, prefix = self._journal.place(run_id)
        told = self._journal.scripts.run("withdraw", key, prefix, run_id, participant, message_id)
        return bool(told[0])


def _is_below(participant: str, others: Collection[str]) -> bool:
    above = parent_of(participant)
    while above is not None and above not in others:
        above = parent_of(above)
    return above is not None


def _refuse_missing(run_id: str, told: list[Any]) -> None:
    if told[0] == "none":
        raise RunNotFoundError(f"no run {run_id!r}: the id is wrong, or the run has expired")
    if told[0] == "over":
        raise RunOverError(f"run {run_id!r} is {told[1]}; nothing can reach it any more")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
