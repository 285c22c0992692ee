"""LangGraph: graphs whose state is saved at each step.

python -m benchmarks.peers.langgraph_savers sqlite|redis|plainredis
"""

from __future__ import annotations

import operator
import sqlite3
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import redis
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from benchmarks.peers.work import PAYLOAD, SLOTS, STEPS, Peer, Place, measure, sqlite_bytes


class State(TypedDict):
    """A conversation that nodes append to."""

    messages: Annotated[list[dict[str, str]], operator.add]
    turns: int


def say(role: str) -> Any:
    return lambda state: {"messages": [{"role": role, "content": PAYLOAD}]}


def three_steps(saver: Any) -> Any:
    graph = StateGraph(State)
    names = [f"step{number}" for number in range(STEPS)]
    for name in names:
        graph.add_node(name, say("assistant"))
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def fan_out(saver: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("leaf", say("assistant"))
    graph.add_node("join", lambda state: {"turns": len(state["messages"])})
    graph.add_conditional_edges(
        START, lambda state: [Send("leaf", state)] * state["turns"], ["leaf"]
    )
    graph.add_edge("leaf", "join")
    graph.add_edge("join", END)
    return graph.compile(checkpointer=saver)


def agent(saver: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("agent", say("assistant"))
    graph.add_node("tools", say("tool"))
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "tools")
    graph.add_conditional_edges(
        "tools",
        lambda state: END if len(state["messages"]) >= 2 * state["turns"] else "agent",
        ["agent", END],
    )
    return graph.compile(checkpointer=saver)


class Graphs(Peer):
    """Graphs of three nodes, with `durability="sync"`: saved before the next step begins."""

    workers = f"in the caller's process, {SLOTS} threads"

    def __init__(self, place: Place, kind: str) -> None:
        super().__init__(place)
        self.kind = kind
        saver = {
            "sqlite": "langgraph-checkpoint-sqlite",
            "redis": "langgraph-checkpoint-redis",
            "plainredis": "langgraph-checkpoint-plainredis",
        }[kind]
        self.packages = ("langgraph", saver)
        self.name = f"LangGraph, {saver.removeprefix('langgraph-checkpoint-')} saver"
        self.stores = (
            "the whole state at each step, and each node's writes; goes on when the caller invokes "
            "it again"
        )

    def start(self) -> None:
        saver = self._saver()
        self._three, self._fan, self._agent = three_steps(saver), fan_out(saver), agent(saver)
        self._pool = ThreadPoolExecutor(SLOTS)

    def _saver(self) -> Any:
        if self.kind == "sqlite":
            from langgraph.checkpoint.sqlite import SqliteSaver

            self._path = self.place.directory / "langgraph.sqlite"
            found: Any = SqliteSaver(sqlite3.connect(self._path, check_same_thread=False))
        elif self.kind == "redis":
            from langgraph.checkpoint.redis import RedisSaver

            found = RedisSaver(redis_url=self.place.redis_url)
        else:
            from langgraph_checkpoint_plainredis import RedisSaver as PlainSaver

            return PlainSaver(url=self.place.redis_url)
        found.setup()
        return found

    def _invoke(self, graph: Any, turns: int) -> Any:
        self._thread = uuid.uuid4().hex
        config = {
            "configurable": {"thread_id": self._thread},
            "max_concurrency": SLOTS,
            "recursion_limit": 2 * turns + 10,
        }
        return graph.invoke({"messages": [], "turns": turns}, config, durability="sync")

    def run(self, count: int) -> None:
        if count == 1:
            assert len(self._invoke(self._three, 1)["messages"]) == STEPS
            return
        work = [self._pool.submit(self._invoke, self._three, 1) for _ in range(count)]
        assert all(len(each.result()["messages"]) == STEPS for each in work)

    def fan(self, width: int) -> None:
        assert self._invoke(self._fan, width)["turns"] == width

    def converse(self, turns: int) -> int:
        before = sqlite_bytes(self._path) if self.kind == "sqlite" else 0
        assert len(self._invoke(self._agent, turns)["messages"]) == 2 * turns
        if self.kind == "sqlite":
            return sqlite_bytes(self._path) - before
        client: Any = redis.Redis.from_url(self.place.redis_url)
        keys = client.scan_iter(match=f"*{self._thread}*", count=1000)
        return sum(client.memory_usage(name, samples=0) or 0 for name in keys)


if __name__ == "__main__":
    measure(Graphs(Place(), sys.argv[1]))
