"""Swarms declared at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Self

from littleghost.assembly import Assembly
from littleghost.builders.base import Builder
from littleghost.builders.form import FORMS, Declared, Form, Part
from littleghost.builders.reading import Reader
from littleghost.builders.writing import Writer
from littleghost.errors import DefinitionError
from littleghost.swarm import Member, Swarm

_FLAGS = ("name", "history", "context")
_BOUNDS = ("max_steps", "max_handoff_repeats")
_OPTIONS = frozenset(item.name for item in fields(Member)) - {"agent"}


class SwarmBuilder(Builder):
    """Declares a swarm at run time; see `Swarm` for what it may be told."""

    kind = "swarm"

    def member(self, agent: Any, **options: Any) -> Self:
        """Add an agent.

        Args:
            agent: An agent class, a builder, or a `Member`.
            options: Those of `Member`: name, history, context, timeout_s, retries, retry_on,
                retry_delay_s.

        Raises:
            DefinitionError: There is no such option.
        """
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown or (options and isinstance(agent, Member)):
            raise DefinitionError(
                f"{self!r}.member: no option {', '.join(unknown or options)} here; "
                f"use {', '.join(sorted(_OPTIONS))}, or a Member alone"
            )
        return self._add(
            "members", agent if isinstance(agent, Member) else Member(agent, **options)
        )

    def start(self, member: Any) -> Self:
        """Say which member gets the caller's message: an id, a class or a builder."""
        return self._set("start", member)

    def handoff(self, source: Any, targets: Any) -> Self:
        """Let one member hand off to others; ids, classes or builders.

        Args:
            source: Who hands off.
            targets: To whom: one, or a list.
        """
        several = tuple(targets) if isinstance(targets, list | tuple) else (targets,)
        return self._put("handoffs", source, several, "handoff: the source")

    def max_steps(self, count: int) -> Self:
        """Bound how many steps members may take in all."""
        return self._set("max_steps", count)

    def max_handoff_repeats(self, count: int) -> Self:
        """Bound how often one member may hand off to the same other."""
        return self._set("max_handoff_repeats", count)


def _settle(declared: Declared, part: Part) -> Declared:
    settled = dict(declared)
    made: dict[int, Any] = {}

    def settle(value: Any, where: str) -> Any:
        # One builder is one class, wherever it is named.
        if not isinstance(value, Builder):
            return value
        if id(value) not in made:
            made[id(value)] = part(value, where)
        return made[id(value)]

    if "members" in declared:
        settled["members"] = [
            replace(member, agent=settle(member.agent, f"members[{index}]"))
            for index, member in enumerate(declared["members"])
        ]
    if "start" in declared:
        settled["start"] = settle(declared["start"], "start")
    if "handoffs" in declared:
        settled["handoffs"] = {
            settle(source, "handoff"): tuple(settle(target, "handoff") for target in targets)
            for source, targets in declared["handoffs"].items()
        }
    return settled


def _write(declared: Declared, writer: Writer) -> dict[str, Any]:
    written: dict[str, Any] = {
        name: writer.literal(declared[name], name) for name in _BOUNDS if name in declared
    }
    if "members" in declared:
        written["members"] = [
            {
                "agent": writer.assembly(member.agent, f"members[{index}]"),
                **{name: writer.literal(getattr(member, name), name) for name in _FLAGS},
                **writer.policy(member, f"members[{index}]"),
            }
            for index, member in enumerate(declared["members"])
        ]
    if "start" in declared:
        written["start"] = _write_who(declared["start"], writer, "start")
    if "handoffs" in declared:
        written["handoffs"] = [
            [
                _write_who(source, writer, "handoff"),
                [_write_who(to, writer, "handoff") for to in targets],
            ]
            for source, targets in declared["handoffs"].items()
        ]
    return written


def _write_who(reference: Any, writer: Writer, where: str) -> dict[str, Any]:
    if isinstance(reference, Member):
        reference = reference.id
    if isinstance(reference, type) and issubclass(reference, Assembly):
        return {"agent": writer.assembly(reference, where)}
    return {"id": writer.literal(reference, where)}


def _read(data: Mapping[str, Any], reader: Reader) -> Declared:
    declared: Declared = {name: data[name] for name in _BOUNDS if name in data}
    if "members" in data:
        declared["members"] = [
            Member(
                reader.assembly(item["agent"]),
                **{name: item[name] for name in _FLAGS},
                **reader.policy(item),
            )
            for item in data["members"]
        ]
    if "start" in data:
        declared["start"] = _read_who(data["start"], reader)
    if "handoffs" in data:
        declared["handoffs"] = {
            _read_who(source, reader): tuple(_read_who(to, reader) for to in targets)
            for source, targets in data["handoffs"]
        }
    return declared


def _read_who(data: Mapping[str, Any], reader: Reader) -> Any:
    return reader.assembly(data["agent"]) if "agent" in data else data["id"]


def _attributes(base: Any, declared: Declared) -> Declared:
    body: Declared = {name: declared[name] for name in _BOUNDS if name in declared}
    if "start" in declared:
        body["start"] = declared["start"]
    elif base.start is not None:
        # By id, since a class may be a member a second time now.
        body["start"] = base.first()
    names = base.roster() if base.handoffs else ()
    inherited = {name: [target["id"] for target in base.targets(name)] for name in names}
    return {
        **body,
        "members": [*base.members, *declared.get("members", ())],
        "handoffs": {
            **{source: targets for source, targets in inherited.items() if targets},
            **declared.get("handoffs", {}),
        },
    }


FORMS[SwarmBuilder.kind] = Form(Swarm, _settle, _write, _read, _attributes)
