"""Workflows declared at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from littleghost.builders.base import Builder
from littleghost.builders.form import FORMS, Declared, Form, Part
from littleghost.builders.reading import Reader
from littleghost.builders.writing import Writer
from littleghost.errors import DefinitionError
from littleghost.workflow import Workflow


class WorkflowBuilder(Builder):
    """Declares a workflow at run time: a function of the workflow, in place of the method."""

    kind = "workflow"

    def perform(self, function: Callable[[Any], Any]) -> Self:
        """Set what the workflow does.

        Args:
            function: Called with the workflow, as its method `perform` would be.
        """
        return self._set("perform", function)


def _settle(declared: Declared, part: Part) -> Declared:
    del part
    return declared


def _write(declared: Declared, writer: Writer) -> dict[str, Any]:
    if "perform" not in declared:
        return {}
    return {"perform": writer.function(declared["perform"], "perform")}


def _read(data: Mapping[str, Any], reader: Reader) -> Declared:
    return {"perform": reader.function(data["perform"])} if "perform" in data else {}


def _attributes(base: Any, declared: Declared) -> Declared:
    del base
    if "perform" in declared and not callable(declared["perform"]):
        raise DefinitionError(f"perform is {declared['perform']!r}; use a function of the workflow")
    return {"perform": declared["perform"]} if "perform" in declared else {}


FORMS[WorkflowBuilder.kind] = Form(Workflow, _settle, _write, _read, _attributes)
