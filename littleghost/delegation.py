"""An assembly offered to a model as a tool."""

from __future__ import annotations

from typing import Any, ClassVar

from littleghost.errors import DefinitionError
from littleghost.tool import Tool


class AssemblyTool(Tool):
    """A tool whose call is another assembly's work; made by `as_tool`.

    Attributes:
        assembly: The class that does the work.
        preserve_context: Whether each call goes on with the conversation of those before it, one
            after the other.
    """

    description = "Delegate a task."
    input_schema: ClassVar[Any] = {
        "type": "object",
        "properties": {"input": {"type": "string", "minLength": 1}},
        "required": ["input"],
        "additionalProperties": False,
    }
    # Starting a participant takes effect only when it is recorded, so it may always be repeated.
    idempotent = True
    assembly: ClassVar[Any] = None
    preserve_context: ClassVar[bool] = False

    def call(self, input: Any) -> Any:
        """Refuse: the engine starts the assembly instead of calling the tool."""
        raise DefinitionError(
            f"tool {self.name!r} is another assembly's work and can only be called inside a run"
        )


def assembly_tool(
    assembly: Any, name: str | None, description: str | None, **attributes: Any
) -> type[AssemblyTool]:
    """Make the tool class of an assembly; see `Assembly.as_tool`."""
    chosen = name or assembly.id()
    return type(
        f"{assembly.__name__}Tool",
        (AssemblyTool,),
        {
            "__module__": assembly.__module__,
            "name": chosen,
            "description": description or assembly.description or f"Delegate a task to {chosen}.",
            "assembly": assembly,
            **attributes,
        },
    )
