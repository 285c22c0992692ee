"""The command line: `littleghost VERB`."""

from littleghost.cli.entry import main

__all__ = ["main"]
