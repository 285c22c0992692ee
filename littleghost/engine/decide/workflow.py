"""What a workflow does next: its own code says so, run from the top with what is recorded."""

from __future__ import annotations

import logging
from typing import Any

from littleghost.engine.commands import Append, Command, Complete, Fail, SetText
from littleghost.engine.decide.agent import record_of
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.replay import Replay, SuspendedError, failure_of
from littleghost.engine.replay_steps import Ended
from littleghost.engine.view import binding_of
from littleghost.errors import ProtocolError
from littleghost.json_text import JsonLimits, clean_text, utf8_size
from littleghost.json_values import check_json, dumps
from littleghost.messages import Message, assistant
from littleghost.providers.base import CallControl

logger = logging.getLogger("littleghost.engine")
MAX_BYTES = 1_000_000
VALUE_LIMITS = JsonLimits(depth=64, nodes=100_000, size=MAX_BYTES)


def decide(lease: Lease, assembly: Any, env: Collaborators) -> list[Command]:
    """Run the workflow's code until it waits, returns or fails."""
    replay = Replay(lease, env, assembly.__qualname__)
    failed: Exception | None = None
    answer: dict[str, Any] = {}
    try:
        workflow = assembly.bind(binding_of(lease, CallControl(lease.left_s)))
        messages = [item for item in lease.records if isinstance(item, Message)]
        returned = workflow.conduct(replay, messages)
        replay.returned()
        answer = _answer(returned, assembly.__qualname__)
    except SuspendedError:
        pass
    except Exception as error:  # noqa: BLE001 - the application's code; its error ends the run
        failed = error
    failed = replay.mismatch or failed
    commands = replay.commands()
    if replay.suspended:
        return commands
    if failed is not None:
        logger.warning(
            "workflow %s of run %s failed", lease.participant, lease.run_id, exc_info=failed
        )
        return [*commands, Fail(failure_of(failed).to_json())]
    return [*commands, *_complete(lease, replay.appended, answer)]


def _answer(returned: Any, owner: str) -> dict[str, Any]:
    """Check what the code returned.

    Args:
        returned: Text, JSON, or how a child ended that was returned.

    Raises:
        ProtocolError: It is no answer.
    """
    if isinstance(returned, Ended):
        result = returned.result or {}
        answer = {"stop_reason": result.get("stop_reason", "end_turn")}
        returned = result.get("output")
        return {**answer, **({"text": returned} if isinstance(returned, str) else {"v": returned})}
    if isinstance(returned, str):
        if utf8_size(returned) > MAX_BYTES:
            raise ProtocolError(f"{owner}.perform returned text of more than {MAX_BYTES} bytes")
        return {"stop_reason": "end_turn", "text": clean_text(returned)}
    if returned is None:
        raise ProtocolError(
            f"{owner}.perform returned None; return text, JSON or what self.invoke(…) gave"
        )
    try:
        value = check_json(returned, where="$", limits=VALUE_LIMITS)
        size = utf8_size(dumps({"v": value}))
    except ValueError as error:
        raise ProtocolError(
            f"{owner}.perform returned {type(returned).__name__}, which is no answer: {error}"
        ) from error
    if size > MAX_BYTES:
        raise ProtocolError(f"{owner}.perform returned JSON of more than {MAX_BYTES} bytes")
    return {"stop_reason": "structured_result", "v": value}


def _complete(lease: Lease, appended: int, answer: dict[str, Any]) -> list[Command]:
    """End the workflow; its answer also stands in its list, where results look for it."""
    text = answer["text"] if "text" in answer else dumps(answer["v"])
    message = assistant(text)
    result: dict[str, Any] = {
        "stop_reason": answer["stop_reason"],
        "participant": lease.participant,
        "message": len(lease.records) + appended,
        "output": text,
    }
    if "v" in answer:
        result |= {"output": answer["v"], "value": answer["v"]}
    record = record_of(message)
    return [Append((record,), (message,)), SetText(text), Complete(result, say=record)]
