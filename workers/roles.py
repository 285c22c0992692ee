"""The roles of this team's workers, and the command that starts each.

    python -m workers.roles turns      prints the command and becomes that worker

A team adds its own roles here, such as one for tools that need a GPU and name a queue of their own.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

from littleghost.celery.roles import ROLES as STANDARD
from littleghost.celery.roles import Role, celery_command
from littleghost.settings import Settings

ROLES: dict[str, Role] = {**STANDARD}


def command(name: str, settings: Settings) -> list[str]:
    """Write the command of a role."""
    return celery_command(ROLES[name], settings, app="workers.app")


def become(name: str) -> NoReturn:
    """Print a role's command and turn this process into that worker."""
    line = command(name, Settings.from_environment())
    sys.stderr.write(shlex.join(line) + "\n")
    sys.stderr.flush()
    os.execv(line[0], line)


def main(arguments: Sequence[str]) -> int:
    """Become the worker of the named role."""
    if len(arguments) == 1 and arguments[0] in ROLES:
        become(arguments[0])
    sys.stderr.write(f"usage: python -m workers.roles {'|'.join(ROLES)}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
