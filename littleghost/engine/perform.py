"""Performs a task: claim, act, decide, commit, and run on in place while that is fair."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from littleghost.engine import advance
from littleghost.engine.call import Call
from littleghost.engine.commands import Command, TryAgain
from littleghost.engine.decide import agent as decide
from littleghost.engine.ports import Collaborators, Lease
from littleghost.engine.slot import occupied
from littleghost.engine.turn import Turn, TurnCutError, cut_commands
from littleghost.errors import (
    CancelledError,
    CleanupError,
    ControlError,
    DeadlineExceededError,
    DefinitionChangedError,
    HandOverError,
    JournalUnavailableError,
    LittleGhostError,
    StaleAttemptError,
    UnknownAssemblyError,
    WorkerLostError,
)
from littleghost.failure import Failure
from littleghost.providers.base import CallControl

T = TypeVar("T")

logger = logging.getLogger("littleghost.engine")
# Waits between tries to reach a journal that does not answer, in seconds.
_JOURNAL_WAITS_S = (0.05, 0.2, 0.5, 1.0, 2.0, 2.0, 5.0, 5.0)
# A worker that lacks an assembly leaves the task to others this often, so long each time: during a
# deployment some workers have it already.
_UNKNOWN_TRIES, _UNKNOWN_WAIT_S = 6, 5.0


class Performer:
    """Performs tasks for one process."""

    def __init__(self, env: Collaborators) -> None:
        self._env = env
        self._warned: set[tuple[str, str]] = set()

    def perform(self, run_id: str, task_id: str, *, at_ms: int | None, queue: str) -> int:
        """Take a task if it is still to be taken, and work on the run while that is fair.

        Returns:
            How many tasks were performed; 0 when the message was stale or forged.
        """
        env = self._env
        try:
            if env.is_draining():
                # The message is used up: have another one sent, for a worker that stays.
                env.journal.publish_again(run_id, task_id)
                return 0
            lease = env.journal.claim(run_id, task_id, at_ms=at_ms, queue=queue)
        except LittleGhostError as error:
            # Nothing is lost: the task is ready in the journal and will be published again.
            logger.warning("task %s of run %s not claimed: %s", task_id, run_id, error)
            return 0
        if lease is None:
            logger.debug("task %s of run %s is gone or taken", task_id, run_id)
        done = 0
        with occupied():
            while lease is not None:
                done += 1
                may_go_on = done < env.in_place_max and not env.is_draining()
                lease = self._one(lease, may_go_on=may_go_on)
        return done

    def _one(self, lease: Lease, *, may_go_on: bool) -> Lease | None:
        env = self._env
        control = CallControl(lease.left_s)
        env.running.enter(lease, control)
        try:
            commands = self._act(lease, control)
            env.running.leave(lease)
            return self._commit(lease, commands, env.serves if may_go_on else ())
        except HandOverError:
            self._give_back(lease)
            return None
        except StaleAttemptError:
            return None
        except BaseException:
            # The lease would be renewed for as long as this worker lives, with nobody working on
            # it: it is given back as soon as the journal can be reached.
            env.running.abandon(lease)
            raise
        finally:
            env.running.leave(lease)

    def _give_back(self, lease: Lease) -> None:
        try:
            self._keep_trying(lambda: self._env.journal.give_back(lease))
        except JournalUnavailableError:
            # Else this worker's heartbeat would renew the lease of a task that nobody works on.
            self._env.running.abandon(lease)
            raise

    def _commit(
        self, lease: Lease, commands: Sequence[Command], serves: Collection[str]
    ) -> Lease | None:
        commit = self._env.journal.commit
        try:
            done = self._keep_trying(lambda: commit(lease, commands, serves=serves))
            if done.has_mail:
                instead = decide.otherwise(commands)
                done = self._keep_trying(lambda: commit(lease, instead, serves=serves))
            return done.lease
        except JournalUnavailableError:
            raise
        except Exception as error:
            logger.exception("task %s of run %s not recorded", lease.task_id, lease.run_id)
            failed = decide.fail(error)
            return self._keep_trying(lambda: commit(lease, failed)).lease

    def _act(self, lease: Lease, control: CallControl) -> Sequence[Command]:
        """Do the task's work; whatever goes wrong becomes a decision about the run."""
        try:
            self._learn(lease)
            self._check_definition(lease)
            if lease.kind == "call":
                return Call(lease, self._env, control).perform()
            if lease.lost >= self._env.max_lost:
                raise WorkerLostError(
                    f"task {lease.task_id!r} lost its worker {lease.lost} times; look for what "
                    "kills the workers (memory, a crash in native code)"
                )
            if lease.kind == "advance":
                return advance.perform(lease, self._env)
            return Turn(lease, self._env, control).perform()
        except TurnCutError as error:
            self._stopped(lease, error.cause)
            return cut_commands(error)
        except CleanupError as error:
            return decide.fail(error)
        except ControlError as error:
            self._stopped(lease, error)
            return []
        except UnknownAssemblyError as error:
            if lease.failures >= _UNKNOWN_TRIES:
                return decide.fail(error, untried=True)
            logger.warning(
                "task %s of run %s is for others: %s", lease.task_id, lease.run_id, error
            )
            return [TryAgain(_UNKNOWN_WAIT_S, lease.failures + 1)]
        except Exception as error:
            logger.exception("task %s of run %s failed", lease.task_id, lease.run_id)
            return decide.fail(error, untried=isinstance(error, DefinitionChangedError))

    def _stopped(self, lease: Lease, error: ControlError) -> None:
        """Make sure that the run knows it is being stopped, before its task lets go."""
        if isinstance(error, HandOverError | StaleAttemptError):
            raise error
        why = "deadline" if isinstance(error, DeadlineExceededError) else "cancel"
        kind = DeadlineExceededError if why == "deadline" else CancelledError
        failure = Failure.of(kind(str(error)))
        self._keep_trying(lambda: self._env.journal.stop_run(lease.run_id, why, failure.to_json()))

    def _learn(self, lease: Lease) -> None:
        """Make what builders made known here, from what the run keeps of it."""

        def read(names: Sequence[str]) -> Mapping[str, str]:
            try:
                return self._keep_trying(lambda: self._env.journal.definitions(lease.run_id, names))
            except JournalUnavailableError as error:
                # Nothing has been done yet, so another worker may begin anew.
                raise HandOverError("the definition cannot be read now") from error

        for name in {lease.root_assembly, lease.assembly}:
            self._env.assemblies.learn(name, read)

    def _check_definition(self, lease: Lease) -> None:
        fingerprint = self._env.assemblies.lookup(lease.root_assembly).fingerprint()
        if not lease.fingerprint or fingerprint == lease.fingerprint:
            return
        text = (
            f"run {lease.run_id!r} was started with definition {lease.fingerprint} of "
            f"{lease.root_assembly!r}; this worker has {fingerprint}"
        )
        if self._env.refuse_changed:
            raise DefinitionChangedError(text)
        known = (lease.root_assembly, lease.fingerprint)
        if known not in self._warned:
            self._warned.add(known)
            logger.warning("%s; going on with this worker's", text)

    def _keep_trying(self, work: Callable[[], T]) -> T:
        """Reach the journal, through an outage of a quarter of a minute."""
        for wait_s in _JOURNAL_WAITS_S:
            try:
                return work()
            except JournalUnavailableError as error:
                logger.warning("journal: %s; trying again in %s s", error, wait_s)
                self._env.pause(wait_s)
        return work()
