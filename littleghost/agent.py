"""Agents: one model, its instructions and its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from littleghost import registry
from littleghost.assembly import Assembly, builder_of
from littleghost.context import Binding
from littleghost.delegation import AssemblyTool
from littleghost.engine.advance import register_decider
from littleghost.engine.commands import ParticipantSpec, TaskSpec
from littleghost.engine.decide import agent as decide
from littleghost.engine.decide.subagents import decide as decide_subagents
from littleghost.engine.opening import Opening
from littleghost.engine.turn import TURNS
from littleghost.errors import DefinitionError, InvocationError
from littleghost.json_values import check_json_mapping, clean_text
from littleghost.providers.base import ToolSpec
from littleghost.subagents import ControlTool, SubagentLimits, control_tools, read_subagents
from littleghost.toolset import Declarations, Toolset, validate_declarations

if TYPE_CHECKING:
    from littleghost.builders import AgentBuilder

DEFAULT_PROMPT = "You are a helpful agent."


class Agent(Assembly, abstract=True):
    """A model-driven loop: the model answers or asks for tools, until it answers.

    Attributes:
        model: "connection:model-id", a role, a mapping with `provider` and `model`, or a method
            `model(self)` that chooses for one run; None is the default model.
        system_prompt: Text, or a method `system_prompt(self)` that writes it for one run. Blank
            text means that there is none.
        tools: Tool classes, decorated functions and tool providers; added to those of the bases.
        subagents: Kinds of agents that the model may start, talk to and wait for: `Subagent(…)` or
            agent classes, or a method `subagents(self)` that lists them for one run.
        subagent_limits: What they may use up, all together.
    """

    kind: ClassVar[str] = "agent"
    model: Any = None
    system_prompt: Any = DEFAULT_PROMPT
    tools: ClassVar[Sequence[Any]] = ()
    subagents: Any = ()
    subagent_limits: ClassVar[SubagentLimits] = SubagentLimits()
    _declarations: ClassVar[Declarations | None] = None

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        """Register the class; see `Assembly`."""
        super().__init_subclass__(abstract=abstract, **options)
        cls._declarations = None

    @classmethod
    def declarations(cls) -> Declarations:
        """Give the checked tool declarations of the class and its bases.

        Raises:
            DefinitionError: A tool is declared wrongly; the message lists every problem.
        """
        if cls._declarations is None:
            declared: list[Any] = []
            for base in reversed(cls.__mro__):
                own = base.__dict__.get("tools", ())
                if isinstance(own, str) or not isinstance(own, Sequence):
                    raise DefinitionError(
                        f"{cls.__qualname__}.tools is {own!r}; use a list of tools"
                    )
                declared += [tool for tool in own if tool not in declared]
            if callable(cls.subagents):
                declared.append(_RunSubagents)
            else:
                kinds = read_subagents(cls.subagents, f"{cls.__qualname__}.subagents")
                declared += control_tools(kinds)
            cls._declarations = validate_declarations(declared, f"{cls.__qualname__}.tools")
        return cls._declarations

    @classmethod
    def to_builder(cls) -> AgentBuilder:
        """Give a builder that begins with what this class declares and can do."""
        return cast("AgentBuilder", builder_of(cls))

    @classmethod
    def check_definition(cls) -> None:
        """Check model, prompt and tools."""
        name = cls.__qualname__
        if not (cls.model is None or callable(cls.model) or isinstance(cls.model, str | Mapping)):
            raise DefinitionError(
                f"{name}.model is {cls.model!r}; use 'connection:model-id', a role name, a mapping "
                "with provider and model, or a method"
            )
        if isinstance(cls.model, Mapping):
            try:
                check_json_mapping(cast("object", cls.model), f"{name}.model")
            except InvocationError as error:
                raise DefinitionError(str(error)) from error
        if not (callable(cls.system_prompt) or isinstance(cls.system_prompt, str)):
            raise DefinitionError(f"{name}.system_prompt must be text or a method")
        if not isinstance(cls.subagent_limits, SubagentLimits):
            raise DefinitionError(
                f"{name}.subagent_limits is {cls.subagent_limits!r}; use SubagentLimits(…)"
            )
        for entry in cls.declarations().entries:
            schema = getattr(entry, "schema", None)
            if schema is not None:
                schema()

    @classmethod
    def parts(cls) -> Sequence[type[Assembly]]:
        """Give the assemblies that are its tools, and its subagents."""
        found: list[type[Assembly]] = []
        for entry in cls.declarations().entries:
            if isinstance(entry, type) and issubclass(entry, AssemblyTool):
                found.append(entry.assembly)
            elif isinstance(entry, type) and issubclass(entry, ControlTool):
                found += [item.agent for item in entry.kinds.values() if item.agent not in found]
        return found

    @classmethod
    def definition(cls) -> Mapping[str, Any]:
        """Give what the definition consists of, as JSON."""
        fixed = cls.declarations().fixed
        tools = (
            [[spec.name, spec.description, dict(spec.input_schema)] for spec in fixed[1]]
            if fixed
            else [
                str(getattr(entry, "__qualname__", entry)) for entry in cls.declarations().entries
            ]
        )
        return {
            **super().definition(),
            "model": _told(cls.model),
            "system_prompt": _told(cls.system_prompt),
            "tools": tools,
        }

    @classmethod
    def begin(cls, opening: Opening) -> tuple[Sequence[ParticipantSpec], Sequence[TaskSpec]]:
        """Give the participant and its first turn."""
        participant = opening.participant(
            assembly=registry.name_of(cls),
            kind=cls.kind,
            label=cls.id(),
            state=decide.AgentState().to_json(),
        )
        turn = opening.task(decide.turn_id(opening.id, 0), "turn", opening.queue(TURNS))
        return [participant], [turn]

    def prompt_text(self) -> str:
        """Give the system prompt of this run; a method that gives None wants none."""
        prompt = self.system_prompt
        text = prompt() if callable(prompt) else prompt
        return "" if text is None else clean_text(str(text))

    def model_selection(self) -> str | Mapping[str, Any] | None:
        """Give the model of this run."""
        chosen = self.model
        return cast("str | Mapping[str, Any] | None", chosen() if callable(chosen) else chosen)

    def toolset(self) -> Toolset:
        """Give the tools of this run."""
        return Toolset(self.declarations(), self._binding.with_(agent=self))

    def offered(self, specs: Sequence[ToolSpec], turn: int) -> Sequence[ToolSpec]:
        """Choose the tools that one model request offers; override it to hide some.

        Args:
            specs: The tools of this run.
            turn: Which turn of the run it is, from 0.
        """
        del turn
        return specs


class _RunSubagents:
    """Offers the control tools of the subagents that an agent's method lists for a run."""

    @staticmethod
    def tools(binding: Binding) -> Sequence[Any]:
        """Give the tools; none when there are no kinds."""
        agent = binding.agent
        owner = f"{type(agent).__qualname__}.subagents()"
        return control_tools(read_subagents(agent.subagents() or (), owner))


register_decider("subagents", decide_subagents)


def _told(value: Any) -> Any:
    if callable(value):
        return f"method {getattr(value, '__qualname__', type(value).__qualname__)}"
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
