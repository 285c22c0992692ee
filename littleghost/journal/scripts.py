"""Loads the Lua scripts and runs them; the one place that names EVALSHA.

A script is the parts in `lua/parts/` followed by its own file. The parts begin with constants that
depend on the settings, so two processes with the same settings share the scripts' hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any, TypeVar, cast

from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterError,
    ConnectionError,  # noqa: A004 - redis-py's own name
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    TimeoutError,  # noqa: A004 - redis-py's own name
    TryAgainError,
)

from littleghost.errors import JournalError, JournalUnavailableError
from littleghost.journal import keys
from littleghost.journal.connection import REDIS_ERRORS, AnyPipeline, Client, add_script
from littleghost.usage import BUCKETS

_PARTS = ("base", "tasks", "usage", "bury", "joins", "clear", "finish", "state")
_PASSING = (
    ConnectionError,
    TimeoutError,
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    # A cluster whose nodes change their duties: slots are away, elsewhere, or on their way.
    ClusterError,
    AskError,
    TryAgainError,
    RedisClusterException,
)
_PASSING_TEXTS = (
    "LOADING",
    "OOM",
    "READONLY",
    "MASTERDOWN",
    "MISCONF",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "UNBLOCKED",
)
# How long the answer of a commit is kept: longer than redis-py repeats a command whose reply
# was lost.
ANSWER_S = 120

# Scripts that are called by their hash alone, in pipelines.
PIPELINED = ("create", "emit", "sweep")

T = TypeVar("T")


def source(name: str, constants: str) -> str:
    """Give the whole text of a script."""
    folder = resources.files("littleghost.journal") / "lua"
    parts = [(folder / "parts" / f"{part}.lua").read_text("utf-8") for part in _PARTS]
    return "\n".join([constants, *parts, (folder / f"{name}.lua").read_text("utf-8")])


# A script names one key and touches others of its slot. While the slot is moved to another node,
# some are here and some there: a script would stop half-way, or take what is not there yet for
# missing. A command on two keys that never exist is refused then, on both nodes, before any write.
_WHOLE_SLOT = """
local TAG = KEYS[1]:match('^lg:{%d+}:')
if TAG then redis.call('EXISTS', TAG .. 'no', TAG .. 'none') end"""


def constants(
    *,
    envelope: str | None,
    push_prefix: str,
    grace_ms: int,
    retention_s: int,
    session_s: int,
    is_cluster: bool = False,
) -> str:
    """Write the constants that the scripts begin with.

    Args:
        envelope: The broker message with placeholders, or None when workers publish themselves.
        push_prefix: What kombu puts before queue names.
        grace_ms: Age at which an unclaimed task is looked at.
        retention_s: How long a finished run is kept.
        session_s: How long a session is kept.
        is_cluster: Whether slots may be moved between servers.
    """
    push = "false" if envelope is None else f"[==[{push_prefix}]==]"
    return "\n".join(
        [
            f"local ENVELOPE = [==[{envelope or ''}]==]",
            f"local PUSH = {push}",
            f"local GRACE_MS, RETENTION_S, SESSION_S = {grace_ms}, {retention_s}, {session_s}",
            f"local ANSWER_S, SCHEMA = {ANSWER_S}, '{keys.SCHEMA_VERSION}'",
            f"local BUCKETS = {{ {', '.join(map(repr, BUCKETS))} }}",
            *([_WHOLE_SLOT] if is_cluster else []),
        ]
    )


def translate(error: Exception) -> JournalError:
    """Turn redis-py's error into ours: what passes by itself is `JournalUnavailableError`."""
    text = str(error)
    passing = (
        isinstance(error, _PASSING)
        or text.startswith(_PASSING_TEXTS)
        or ("OOM" in text and isinstance(error, ResponseError))
        or "non local key" in text
    )
    if isinstance(error, AskError):
        return JournalUnavailableError(
            f"Redis has the key elsewhere ({text[:300]}); a Redis Cluster needs redis+cluster:// "
            "in LITTLEGHOST_REDIS_URL"
        )
    if passing:
        return JournalUnavailableError(f"Redis did not take the command: {text[:300]}")
    return JournalError(f"Redis refused the command: {text[:300]}")


def guarded(work: Callable[[], T]) -> T:
    """Do something with Redis and let only our errors out."""
    try:
        return work()
    except REDIS_ERRORS as error:
        raise translate(error) from error


class Scripts:
    """The journal's scripts on one client."""

    def __init__(self, client: Client, header: str) -> None:
        self._client = client
        self._header = header
        self._loaded: dict[str, tuple[str, str]] = {}

    def _script(self, name: str) -> tuple[str, str]:
        known = self._loaded.get(name)
        if known is None:
            text = source(name, self._header)
            known = (hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), text)
            self._loaded[name] = known
        return known

    def run(self, name: str, key: str, *args: str | bytes | int | float) -> list[Any]:
        """Run a script on one key.

        Raises:
            JournalUnavailableError: Redis did not answer or cannot write now.
            JournalError: Redis refused the script.
        """
        digest, text = self._script(name)
        try:
            try:
                answer = self._client.evalsha(digest, 1, key, *args)
            except NoScriptError:
                answer = self._client.eval(text, 1, key, *args)
        except REDIS_ERRORS as error:
            raise translate(error) from error
        return cast("list[Any]", answer)

    def load(self) -> None:
        """Load every script, so that pipelines may use hashes alone."""
        for name in PIPELINED:
            guarded(lambda name=name: self._client.script_load(self._script(name)[1]))

    def queue(self, pipeline: AnyPipeline, name: str, key: str, *args: str | int) -> None:
        """Add a script call to a pipeline."""
        add_script(pipeline, self._script(name)[0], key, *args)
