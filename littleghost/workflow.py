"""Workflows: ordinary Python that says who does what, and survives whatever happens to a worker.

`perform` runs from the top each time something it waited for is there; what it had asked for is
answered from the journal. So it must ask for the same things in the same order: whatever varies or
acts goes through `step`, `now`, `random` and `uuid`, whose values are recorded.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID, uuid4

from littleghost import registry
from littleghost.assembly import Assembly, Buildable, Input, builder_of
from littleghost.context import Binding
from littleghost.engine.advance import register_decider
from littleghost.engine.decide.workflow import VALUE_LIMITS, decide
from littleghost.engine.replay import Replay, StepFailedError, error_of
from littleghost.engine.replay_steps import Ended, StepRequest
from littleghost.errors import (
    AssemblyError,
    CleanupError,
    DefinitionError,
    InvocationError,
    ProtocolError,
)
from littleghost.invocation import clean_message, read_message
from littleghost.invoked import Invoked, Settled, StepResult, settled
from littleghost.json_values import check_json_mapping, clean_text, to_json_value
from littleghost.messages import Message
from littleghost.policy import StepPolicy
from littleghost.reach import SIGNAL_NAME

if TYPE_CHECKING:
    from littleghost.builders import WorkflowBuilder

__all__ = ["Invoked", "Settled", "StepFailedError", "StepResult", "Workflow"]
_MAX_NAME = 256


class Workflow(Assembly, abstract=True):
    """Ordinary Python that invokes other assemblies; subclasses write `perform`.

    `perform` returns text, a JSON value, or what `invoke` gave, whose answer then is the result.
    """

    kind: ClassVar[str] = "workflow"
    _replay: Replay | None = None

    def __init__(self, binding: Binding | None = None) -> None:
        """Make the instance that one advance works with; applications never call this."""
        super().__init__(binding)
        self._messages: Sequence[Message] = ()

    @classmethod
    def to_builder(cls) -> WorkflowBuilder:
        """Give a builder that begins with what this class declares and can do."""
        return cast("WorkflowBuilder", builder_of(cls))

    @classmethod
    def check_definition(cls) -> None:
        """Check that there is code to perform."""
        name = cls.__qualname__
        if cls.perform is Workflow.perform:
            raise DefinitionError(f"{name}.perform is missing; write what the workflow does")
        if not inspect.isfunction(cls.perform):
            raise DefinitionError(f"{name}.perform must be a method")
        if inspect.iscoroutinefunction(cls.perform) or inspect.isgeneratorfunction(cls.perform):
            raise DefinitionError(
                f"{name}.perform must be an ordinary method, neither async nor a generator"
            )

    def perform(self) -> Any:
        """Do the work; runs from the top again whenever something it waited for is there."""
        raise NotImplementedError

    def conduct(self, replay: Replay, messages: Sequence[Message]) -> Any:
        """Run `perform` once; the engine calls this.

        Returns:
            What `perform` returned; for a child, how that ended.

        Raises:
            ProtocolError: It returned a child of another workflow.
        """
        self._replay, self._messages = replay, messages
        returned: object = self.perform()
        if not isinstance(returned, Invoked):
            return returned
        if returned.owner is not self:
            raise ProtocolError(f"{type(self).__qualname__}.perform returned a child not its own")
        if returned.ended is None:
            returned.request = replace(returned.request, final=True)
        # Reading the result raises what the child failed with.
        result = returned.result
        return Ended(result={"output": result.output, "stop_reason": result.stop_reason})

    @property
    def input(self) -> Message:
        """What the workflow is asked."""
        return self._messages[-1]

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before it."""
        return tuple(self._messages[:-1])

    @property
    def context(self) -> Mapping[str, Any]:
        """The application's values for this request, as far as they were passed on."""
        return cast("Mapping[str, Any]", self.invocation.context)

    def invoke(
        self,
        assembly: type[Assembly] | Buildable,
        *,
        input: Input | None = None,
        history: Iterable[Message] | None = None,
        context: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        name: str = "",
        timeout_s: float | None = None,
        retries: int = 0,
        retry_on: type[BaseException] | Sequence[type[BaseException]] = (),
        retry_delay_s: float = 0.0,
    ) -> Invoked:
        """Prepare a child; it starts when its output is first read or when it is returned.

        Args:
            assembly: Its class, or a builder, of which this takes a snapshot.
            input: What it is asked; the workflow's own input unless given.
            history: The messages before that; the workflow's own unless given.
            context: What its code sees of the context; the workflow's own unless given.
            settings: Model settings on top of the invocation's.
            name: Its name in events and results; the assembly's id unless given.
            timeout_s: Seconds that one attempt may take.
            retries: How often a failed attempt is followed by another.
            retry_on: Exception classes that are worth another attempt.
            retry_delay_s: Seconds between two attempts.

        Raises:
            DefinitionError: The class or a bound is wrong.
            InvocationError: Input, history, context or settings cannot be passed on.
        """
        if not isinstance(assembly, type) and callable(getattr(assembly, "build", None)):
            assembly = cast("type[Assembly]", assembly.build())
        if not (isinstance(assembly, type) and issubclass(assembly, Assembly)):
            raise DefinitionError(f"{self._named}: invoke got {assembly!r}; use an assembly class")
        assembly.check()
        label: object = name or assembly.id()
        if not isinstance(label, str) or len(label) > _MAX_NAME or clean_text(label) != label:
            raise DefinitionError(f"{self._named}: invoke got name={label!r:.80}; use a short text")
        policy = StepPolicy.read(
            f"{self._named}: invoke of {label!r}",
            timeout_s=timeout_s,
            retries=retries,
            retry_on=retry_on,
            retry_delay_s=retry_delay_s,
        )
        request = StepRequest(
            assembly=assembly,
            registered=registry.name_of(assembly),
            name=label,
            message=self.input if input is None else read_message(input),
            history=self.history if history is None else _read_history(history),
            context=check_json_mapping(self.context if context is None else context, "context"),
            settings=None if settings is None else check_json_mapping(settings, "settings"),
            policy=policy,
        )
        return Invoked(self, request)

    def await_step(self, invoked: Invoked) -> Ended:
        """Give how a child ended; starts it when nobody has yet."""
        if invoked.ended is None:
            replay = self._replaying("reading an output")
            (invoked.ended,) = replay.steps("invoke", [invoked.request], width=1, settle=False)
        return invoked.ended

    def parallel(
        self, *invocations: Invoked, max_concurrency: int = 8, settle: bool = False
    ) -> list[Any]:
        """Run several children at once.

        Args:
            *invocations: What `invoke` gave, none of it read yet.
            max_concurrency: How many of them may run at the same time.
            settle: Let the others go on when one fails, and tell how each ended.

        Returns:
            Their outputs in the order given; with `settle`, a `Settled` for each.

        Raises:
            InvocationError: There are none, or one is read already, given twice or another's.
            LittleGhostError: The first failure, as for `output`; the others are stopped before.
        """
        self._check_parallel(invocations, max_concurrency)
        ended = self._replaying("parallel()").steps(
            "parallel",
            [item.request for item in invocations],
            width=max_concurrency,
            settle=settle,
        )
        for item, one in zip(invocations, ended, strict=True):
            item.ended = one
        if settle:
            return [settled(item) for item in invocations]
        failures = [one.failure for one in ended if one.failure is not None and not one.stopped]
        if failures:
            # What could not be closed matters more than what went wrong before.
            raise error_of(min(failures, key=lambda failure: failure.code != CleanupError.code))
        return [item.output for item in invocations]

    def _check_parallel(self, invocations: Sequence[object], width: object) -> None:
        if not invocations:
            raise InvocationError(f"{self._named}: parallel needs at least one invocation")
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise InvocationError(
                f"{self._named}: max_concurrency is {width!r}; use 1 or more",
                field="max_concurrency",
            )
        for number, item in enumerate(invocations):
            if not isinstance(item, Invoked) or item.owner is not self:
                raise InvocationError(f"{self._named}: parallel got {item!r}; use self.invoke(…)")
            if item.ended is not None or item in invocations[:number]:
                raise InvocationError(f"{self._named}: {item!r} was read or given already")

    def step(self, function: Callable[..., Any], *args: Any, name: str = "") -> Any:
        """Call a function and record what it gives; it may act on the outside.

        The record is made together with what follows from it. A worker that dies before has the
        function called again: at least once, and never again once it is recorded. An error is
        recorded as well.

        Args:
            function: What to call; it must not use the workflow.
            *args: What it is called with.
            name: What tells it from other steps; the function's name unless given.

        Returns:
            Its result as JSON (see `to_json_value`), at most 1,000,000 bytes.

        Raises:
            LittleGhostError: What it raised, when that is one of `littleghost.errors`.
            StepFailedError: It raised something else.
        """
        label = name or str(getattr(function, "__qualname__", type(function).__qualname__))
        return self._replaying("step()").value(
            "step", label, lambda: to_json_value(function(*args), limits=VALUE_LIMITS)
        )

    def now(self) -> datetime:
        """Give the time at which `perform` first came here, by the journal's clock."""
        replay = self._replaying("now()")
        return datetime.fromtimestamp(replay.value("now", "", lambda: replay.now_ms) / 1000, UTC)

    def random(self) -> float:
        """Give a number from 0 up to 1; always the same one in this place of this run."""
        return float(self._replaying("random()").value("random", "", random.random))

    def uuid(self) -> UUID:
        """Give a random UUID; always the same one in this place of this run."""
        return UUID(self._replaying("uuid()").value("uuid", "", lambda: str(uuid4())))

    def sleep(self, seconds: float) -> None:
        """Go on after some seconds; no worker waits meanwhile.

        Raises:
            InvocationError: It is no finite number of 0 or more seconds.
        """
        self._check_seconds("sleep", seconds)
        self._replaying("sleep()").sleep(float(seconds))

    def wait_for(self, signal: str, *, timeout_s: float | None = None) -> Any:
        """Wait for a signal that somebody sends with `Run.signal`; no worker waits meanwhile.

        Signals that were sent before are kept. Each reaches one wait of its name, in order.

        Args:
            signal: Its name: 1 to 64 letters, digits, ".", "_" or "-".
            timeout_s: Seconds to wait at most; None waits as long as the run may take.

        Returns:
            The signal's value.

        Raises:
            SignalTimeoutError: None came in time.
            InvocationError: The name or the time is refused.
        """
        given: object = signal
        if not isinstance(given, str) or not SIGNAL_NAME.fullmatch(given):
            raise InvocationError(f"{self._named}: wait_for got the name {given!r:.80}")
        if timeout_s is not None:
            self._check_seconds("wait_for", timeout_s)
        return self._replaying("wait_for()").signal(signal, timeout_s)

    def _check_seconds(self, what: str, given: object) -> None:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not math.isfinite(cast("float", given)) or cast("float", given) < 0:
            raise InvocationError(f"{self._named}: {what} got {given!r}; use 0 seconds or more")

    @property
    def _named(self) -> str:
        return type(self).__qualname__

    def _replaying(self, what: str) -> Replay:
        if self._replay is None:
            raise AssemblyError(f"{self._named}: {what} works inside of perform only")
        return self._replay


def _read_history(value: Iterable[object]) -> tuple[Message, ...]:
    if isinstance(value, str | bytes | Mapping):
        raise InvocationError("history must be a list of messages", field="history")
    return tuple(clean_message(Message.from_json(item), "history") for item in value)


register_decider("workflow", decide)
