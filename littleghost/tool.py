"""Tools: named, described, checked operations of the application that a model may ask for."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self, cast

from littleghost.context import Binding, RunContext
from littleghost.errors import ControlError, DefinitionError, ToolError
from littleghost.frozen_json import FrozenDict
from littleghost.providers.base import CallControl, ToolSpec
from littleghost.schema import CompiledSchema
from littleghost.state import State
from littleghost.tool_output import MAX_RESULT_TOKENS, ToolOutcome

NAME_PATTERN: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
QUEUE_PATTERN: Final = re.compile(r"[a-z0-9._-]{1,64}")
_WORD_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What may be set where a tool is made at run time, besides name, description and schema.
OPTIONS: Final = frozenset(
    {
        "exclusive",
        "idempotent",
        "timeout_s",
        "queue",
        "available_if",
        "requires_approval",
        "approval_timeout_s",
    }
)
# A question to a person does not wait for ever.
APPROVAL_TIMEOUT_S: Final = 7 * 24 * 3600.0


class Tool:
    """An operation that a model may ask for; subclass it and implement `call`.

    An instance lives for one call. What must last longer goes into `state` or `context.state`.
    The schema checks the shape of the input, never permission: authorise by
    `invocation.actor_id` and `invocation.context`, which the application supplies.

    Attributes:
        name: How the model calls it: 1 to 64 letters, digits, "_" or "-". By default the class
            name in snake case, such as order_status_tool.
        description: What the model is told about it. By default the first paragraph of the class
            docstring; a tool without either is refused.
        input_schema: JSON Schema of its input, or a pydantic model class, whose instance `call`
            then gets. By default any object.
        exclusive: Never runs at the same time as another exclusive tool of the same run.
        idempotent: May be repeated after a crash. Otherwise the model is told that the outcome of
            an interrupted call is unknown.
        timeout_s: Seconds one call may take on a worker; None for no limit of its own.
        queue: The queue whose workers run it; None for the usual one.
        available_if: Asked with the `Binding` before the model is told about the tool and again
            before each call; a false answer leaves the tool out. None for always.
        requires_approval: Whether a person must allow each call, or a method that decides by the
            call's input, which it is given as `call` would be; that method must not act. The run
            waits without a worker; see `Run.pending` and `Run.approve`.
        approval_timeout_s: Seconds after which a question that nobody answered is a rejection.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    input_schema: ClassVar[Mapping[str, Any] | type[Any]] = FrozenDict(type="object")
    exclusive: ClassVar[bool] = False
    idempotent: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    queue: ClassVar[str | None] = None
    # No ClassVar: type checkers then let a subclass write it as a static or class method.
    available_if: Callable[[Any], object] | None = None
    requires_approval: bool | Callable[..., object] = False
    approval_timeout_s: ClassVar[float] = APPROVAL_TIMEOUT_S

    # The names a class or its parents set themselves, as opposed to derived ones.
    _own: ClassVar[frozenset[str]] = frozenset()
    _schema: ClassVar[CompiledSchema | None] = None
    _specification: ClassVar[ToolSpec | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._own = cls._own | ({"name", "description"} & cls.__dict__.keys())
        if "name" not in cls._own:
            cls.name = _WORD_BREAK.sub("_", cls.__name__).lower()
        if "description" not in cls._own and cls.__dict__.get("__doc__"):
            cls.description = first_paragraph(cls.__doc__)

    def __init__(self, binding: Binding | None = None) -> None:
        """Bind the tool to one call.

        Args:
            binding: The collaborators; an empty binding when None.
        """
        self._binding = Binding() if binding is None else binding

    @property
    def binding(self) -> Binding:
        """All collaborators of this call."""
        return self._binding

    @property
    def agent(self) -> Any:
        """The agent whose model asked, or None outside of a run."""
        return self._binding.agent

    @property
    def run(self) -> Any:
        """The run, or None outside of one."""
        return self._binding.run

    @property
    def invocation(self) -> Any:
        """The caller's request, with the `actor_id` and `context` to authorise by."""
        given = self._binding.invocation
        return getattr(self._binding.run, "invocation", None) if given is None else given

    @property
    def context(self) -> RunContext:
        """What all tools of this participant share."""
        return self._binding.context

    @property
    def state(self) -> State:
        """This tool's own working state."""
        return self._binding.state

    @property
    def idempotency_key(self) -> str:
        """The same text on every attempt at this call; hand it to services that take one."""
        return self._binding.idempotency_key

    @property
    def cancellation(self) -> CallControl:
        """The run's cancellation and deadline."""
        return self._binding.control

    def remaining_s(self, limit_s: float | None = None) -> float | None:
        """Give the seconds left to the run's deadline, at most `limit_s`; None is no limit."""
        return self._binding.control.remaining_s(limit_s)

    def check(self) -> None:
        """Go on only if the run may; call it in long loops.

        Raises:
            CancelledError: The run was cancelled.
            DeadlineExceededError: Its deadline has passed.
        """
        self._binding.control.check()

    def call(self, input: Any) -> Any:
        """Do the work; to be implemented, and may be `async`.

        Args:
            input: The model's input, checked: a dict, or an instance of the pydantic model.

        Returns:
            Text, None, or data; see `ToolOutcome.success`.

        Raises:
            ToolError: It cannot be done; the message is shown to the model. The message of any
                other exception never is.
        """
        raise NotImplementedError(f"{type(self).__qualname__} must implement call(self, input)")

    def is_asked(self, input: object) -> bool:
        """Say whether a person must allow a call with this input.

        Raises:
            ToolError: The input is refused, so that no call will be made.
        """
        given = self._approval_input(input)
        ask = self.requires_approval
        return bool(ask(given) if callable(ask) else ask)

    def _approval_input(self, input: object) -> Any:
        return self.schema().read(input)

    def close(self) -> None:
        """Give back what the tool has opened; called once, after the call."""

    def execute(
        self,
        input: object,
        binding: Binding | None = None,
        *,
        max_result_tokens: int | None = MAX_RESULT_TOKENS,
    ) -> ToolOutcome:
        """Check the input, do the call, and put the result into its standard form.

        `timeout_s`, `exclusive`, `available_if` and `close` are the engine's business. An `async`
        call runs in an event loop of its own.

        Args:
            input: What the model sent, as parsed JSON.
            binding: Collaborators to use instead of those given to the constructor.
            max_result_tokens: Where the text for the model is cut; None for nowhere.

        Returns:
            The outcome. An error's text is a `ToolError`'s own, or just "Tool failed (ClassName)".

        Raises:
            ControlError: The run is being stopped.
            DefinitionError: The input schema is declared wrongly.
        """
        tool = self if binding is None else self._bound_to(binding)
        tool.check()
        schema = tool.schema()
        try:
            result = tool.call(schema.read(input))
            if inspect.iscoroutine(result):
                from littleghost.coroutines import finish

                result = finish(result)
        except ControlError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever user code raises must not end the run
            shown = str(error).strip() if isinstance(error, ToolError) else ""
            text = shown or f"Tool failed ({type(error).__name__})"
            return ToolOutcome.failure(text, error, max_tokens=max_result_tokens)
        if isinstance(result, ToolOutcome):
            return result.cut(max_result_tokens)
        return ToolOutcome.success(result, max_tokens=max_result_tokens)

    def _bound_to(self, binding: Binding) -> Self:
        # A copy, so that calls at the same time do not see each other's binding.
        tool = copy.copy(self)
        Tool.__init__(tool, binding)
        return tool

    @classmethod
    def schema(cls) -> CompiledSchema:
        """Give the compiled input schema, made when it is first needed.

        Raises:
            DefinitionError: `input_schema` is no valid schema.
        """
        compiled = cls.__dict__.get("_schema")
        if compiled is None:
            compiled = cls._schema = cls._compile_schema()
        return cast("CompiledSchema", compiled)

    @classmethod
    def _compile_schema(cls) -> CompiledSchema:
        return CompiledSchema(cls.input_schema, owner=f"{cls.__qualname__}.input_schema")

    @classmethod
    def specification(cls) -> ToolSpec:
        """Give what a model is told about the tool; read-only and the same object each time."""
        made = cls.__dict__.get("_specification")
        if made is None:
            made = ToolSpec(cls.name, cls.description.strip(), cls.schema().json)
            cls._specification = made
        return cast("ToolSpec", made)

    @classmethod
    def define(
        cls,
        *,
        name: str,
        description: str,
        call: Callable[..., Any],
        input_schema: Mapping[str, Any] | type[Any] | None = None,
        **options: Any,
    ) -> type[Self]:
        """Make a tool class at run time, from a function that is given the input.

        Args:
            name: How the model calls it.
            description: What the model is told.
            call: Called with the input; as `call(input, tool=…)` if it has a parameter `tool`.
            input_schema: As the class attribute; None for that of this class.
            options: exclusive, idempotent, timeout_s, queue, available_if, requires_approval or
                approval_timeout_s; functions are given what they decide by, without a tool.

        Raises:
            DefinitionError: An option is unknown or `call` cannot be called.
        """
        check_options(name, options)
        if not callable(call):
            raise DefinitionError(f"tool {name!r}: call must be a function, not {call!r}")
        wants_tool = "tool" in inspect.signature(call).parameters

        def method(self: Tool, input: Any) -> Any:
            return call(input, tool=self) if wants_tool else call(input)

        body: dict[str, Any] = {
            "name": name,
            "description": description,
            "call": method,
            **as_attributes(options),
        }
        if input_schema is not None:
            body["input_schema"] = input_schema
        body["__module__"] = getattr(call, "__module__", cls.__module__)
        return type(cls)(name, (cls,), body)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that no tool has.

    Raises:
        DefinitionError: One is unknown; the message names it and the tool.
    """
    for option in options:
        if option not in OPTIONS:
            raise DefinitionError(
                f"tool {name!r}: unknown option {option!r}; use {', '.join(sorted(OPTIONS))}"
            )


def as_attributes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give options as class attributes: a function stays a function, without a tool to bind to."""
    plain = dict(options)
    if callable(plain.get("requires_approval")):
        plain["requires_approval"] = staticmethod(plain["requires_approval"])
    return plain


def first_paragraph(docstring: str | None) -> str:
    """Give the first paragraph of a docstring on one line; empty when there is none."""
    paragraph = inspect.cleandoc(docstring or "").split("\n\n", 1)[0]
    return " ".join(paragraph.split())
