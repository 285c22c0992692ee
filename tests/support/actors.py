"""Makes registered classes of plans, and plays the models of their agents."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from littleghost import Agent, Edge, ErrorEdge, Graph, Limits, Member, Node, Swarm, Workflow, errors
from littleghost.graph import State
from littleghost.handoff import HANDOFF
from littleghost.invoked import Invoked
from littleghost.messages import ToolResult
from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Call, Reply, ScriptedProvider
from littleghost.workflow import StepFailedError
from tests.support import plans
from tests.support.cast import EFFECTS, USAGE, CastProvider, Charge, Fetch, at
from tests.support.plans import Actor, Bounds, Condition, FlowPlan, GraphPlan, Mapper, SwarmPlan

ACTORS: dict[str, Actor] = {}
# Gives the number of the attempt whose model is asked; set by the test that runs a world.
ATTEMPT: list[Callable[[], int]] = []
HELPER = "helper"


def error_class(name: str) -> type[Exception]:
    """Give the class an error's name means."""
    found: Any = getattr(errors, name, None) or getattr(builtins, name, None) or StepFailedError
    return found


def _policy(bounds: Bounds) -> dict[str, Any]:
    if not bounds.retries:
        return {}
    return {
        "retries": bounds.retries,
        "retry_on": error_class(bounds.retry_on),
        "retry_delay_s": bounds.retry_delay_s,
    }


class Casting:
    """Makes the classes of one plan; their names begin with a label."""

    def __init__(self, label: str) -> None:
        self._label = label

    def make(self, plan: plans.Plan) -> Any:
        """Make the class of a plan, and of all inside it."""
        if isinstance(plan, Actor):
            return self._agent(plan)
        if isinstance(plan, GraphPlan):
            return self._graph(plan)
        if isinstance(plan, SwarmPlan):
            return self._swarm(plan)
        values = {"program": plan.program, "asked": self._asked(plan), "perform": perform}
        return self._class(plan.name, Workflow, values)

    def _class(self, name: str, base: type, values: dict[str, Any]) -> Any:
        label = f"{self._label}_{name}"
        return type(label, (base,), {"__module__": __name__, "__qualname__": label, **values})

    def _agent(self, actor: Actor) -> Any:
        ACTORS[f"{self._label}_{actor.name}"] = actor
        tools: list[Any] = [{"charge": Charge, "fetch": Fetch}[name] for name in
                            dict.fromkeys(actor.calls)]  # fmt: skip
        if actor.helper is not None:
            tools.append(self.make(actor.helper).as_tool(name=HELPER, description="Helps."))
        values: dict[str, Any] = {
            "model": f"actor:{self._label}_{actor.name}",
            "system_prompt": "",
            "tools": tuple(tools),
            "limits": Limits(max_model_retries=0, max_parallel_calls=2),
        }
        return self._class(actor.name, Agent, values)

    def _graph(self, plan: GraphPlan) -> Any:
        nodes = {
            name: Node(
                self.make(node.plan),
                history=node.history,
                input=node.mapper and mapper_of(node.mapper),
                **_policy(node.bounds),
            )
            for name, node in plan.nodes.items()
        }
        edges: list[Edge | ErrorEdge] = []
        for way in plan.ways:
            when = way.when and condition_of(way.when)
            made = way.mapper and mapper_of(way.mapper)
            if way.split:
                edges += [Edge(way.source, target, when, made) for target in way.targets]
                continue
            target = way.targets[0] if len(way.targets) == 1 else way.targets
            edges.append(Edge(way.source, target, when, made, way.width))
        for join in plan.joins:
            edges.append(
                Edge(join.sources, join.target, None, join.mapper and mapper_of(join.mapper))
            )
        for one in plan.rescues:
            made = one.mapper and mapper_of(one.mapper)
            edges.append(ErrorEdge(one.source, one.target, error_class(one.on), made))
        values: dict[str, Any] = {
            "nodes": nodes,
            "start": plan.start,
            "finish": plan.finish,
            "edges": edges,
            "max_steps": plan.max_steps,
        }
        return self._class(plan.name, Graph, values)

    def _swarm(self, plan: SwarmPlan) -> Any:
        members = [
            Member(
                self._agent(one.actor),
                name=one.actor.name,
                history=one.history,
                **_policy(one.bounds),
            )
            for one in plan.members
        ]
        values: dict[str, Any] = {
            "members": members,
            "start": plan.members[0].actor.name,
            "handoffs": {name: list(targets) for name, targets in plan.handoffs.items()},
            "max_steps": plan.max_steps,
            "max_handoff_repeats": plan.max_repeats,
        }
        return self._class(plan.name, Swarm, values)

    def _asked(self, plan: FlowPlan) -> Mapping[str, Any]:
        return {ask.var: self.make(ask.plan) for ask in asks_in(plan.program)}


