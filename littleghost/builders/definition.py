"""From what is declared to a class and its definition, and from a definition to the class again.

A definition is JSON: `{"v", "kind", "id", "needs", "base"?, "description"?, "limits"?, "fields"}`.
`needs` names the built assemblies inside it; `fields` is the kind's own. Its name is the hash of
its text, so two equal definitions are one, and none can be exchanged unseen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any, Final, cast

from littleghost import registry
from littleghost.assembly import Assembly
from littleghost.builders import references
from littleghost.builders.form import FORMS, Declared, form_of
from littleghost.builders.reading import Reader
from littleghost.builders.writing import Writer
from littleghost.engine.opening import MAX_DEPTH
from littleghost.errors import DefinitionError, LittleGhostError, UnknownAssemblyError
from littleghost.json_values import JsonLimits, dumps, loads
from littleghost.limits import Limits
from littleghost.registry import BUILT, MAX_DEFINITIONS, Built, ReadDefinitions

VERSION: Final = 1
MAX_BYTES: Final = 256 * 1024
_LIMITS: Final = JsonLimits(depth=70, nodes=20_000, size=MAX_BYTES)
_MODULE: Final = "littleghost.builders"


def name_of_text(text: str) -> str:
    """Give the registered name of the assembly that a definition describes."""
    return BUILT + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def label_of(kind: str, id: str) -> str:
    """Give what error messages call a built class: the call that began its builder."""
    return f"{kind.capitalize()}Builder({id!r})"


def write(id: str, base: type[Assembly], declared: Declared, problems: list[str]) -> Built:
    """Write the definition of what is declared on top of a base.

    Args:
        problems: Gets what cannot be written, each with its field.
    """
    writer = Writer()
    form = form_of(base)
    document: dict[str, Any] = {"v": VERSION, "kind": base.kind, "id": id}
    if base is not form.family:
        document["base"] = writer.base(base, "base")
    if "description" in declared:
        document["description"] = writer.literal(declared["description"], "description")
    if isinstance(declared.get("limits"), Limits):
        document["limits"] = writer.literal(declared["limits"].to_json(), "limits")
    document["fields"] = form.write(declared, writer)
    document["needs"] = sorted(writer.needs)
    problems += writer.problems
    try:
        text = dumps(document)
    except ValueError as error:
        problems.append(f"its definition cannot be written: {error}")
        text = ""
    size = len(text.encode())
    if size > MAX_BYTES:
        problems.append(f"its definition takes {size} bytes; {MAX_BYTES} are allowed")
    return Built(name_of_text(text), text, tuple(writer.local))


def make(id: str, base: type[Assembly], declared: Declared, built: Built) -> Any:
    """Make the class; it is not checked yet, and not known by its name.

    Raises:
        DefinitionError: Something declared cannot be an attribute.
    """
    label = label_of(base.kind, id)
    body: dict[str, Any] = {
        **{name: declared[name] for name in ("description", "limits") if name in declared},
        **form_of(base).attributes(base, declared),
        "assembly_id": id,
        "built": built,
        "__module__": _MODULE,
        "__qualname__": label,
    }
    family: Any = type(base)
    return family(label, (base,), body)


def learn(name: str, read: ReadDefinitions) -> None:
    """Make a built assembly known from the definitions that a run keeps; see `registry.learn`."""
    _Learner(read).make(name, 0)


class _Learner:
    """Makes classes of one run's definitions; what it made lives at least as long as it does."""

    def __init__(self, read: ReadDefinitions) -> None:
        self._read = read
        self._texts: dict[str, str] = {}
        self._made: dict[str, Any] = {}

    def make(self, name: str, depth: int) -> Any:
        known = self._made.get(name) or registry.find_built(name)
        if known is not None:
            self._made[name] = known
            return known
        if depth > MAX_DEPTH:
            raise DefinitionError(f"{name!r} is {MAX_DEPTH} definitions deep already; nest less")
        self._fetch([name])
        if name not in self._texts:
            raise UnknownAssemblyError(f"the run keeps no definition of {name!r}")
        try:
            made = self._class_of(name, self._texts[name], depth)
            made.check()
        except LittleGhostError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise DefinitionError(f"the definition {name!r} is malformed: {error!r}") from error
        registry.keep(made)
        self._made[name] = made
        return made

    def _fetch(self, names: list[str]) -> None:
        missing = [
            name for name in names if name not in self._texts and registry.find_built(name) is None
        ]
        if not missing:
            return
        if len(self._texts) + len(missing) > MAX_DEFINITIONS:
            raise DefinitionError(f"the run needs more than {MAX_DEFINITIONS} definitions")
        for name, text in self._read(missing).items():
            size = len(text)
            if size > MAX_BYTES:
                raise DefinitionError(f"the definition {name!r} has {size} bytes; it is forged")
            if name_of_text(text) != name:
                raise DefinitionError(
                    f"the definition {name!r} has another content than its name says; "
                    "it was changed in Redis"
                )
            self._texts[name] = text

    def _class_of(self, name: str, text: str, depth: int) -> Any:
        document = cast("Any", loads(text, limits=_LIMITS))
        if document["v"] != VERSION:
            raise DefinitionError(
                f"the definition {name!r} is of version {document['v']!r:.20}, this worker reads "
                f"{VERSION}; use workers of the version that wrote it"
            )
        self._fetch([need for need in document["needs"] if registry.is_built(need)])

        def assembly(reference: Any) -> Any:
            if registry.is_built(reference):
                return self.make(reference, depth + 1)
            return registry.lookup(str(reference))

        return _read(document, Reader(assembly), Built(name, text))


def _read(document: Mapping[str, Any], reader: Reader, built: Built) -> Any:
    form = FORMS[document["kind"]]
    base: Any = form.family
    if "base" in document:
        reference = document["base"]
        base = (
            reader.assembly(reference)
            if registry.is_built(reference)
            else references.find_base(reference, form.family)
        )
        if not issubclass(base, form.family):
            raise DefinitionError(f"the base {reference!r} is no {form.family.__name__}")
    if not isinstance(document["fields"], dict):
        raise TypeError("fields must be an object")
    declared = form.read(cast("dict[str, Any]", document["fields"]), reader)
    if "description" in document:
        declared["description"] = document["description"]
    if "limits" in document:
        known = {item.name for item in fields_of(Limits)}
        told = cast("Mapping[str, Any]", document["limits"])
        declared["limits"] = Limits(**{key: told[key] for key in told if key in known})
    return make(check_id(document["id"]), base, declared, built)


def check_id(id: Any) -> str:
    """Check an assembly id, which is also what messages call the class by.

    Raises:
        DefinitionError: It is no short text.
    """
    if not isinstance(id, str) or not id or len(id) > 64:
        raise DefinitionError(
            f"a builder's id is {id!r:.80}; use up to 64 lower-case letters, digits, '_' and '-'"
        )
    return id
