"""Graphs declared at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self, cast

from littleghost.builders.base import Builder
from littleghost.builders.form import FORMS, Declared, Form, Part
from littleghost.builders.reading import Reader
from littleghost.builders.writing import Writer
from littleghost.engine.decide.graph import Condition, Mapper
from littleghost.errors import DefinitionError
from littleghost.graph import Edge, ErrorEdge, Graph, Node
from littleghost.graph_parts import Classes

_BOUNDS = ("start", "finish", "max_steps", "max_concurrency")
_OPTIONS = frozenset(item.name for item in fields(Node)) - {"assembly"}
Names = str | Sequence[str]


class GraphBuilder(Builder):
    """Declares a graph at run time; see `Graph` for what it may be told."""

    kind = "graph"

    def node(self, name: str, assembly: Any, **options: Any) -> Self:
        """Add a node.

        Args:
            name: Its name; that of a node of the base replaces that.
            assembly: What runs: an assembly class, a builder, or a `Node`.
            options: Those of `Node`: history, context, input, timeout_s, retries, retry_on,
                retry_delay_s.

        Raises:
            DefinitionError: There is no such option.
        """
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown or (options and isinstance(assembly, Node)):
            raise DefinitionError(
                f"{self!r}.node({name!r}): no option {', '.join(unknown or options)} here; "
                f"use {', '.join(sorted(_OPTIONS))}, or a Node alone"
            )
        node = assembly if isinstance(assembly, Node) else Node(assembly, **options)
        return self._put("nodes", name, node, "node")

    def start(self, name: str) -> Self:
        """Say which node runs first."""
        return self._set("start", name)

    def finish(self, name: str) -> Self:
        """Say which node's result is the graph's."""
        return self._set("finish", name)

    def edge(
        self,
        source: Names,
        target: Names,
        *,
        when: Condition | None = None,
        input: Mapper | None = None,
        max_concurrency: int | None = None,
    ) -> Self:
        """Add a way on from a node that ended well; see `Edge`."""
        edge = Edge(_fixed(source), _fixed(target), when, input, max_concurrency)
        return self._add("edges", edge)

    def error_edge(
        self, source: str, target: str, *, on: Classes, input: Mapper | None = None
    ) -> Self:
        """Add a way on from a node that failed, after its retries; see `ErrorEdge`."""
        return self._add("edges", ErrorEdge(source, target, _fixed(on), input))

    def max_steps(self, count: int) -> Self:
        """Bound how many times nodes may run in all, branches included."""
        return self._set("max_steps", count)

    def max_concurrency(self, count: int) -> Self:
        """Bound how many branches of a fork may run at once."""
        return self._set("max_concurrency", count)

    def to_mermaid(self) -> str:
        """Draw the graph as a Mermaid flowchart; checks it first."""
        return cast("str", self.build().to_mermaid())


def _fixed(value: Any) -> Any:
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, list) else value


def _settle(declared: Declared, part: Part) -> Declared:
    if "nodes" not in declared:
        return declared
    nodes = {
        name: replace(node, assembly=part(node.assembly, f"nodes[{name!r}]"))
        for name, node in declared["nodes"].items()
    }
    return {**declared, "nodes": nodes}


def _write(declared: Declared, writer: Writer) -> dict[str, Any]:
    written: dict[str, Any] = {
        name: writer.literal(declared[name], name) for name in _BOUNDS if name in declared
    }
    if "nodes" in declared:
        written["nodes"] = [
            [writer.literal(name, "nodes"), _write_node(node, writer, f"nodes[{name!r}]")]
            for name, node in declared["nodes"].items()
        ]
    if "edges" in declared:
        written["edges"] = [
            _write_edge(edge, writer, f"edges[{index}]")
            for index, edge in enumerate(declared["edges"])
        ]
    return written


def _write_node(node: Node, writer: Writer, where: str) -> dict[str, Any]:
    return {
        "assembly": writer.assembly(node.assembly, where),
        "history": bool(node.history),
        "context": bool(node.context),
        "input": writer.function(node.input, f"{where}: input"),
        **writer.policy(node, where),
    }


def _write_edge(edge: Edge | ErrorEdge, writer: Writer, where: str) -> dict[str, Any]:
    common = {
        "source": writer.literal(edge.source, f"{where}: source"),
        "target": writer.literal(edge.target, f"{where}: target"),
        "input": writer.function(edge.input, f"{where}: input"),
    }
    if isinstance(edge, ErrorEdge):
        return {**common, "on": writer.classes(edge.on, f"{where}: on")}
    return {
        **common,
        "when": writer.function(edge.when, f"{where}: when"),
        "max_concurrency": writer.literal(edge.max_concurrency, f"{where}: max_concurrency"),
    }


def _read(data: Mapping[str, Any], reader: Reader) -> Declared:
    declared: Declared = {name: data[name] for name in _BOUNDS if name in data}
    if "nodes" in data:
        declared["nodes"] = {
            name: Node(
                reader.assembly(item["assembly"]),
                history=item["history"],
                context=item["context"],
                input=reader.function(item["input"]),
                **reader.policy(item),
            )
            for name, item in data["nodes"]
        }
    if "edges" in data:
        declared["edges"] = [_read_edge(item, reader) for item in data["edges"]]
    return declared


def _read_edge(data: Mapping[str, Any], reader: Reader) -> Edge | ErrorEdge:
    source, target = _fixed(data["source"]), _fixed(data["target"])
    mapper = reader.function(data["input"])
    if "on" in data:
        return ErrorEdge(source, target, reader.classes(data["on"]), mapper)
    return Edge(source, target, reader.function(data["when"]), mapper, data["max_concurrency"])


def _attributes(base: Any, declared: Declared) -> Declared:
    nodes: Mapping[Any, Any] = declared.get("nodes", {})
    edges: Sequence[Any] = declared.get("edges", ())
    return {
        **{name: declared[name] for name in _BOUNDS if name in declared},
        "nodes": {**base.nodes, **nodes},
        "edges": [*base.edges, *edges],
    }


FORMS[GraphBuilder.kind] = Form(Graph, _settle, _write, _read, _attributes)