def asks_in(program: tuple[plans.Op, ...]) -> list[plans.Ask]:
    """Give every child that a program may ask."""
    found: list[plans.Ask] = []
    for op in program:
        if isinstance(op, plans.Invoke):
            found.append(op.ask)
        elif isinstance(op, plans.Parallel):
            found += op.asks
        elif isinstance(op, plans.Guard):
            found += asks_in(op.body) + asks_in(op.handler)
        elif isinstance(op, plans.Choose):
            found += asks_in(op.body) + asks_in(op.other)
        elif isinstance(op, plans.Repeat):
            found += asks_in(op.body)
        elif isinstance(op, plans.Return) and op.ask is not None:
            found.append(op.ask)
    return found


def condition_of(one: Condition) -> Callable[[State], bool]:
    """Make the function of a condition."""
    return lambda state: plans.crc(state.result(one.node).text) % one.modulus in one.rests


def mapper_of(one: Mapper) -> Callable[[State], str]:
    """Make the function of a mapper."""

    def make(state: State) -> str:
        if one.breaks:
            raise ValueError("no input")
        given = [f"{name}={result.text}" for name, result in state.incoming_results.items()]
        known = [f"{name}={result.text}" for name, result in sorted(state.results.items())]
        error = state.error.type if state.error else "-"
        about = [state.current, str(state.previous), *state.predecessors, error]
        parts = [state.input.text, str(len(state.history)), *given, "known", *known, *about]
        return plans.text_for(one.tag, parts)

    return make


# What every workflow performs.


