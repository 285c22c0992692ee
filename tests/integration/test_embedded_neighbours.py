"""The embedded worker leaves the Celery of the application around it alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.fleet import ROOT

pytestmark = [pytest.mark.redis, pytest.mark.worker]

BESIDE_AN_APP = """
from celery import Celery, current_app, shared_task
own = Celery("own", broker="memory://")
from littleghost import Agent, models
models().connect("x", "scripted", script=["hello"])
class Hello(Agent):
    model = "x:m"
assert Hello.ask("Hi").response == "hello"
print("current app:", current_app.main)
@shared_task
def later(): ...
print("shared tasks go to:", later.app.main)
"""

IN_MAIN = """
import os, sys, threading
from littleghost import Agent, models, tool
from littleghost.errors import *
models().connect("x", "scripted", script=["hello"])
class Hello(Agent):
    model = "x:m"
run = Hello.ask("Hi")
print(run.response, run.assembly)
child = os.fork()
if child == 0:
    os._exit(0 if Hello.ask("Hi").response == "hello" else 1)
print("child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("threads that keep the process:", [t.name for t in threading.enumerate()
    if not t.daemon and t is not threading.main_thread()])
"""


WITH_A_BAD_NEIGHBOUR = """
from littleghost import Agent, models
models().connect("x", "scripted", script=["hello"])
class Hello(Agent):
    model = "x:m"
class Wrong(Agent):
    tools = "none"
for _ in range(2):
    try:
        print("answer:", Hello.ask("Hi").response)
    except BaseException as error:
        print(type(error).__name__, error)
"""


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if "LITTLEGHOST" not in name}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_class_of_the_main_script_works_embedded_and_after_a_fork() -> None:
    answer = python(IN_MAIN)
    assert answer.returncode == 0, answer.stderr
    assert "hello __main__:Hello" in answer.stdout
    assert "child: 0" in answer.stdout
    assert "embedded Redis and worker started" in answer.stderr
    assert answer.stderr.count("started in") == 1, answer.stderr
    assert all(line.startswith("littleghost: ") for line in answer.stderr.splitlines())


def test_the_applications_own_celery_app_stays_the_current_one() -> None:
    answer = python(BESIDE_AN_APP)
    assert answer.returncode == 0, answer.stderr
    assert "current app: own" in answer.stdout
    assert "shared tasks go to: own" in answer.stdout


def test_a_wrong_definition_is_an_error_of_the_call_and_no_exit() -> None:
    answer = python(WITH_A_BAD_NEIGHBOUR)
    assert answer.returncode == 0, answer.stderr
    first, second = answer.stdout.splitlines()
    assert "Wrong.tools" in first + answer.stderr
    assert first.startswith("DefinitionError")
    assert second == first


def test_embedded_mode_can_be_forbidden() -> None:
    answer = python(IN_MAIN, LITTLEGHOST_EMBEDDED="0")
    assert answer.returncode != 0
    assert "LITTLEGHOST_REDIS_URL" in answer.stderr


def test_nothing_is_left_when_the_process_ends(tmp_path: object) -> None:
    """P11: neither the private Redis nor its directory."""
    code = IN_MAIN + "\nfrom littleghost.wiring import runtime\nprint(runtime().settings.redis_url)"
    answer = python(code)
    socket = answer.stdout.splitlines()[-1].removeprefix("unix://")
    assert socket.endswith("redis.sock")
    assert not os.path.exists(os.path.dirname(socket))  # noqa: PTH110, PTH120
