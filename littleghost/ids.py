"""Run ids, and the partition of the journal that an id belongs to.

A generated id is `PP-` and 26 characters that sort by time; `PP` is the partition, so the id alone
finds the run's keys. An id of the caller's own choice is hashed to its partition instead.
"""

from __future__ import annotations

import os
import re
import time
import zlib

from littleghost.errors import InvocationError

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_OWN_ID = re.compile(r"(\d\d)-.+")
MAX_PARTITIONS = 100


def _base32(number: int, length: int) -> str:
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def hash_partition(text: str, partitions: int) -> int:
    """Give the partition of a session or of a caller's own run id."""
    return zlib.crc32(text.encode("utf-8")) % partitions


def new_run_id(partition: int) -> str:
    """Make a run id in a partition: 48 bits of milliseconds, then 80 random bits."""
    stamp = int(time.time() * 1000) & (2**48 - 1)
    noise = int.from_bytes(os.urandom(10), "big")
    return f"{partition:02d}-{_base32(stamp, 10)}{_base32(noise, 16)}"


def is_run_id(text: str) -> bool:
    """Say whether a text could be a run's id."""
    return _RUN_ID.fullmatch(text) is not None


def check_run_id(run_id: object) -> str:
    """Refuse a run id that keys, logs or URLs could not carry.

    Raises:
        InvocationError: It is no text of 1 to 128 letters, digits and `_.-`.
    """
    if not isinstance(run_id, str) or not is_run_id(run_id):
        raise InvocationError(
            f"run_id {run_id!r} must be 1 to 128 letters, digits, '_', '.' or '-', "
            "and begin with a letter or digit",
            field="run_id",
        )
    return run_id


def partition_of(run_id: str, partitions: int) -> int:
    """Give the partition an id names, or the one its text hashes to."""
    match = _OWN_ID.fullmatch(run_id)
    if match and int(match.group(1)) < partitions:
        return int(match.group(1))
    return hash_partition(run_id, partitions)


def place_run(run_id: str | None, session_id: str | None, partitions: int) -> tuple[str, int]:
    """Choose a run's id and partition, so that it shares the partition of its session.

    Args:
        run_id: The caller's own id, or None for a generated one.
        session_id: The session the run continues, or None.
        partitions: How many partitions the journal has.

    Returns:
        The id the run will have, and its partition. A caller's own id gets the partition as a
        prefix when a session decides the partition; the same pair always gives the same id.
    """
    if session_id is None:
        if run_id is None:
            partition = int.from_bytes(os.urandom(2), "big") % partitions
            return new_run_id(partition), partition
        return run_id, partition_of(run_id, partitions)
    partition = hash_partition(session_id, partitions)
    return id_in(partition, run_id, partitions), partition


def id_in(partition: int, run_id: str | None, partitions: int) -> str:
    """Give an id of a partition: a new one, or the caller's own, which may get it as a prefix."""
    if run_id is None:
        return new_run_id(partition)
    if partition_of(run_id, partitions) == partition:
        return run_id
    return f"{partition:02d}-{run_id}"
