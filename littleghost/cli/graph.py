"""`littleghost graph ASSEMBLY`."""

from __future__ import annotations

import click

from littleghost import registry
from littleghost.cli.find import find_assembly
from littleghost.cli.options import Options, verb
from littleghost.cli.outline import outline
from littleghost.cli.output import json_line, say
from littleghost.graph import Graph


@verb("graph")
@click.argument("assembly")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid"]),
    default="text",
    show_default=True,
    help="text: lines, for any assembly; mermaid: a flowchart, for graphs.",
)
def command(options: Options, *, assembly: str, form: str) -> None:
    """Show what an assembly is made of; needs no Redis.

    ASSEMBLY is module:Class, or the id or class name of one that -A imports.
    """
    options.load()
    found = find_assembly(assembly)
    found.check()
    is_graph = issubclass(found, Graph)
    if form == "mermaid" and not is_graph:
        raise click.UsageError(
            f"{found.id()!r} is a {found.kind}, and only a graph has a flowchart; use --format text"
        )
    if options.as_json:
        json_line(
            {
                "assembly": registry.name_of(found),
                "kind": found.kind,
                "definition": dict(found.definition()),
                "mermaid": found.to_mermaid() if is_graph else None,
            }
        )
    elif form == "mermaid":
        say(found.to_mermaid().rstrip("\n"))
    else:
        for line in outline(found):
            say(line)
