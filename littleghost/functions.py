"""Typed functions as tools: signature and docstring give the schema and the description."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

from littleghost.context import Binding
from littleghost.docstrings import parameter_texts
from littleghost.errors import DefinitionError
from littleghost.providers.base import ToolSpec
from littleghost.schema import CompiledSchema
from littleghost.tool import Tool, as_attributes, check_options, first_paragraph
from littleghost.tool_output import MAX_RESULT_TOKENS, ToolOutcome

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Tool):
    """The base of tool classes that are made from functions; `input` is a generated model."""

    description = ""
    function: ClassVar[Callable[..., Any]]
    # Parameters by the field of the generated model, and what each injected parameter gets: the
    # tool or its binding. Known when the schema is compiled.
    fields: ClassVar[Mapping[str, str]] = {}
    injected: ClassVar[Mapping[str, Callable[[Tool], Any]]] = {}

    def call(self, input: Any) -> Any:
        """Call the function with the arguments the model chose; the others keep their defaults."""
        kind = type(self)
        arguments = {
            name: getattr(input, field)
            for field, name in kind.fields.items()
            if field in input.model_fields_set
        }
        arguments.update({name: give(self) for name, give in kind.injected.items()})
        return kind.function(**arguments)

    def _approval_input(self, input: object) -> Any:
        model = self.schema().read(input)
        return {alias: getattr(model, field) for field, alias in type(self).fields.items()}

    @classmethod
    def _compile_schema(cls) -> CompiledSchema:
        # Only now, so that annotations may name what is defined later in the module, and so that
        # declaring a tool does not import pydantic.
        hints = _resolve_hints(cls.function, cls.__qualname__)
        injected = _injections(cls.function, hints)
        model = _arguments_model(cls.function, cls.__qualname__, hints, injected.keys())
        cls.injected = injected
        cls.fields = {field: info.alias for field, info in model.model_fields.items()}
        cls.input_schema = model
        return CompiledSchema(model, owner=f"{cls.__qualname__}: the parameters' schema")


class ToolFunction(Generic[P, R]):
    """A function that is a tool, too: call it as before, or put it into an agent's `tools`.

    Attributes:
        tool_class: The tool class made from the function.
    """

    def __init__(self, function: Callable[P, R], tool_class: type[FunctionTool]) -> None:
        """Wrap a function; use `@tool` instead."""
        self.tool_class = tool_class
        self._function = function
        functools.update_wrapper(cast("Callable[..., Any]", self), function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no checks, no state, its own result and errors."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        kind = self.tool_class
        return f"<tool {kind.name!r} from {kind.__module__}.{kind.__qualname__}>"

    @property
    def name(self) -> str:
        """How the model calls it."""
        return self.tool_class.name

    @property
    def description(self) -> str:
        """What the model is told about it."""
        return self.tool_class.description

    def specification(self) -> ToolSpec:
        """Give what a model is told about the tool.

        Raises:
            DefinitionError: The signature has no schema.
        """
        return self.tool_class.specification()

    def execute(
        self,
        input: object,
        binding: Binding | None = None,
        *,
        max_result_tokens: int | None = MAX_RESULT_TOKENS,
    ) -> ToolOutcome:
        """Do one call as a model would; see `Tool.execute`."""
        tool = self.tool_class(binding)
        return tool.execute(input, max_result_tokens=max_result_tokens)


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Make a typed function a tool.

    Every parameter needs a type that JSON can express: text, numbers, lists, Literal, Optional,
    nested pydantic models, `Annotated[..., Field(description="…")]`. An `Args:` section of the
    docstring describes parameters. A parameter annotated with `Tool` or `Binding`, or one named
    `tool` without another type, is given the bound tool or its binding and hidden from the model.

    Args:
        function: The function, when used as `@tool` alone; it may be `async`.
        name: How the model calls it; by default the function's name.
        description: What the model is told; by default the docstring's first paragraph.
        options: exclusive, idempotent, timeout_s, queue, available_if, requires_approval or
            approval_timeout_s, as on `Tool`; a `requires_approval` that decides by the call is a
            function of the arguments as a dict.

    Raises:
        DefinitionError: An option is unknown, or this is not a function with named parameters.
    """

    def decorate(function: Callable[..., Any]) -> ToolFunction[..., Any]:
        if not inspect.isroutine(function):
            raise DefinitionError(f"@tool is for functions, not for {function!r}")
        check_options(name or function.__name__, options)
        _check_parameters(function)
        body: dict[str, Any] = {
            "name": name or function.__name__,
            "description": first_paragraph(function.__doc__)
            if description is None
            else description,
            "function": staticmethod(function),
            "__module__": function.__module__,
            "__qualname__": function.__qualname__,
            "__doc__": function.__doc__,
            **as_attributes(options),
        }
        made: Any = type(function.__name__, (FunctionTool,), body)
        return ToolFunction(function, made)

    return decorate if function is None else decorate(function)


def _check_parameters(function: Callable[..., Any]) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DefinitionError(
                f"tool {function.__qualname__}: parameter {parameter.name!r} cannot be given "
                "by name; write out every parameter, without *, ** or /"
            )


def _resolve_hints(function: Callable[..., Any], owner: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"tool {owner}: an annotation names {error.name!r}, which its module does not define; "
            "import or define it at module level"
        ) from error


def _injections(
    function: Callable[..., Any], hints: Mapping[str, Any]
) -> dict[str, Callable[[Tool], Any]]:
    """Find the parameters that get the tool or its binding instead of a model's argument."""
    found: dict[str, Callable[[Tool], Any]] = {}
    for name in inspect.signature(function).parameters:
        hint = hints.get(name, Any)
        if hint is Binding:
            found[name] = lambda tool: tool.binding
        elif (isinstance(hint, type) and issubclass(hint, Tool)) or (
            name == "tool" and hint is Any
        ):
            found[name] = lambda tool: tool
    return found


def _arguments_model(
    function: Callable[..., Any], owner: str, hints: Mapping[str, Any], hidden: Any
) -> type[Any]:
    """Make the pydantic model of a function's arguments.

    Fields have names of their own, so that no parameter name can collide with pydantic's.
    """
    import pydantic
    from pydantic.fields import FieldInfo

    texts = parameter_texts(function.__doc__)
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        name = parameter.name
        if name in hidden:
            continue
        if name not in hints:
            raise DefinitionError(f"tool {owner}: parameter {name!r} has no type; annotate it")
        if isinstance(parameter.default, FieldInfo):
            raise DefinitionError(
                f"tool {owner}: parameter {name!r} has a Field as its default; "
                "write Annotated[type, Field(...)] and a plain default"
            )
        settings: dict[str, Any] = {"alias": name}
        if parameter.default is not parameter.empty:
            settings["default"] = parameter.default
        if name in texts and FieldInfo.from_annotation(hints[name]).description is None:
            settings["description"] = texts[name]
        fields[f"field_{index}"] = (hints[name], pydantic.Field(**settings))
    try:
        return pydantic.create_model(
            function.__name__,
            __config__=pydantic.ConfigDict(extra="forbid"),
            __module__=function.__module__,
            **fields,
        )
    except pydantic.errors.PydanticUserError as error:
        raise DefinitionError(f"tool {owner}: a parameter's type has no schema: {error}") from error
