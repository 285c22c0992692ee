"""What the kinds of builders have in common below their surface: declared, written, read, made.

`declared` is what was said to a builder, by class attribute. Nothing of its base is in it: a class
is made of the base and what is declared on top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from littleghost.assembly import Assembly

if TYPE_CHECKING:
    from littleghost.builders.reading import Reader
    from littleghost.builders.writing import Writer

Declared: TypeAlias = dict[str, Any]
# Gives the class for what was declared as a builder or a class.
Part: TypeAlias = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind of assembly is declared at run time.

    Attributes:
        family: The class that all assemblies of the kind derive from.
        settle: Replaces builders in what is declared by classes.
        write: Gives what is declared as JSON.
        read: Gives what is declared, from JSON.
        attributes: Gives the class attributes of what is declared on top of a base.
    """

    family: type[Assembly]
    settle: Callable[[Declared, Part], Declared]
    write: Callable[[Declared, Writer], dict[str, Any]]
    read: Callable[[Mapping[str, Any], Reader], Declared]
    attributes: Callable[[Any, Declared], Declared]


FORMS: dict[str, Form] = {}


def form_of(cls: type[Assembly]) -> Form:
    """Give the form of a class's kind."""
    return FORMS[cls.kind]
