"""Many children of a workflow at once: one join waits for all, and nothing grows with their number.

A commit blocks Redis while it lasts, so no commit starts or closes more than a piece of them; the
workflow goes on at once with the next piece. The open operation's record has one size: children
are numbered in a row, so their ids need not be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from littleghost.engine.commands import CancelParticipants, Join, Start
from littleghost.engine.opening import advance_id
from littleghost.engine.replay_steps import OpenOperation, not_needed, start_request
from littleghost.engine.steps import CLOSE_PIECE, START_PIECE
from littleghost.failure import Failure


class ManySteps(OpenOperation):
    """An open operation of many children without bounds of their own, in one advance.

    The state's `open` is `{"i": index, "from": number of the first child, "begun": how many were
    started, "closed": how many ends were told, "cut": participants that were stopped}`.
    """

    @staticmethod
    def opened(index: int, state: Mapping[str, Any]) -> dict[str, Any]:
        """Give the record of an operation that begins."""
        return {"i": index, "from": state.get("n", 0), "begun": 0, "closed": 0, "cut": []}

    def go_on(self) -> list[dict[str, Any]] | None:
        """Do what is next; gives how each child ended when nothing of the operation is left."""
        opened, count = self._open, len(self._requests)
        begun = [self._id(number) for number in range(opened["begun"])]
        running = [pid for pid in begun if pid not in self._children]
        is_failing = not self._settle and any("x" in self._children.get(pid, ()) for pid in begun)
        if not is_failing and len(begun) < count:
            self._start_piece()
            self.wake_s = 0.0 if opened["begun"] < count else None
            return None
        if not is_failing and running:
            return None
        if running and not opened["cut"]:
            opened["cut"] = running
            self.commands.append(CancelParticipants(tuple(running)))
        if not self._close_piece():
            self.wake_s = 0.0
            return None
        return [self._end(number) for number in range(count)]

    def _id(self, number: int) -> str:
        return f"{self._lease.participant}.{self._open['from'] + number}"

    def _start_piece(self) -> None:
        opened, count = self._open, len(self._requests)
        join_id = f"{self._lease.participant}-j{opened['i']}"
        first = opened["begun"]
        for number in range(first, min(first + START_PIECE, count)):
            request = self._requests[number]
            _, commands = start_request(self._lease, self._env, self._state, request, join=join_id)
            self.commands += commands
            opened["begun"] += 1
        join = Join(
            id=join_id,
            participant=self._lease.participant,
            members=tuple(self._id(number) for number in range(count)),
            width=self._width,
            then=advance_id(self._lease.participant),
            fail_fast=not self._settle,
            begun=first,
            at_once=True,
            starting=opened["begun"] - first,
        )
        self.commands.append(Start(joins=[join]))

    def _close_piece(self) -> bool:
        """Tell how some more children ended; gives whether all have been told of."""
        opened, count = self._open, len(self._requests)
        last = min(opened["closed"] + CLOSE_PIECE, count)
        for number in range(opened["closed"], last):
            request, pid = self._requests[number], self._id(number)
            record = self._children.get(pid)
            if record is not None and "r" in record:
                self.commands.append(request.step().stopped([pid], self._children))
            elif number < opened["begun"]:
                failure = Failure.from_json(self._end_of(number)["x"])
                told = request.step().failed([pid], self._children, failure, again=False)
                self.commands.append(told)
            if record is not None:
                # The code may go on from a failed one too, and what is next then followed it.
                self._state["last"] = pid
        opened["closed"] = last
        return last == count

    def _end(self, number: int) -> dict[str, Any]:
        pid = self._id(number)
        return {"p": pid} if pid in self._children else {**self._end_of(number), "stopped": True}

    def _end_of(self, number: int) -> Mapping[str, Any]:
        """Give the failure of a child that did not end well."""
        record = self._children.get(self._id(number))
        if record is not None:
            return record
        what = "was stopped" if number < self._open["begun"] else "was not started"
        return {"x": not_needed(what).to_json()}