class _ReturnedError(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Performance:
    """One run through a workflow's program."""

    def __init__(self, workflow: Any) -> None:
        self._flow = workflow
        self._vars: dict[str, str] = {}
        self._read: dict[str, Invoked] = {}
        self._number = 0

    def play(self, program: tuple[plans.Op, ...]) -> Any:
        """Do all of it."""
        try:
            self._do(program)
        except _ReturnedError as returned:
            return returned.value
        return "fell through"

    def _do(self, program: tuple[plans.Op, ...]) -> None:
        for op in program:
            getattr(self, f"_{type(op).__name__.lower()}")(op)

    def _text(self, tag: str, reads: tuple[str, ...]) -> str:
        return plans.text_for(tag, [self._vars.get(name, "-") for name in reads])

    def _prepare(self, ask: plans.Ask) -> Invoked:
        self._number += 1
        options: dict[str, Any] = _policy(ask.bounds)
        if not ask.whole:
            options["input"] = self._text(ask.var, ask.reads)
        if ask.forgets:
            options["history"] = ()
        kind = self._flow.asked[ask.var]
        return self._flow.invoke(kind, name=f"{ask.var}.{self._number}", **options)

    def _invoke(self, op: plans.Invoke) -> None:
        child = self._prepare(op.ask)
        if op.read:
            self._vars[op.ask.var] = child.result.text
            self._read[op.ask.var] = child

    def _parallel(self, op: plans.Parallel) -> None:
        children = [self._prepare(ask) for ask in op.asks]
        given = self._flow.parallel(*children, max_concurrency=op.width, settle=op.settle)
        for ask, child, one in zip(op.asks, children, given, strict=True):
            if op.settle and one.error is not None:
                self._vars[ask.var] = type(one.error).__name__
            else:
                self._vars[ask.var] = child.result.text

    def _guard(self, op: plans.Guard) -> None:
        try:
            self._do(op.body)
        except _ReturnedError:
            raise
        except error_class(op.on) as error:
            self._vars["error"] = type(error).__name__
            self._do(op.handler)

    def _memo(self, op: plans.Memo) -> None:
        key = f"{self._flow.run.id}/{op.var}"
        text = self._text(op.var, op.reads)

        def make() -> str:
            EFFECTS[key] += 1
            if op.breaks:
                raise ValueError("no value")
            return text

        self._vars[op.var] = self._flow.step(make, name=op.var)

    def _choose(self, op: plans.Choose) -> None:
        is_so = plans.crc(self._vars.get(op.var, "-")) % op.modulus == 0
        self._do(op.body if is_so else op.other)

    def _repeat(self, op: plans.Repeat) -> None:
        for _ in range(op.times):
            self._do(op.body)

    def _sleep(self, op: plans.Sleep) -> None:
        self._flow.sleep(0.001)

    def _raise(self, op: plans.Raise) -> None:
        raise error_class(op.error)("raised")

    def _return(self, op: plans.Return) -> None:
        value: Any = self._text("said", op.reads)
        if op.what == "json":
            value = {"said": [self._vars.get(name, "-") for name in op.reads]}
        elif op.what == "none":
            value = None
        elif op.what == "unread" and op.ask is not None:
            value = self._prepare(op.ask)
        elif op.what == "read" and op.reads and op.reads[0] in self._read:
            value = self._read[op.reads[0]]
        raise _ReturnedError(value)


def perform(self: Any) -> Any:
    """Perform the class's program."""
    return Performance(self).play(self.program)


# What every model says.


def script(request: ModelRequest) -> Reply:
    """Answer by the actor and the newest user text."""
    at("model")
    actor = ACTORS[request.model]
    text, seen, turn, told = _read(request)
    word = actor.word(text, seen)
    begins = bool(actor.calls) or actor.helper is not None
    if turn == int(begins and actor.late):
        _fail(actor, word)
    if begins and turn == 0:
        calls = [Call(name, {"n": number}) for number, name in enumerate(actor.calls)]
        if actor.helper is not None:
            calls.append(Call(HELPER, {"input": f"h{word % 1_000}"}))
        return Reply(tool_calls=calls, usage=USAGE)
    what, to = actor.move(word, turn - begins)
    if what == "answer":
        return Reply(text=actor.answer(word, told), usage=USAGE, chunk_chars=1_000)
    handoff = Call(HANDOFF, {"agent_id": to, "message": actor.answer(word, told)})
    beside = [Call("nothing", {})] if what == "beside" else []
    return Reply(tool_calls=[handoff, *beside], usage=USAGE)


def _fail(actor: Actor, word: int) -> None:
    if actor.flaky and ATTEMPT[-1]() <= actor.flaky:
        raise errors.InvalidRequestError("not at first")
    if actor.fails is not None and word % actor.fails[0] == actor.fails[1]:
        raise error_class(actor.fails[2])("never")


def _read(request: ModelRequest) -> tuple[str, int, int, str | None]:
    """Give the newest user text, how many messages were before it, the turns since, the help."""
    messages = [message for message in request.messages if message.role != "system"]
    place = max(n for n, message in enumerate(messages) if message.role == "user")
    after = messages[place + 1 :]
    asked = {use.id for message in after for use in message.tool_uses if use.name == HELPER}
    told = [
        block.content
        for message in after
        for block in message.content
        if isinstance(block, ToolResult) and block.tool_use_id in asked
    ]
    turns = sum(message.role == "assistant" for message in after)
    return messages[place].text, place, turns, told[0] if told else None


class ActorProvider(CastProvider):
    """Answers by this module's script."""

    def __init__(self) -> None:
        ScriptedProvider.__init__(self, script)
