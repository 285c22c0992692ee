"""Every error the framework raises, in one tree with stable codes.

LittleGhostError
├─ ConfigurationError         the application's code or settings are wrong
│  ├─ DefinitionError         an assembly or tool class is declared wrongly
│  ├─ UnknownAssemblyError    a name that no imported module registered
│  ├─ UnknownModelError       a connection, role or target that is not configured
│  ├─ CredentialError         a connection has no usable credentials
│  ├─ DefinitionChangedError  a run was started under another version of its definition
│  └─ UnsafeRedisError        Redis may evict or refuse what the journal needs
├─ InvocationError            one call's input is wrong; no run exists
│  ├─ DuplicateRunError       the run id is taken
│  ├─ SessionBusyError        too many runs already wait for the session
│  └─ UnsupportedInputError   the model cannot read this kind of input
├─ RunError                   about one run, seen by its caller
│  ├─ RunNotFoundError  WaitTimeoutError  NoWorkerError  BlockingCallError  WorkerLostError
│  ├─ RunOverError  ApprovalError  SignalError  InterjectionError  (what is sent into it)
│  └─ NotResumableError  SessionChangedError
├─ ProviderError              a model service failed
│  ├─ RateLimitedError  OverloadedError  StreamError  ProviderTimeoutError  (retryable)
│  ├─ AuthenticationError  InvalidRequestError  ContextWindowOverflowError
│  └─ ProtocolError           the model broke the rules of the conversation
│     └─ OutputLimitError  MalformedToolCallError  TurnLimitError  ToolCallLimitError
├─ AssemblyError              several participants together
│  ├─ AssemblyLimitError  AssemblyRoutingError  AssemblyStepTimeoutError  SignalTimeoutError
│  └─ ReplayError             recorded history and code disagree
├─ ToolError                  its text is shown to the model
│  └─ ToolTimeoutError
├─ ControlError               never shown to the model, never retried
│  └─ CancelledError  DeadlineExceededError  HandOverError  StaleAttemptError  CleanupError
└─ JournalError               Redis, the run's record
   └─ JournalUnavailableError  SchemaVersionError
"""

from __future__ import annotations

from typing import ClassVar


class LittleGhostError(Exception):
    """Something in LittleGhost went wrong; subclasses say what."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class ConfigurationError(LittleGhostError):
    """The application's code or settings are wrong and must be changed."""

    code = "configuration"


class DefinitionError(ConfigurationError):
    """An assembly or tool is declared wrongly; the message names the class and the field."""

    code = "definition"


class UnknownAssemblyError(ConfigurationError):
    """No module that was imported here registers an assembly of this name."""

    code = "unknown_assembly"


class UnknownModelError(ConfigurationError):
    """A model selection names a connection, role or target that is not configured."""

    code = "unknown_model"


class CredentialError(ConfigurationError):
    """A model connection has no usable credentials."""

    code = "credentials"


class DefinitionChangedError(ConfigurationError):
    """The run was started under another version of its definition than this worker has."""

    code = "definition_changed"


class UnsafeRedisError(ConfigurationError):
    """This Redis may evict or refuse records that the journal must keep."""

    code = "unsafe_redis"


class InvocationError(LittleGhostError):
    """The input of one call is wrong; it was refused before a run existed.

    Attributes:
        field: The name of the refused field, or None when the call as a whole is wrong.
    """

    code = "invocation"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class DuplicateRunError(InvocationError):
    """A run with this id exists already."""

    code = "duplicate_run"


class SessionBusyError(InvocationError):
    """Too many runs already wait for this session."""

    code = "session_busy"


class UnsupportedInputError(InvocationError):
    """The chosen model cannot read this kind of input."""

    code = "unsupported_input"


class RunError(LittleGhostError):
    """An operation on one run could not be done."""

    code = "run"


class RunNotFoundError(RunError):
    """No run has this id, or its record has expired."""

    code = "run_not_found"


class WaitTimeoutError(RunError):
    """The run had not ended when the wait was over; the run itself goes on."""

    code = "wait_timeout"


class NoWorkerError(RunError):
    """No live worker serves the queue that the run's next task is in.

    Attributes:
        run_id: The run, which stays in the journal and goes on when a worker appears.
        queue: The queue nobody serves.
    """

    code = "no_worker"

    def __init__(self, message: str, *, run_id: str = "", queue: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id
        self.queue = queue


class BlockingCallError(RunError):
    """A worker task tried to wait for a run, which would hold its slot."""

    code = "blocking_call"


class WorkerLostError(RunError):
    """The workers that tried this task died, as often as the task may be tried."""

    code = "worker_lost"


class NotResumableError(RunError):
    """The run cannot be retried: it ended well, still goes on, or left nothing to go on from."""

    code = "not_resumable"


class SessionChangedError(RunError):
    """The run's session went on without it, so that the run cannot be retried in it; fork it."""

    code = "session_changed"


class ApprovalError(RunError):
    """There is nothing to approve under this id, or it was answered otherwise already."""

    code = "approval"


class SignalError(RunError):
    """A signal could not be sent: its id was used for another one, or too many are waiting."""

    code = "signal"


class InterjectionError(RunError):
    """A message could not be put in: not one agent is at work, or its id was used already."""

    code = "interjection"


class RunOverError(RunError):
    """The run has ended, so nothing can reach it any more."""

    code = "run_over"


class ProviderError(LittleGhostError):
    """A model service failed or answered in a way that cannot be used.

    Attributes:
        status: The HTTP status, when there was one.
        retry_after_s: Seconds the service asked to wait, when it said so.
    """

    code = "provider_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.is_retryable = type(self).retryable if retryable is None else retryable


class RateLimitedError(ProviderError):
    """The model service limits the rate of requests."""

    code = "rate_limited"
    retryable = True


class OverloadedError(ProviderError):
    """The model service is overloaded or out of order."""

    code = "overloaded"
    retryable = True


class StreamError(ProviderError):
    """The model's answer broke off or could not be read."""

    code = "stream_incomplete"
    retryable = True


class ProviderTimeoutError(ProviderError):
    """The model service did not answer in time."""

    code = "timeout"
    retryable = True


class AuthenticationError(ProviderError):
    """The model service refused the credentials."""

    code = "auth"


class InvalidRequestError(ProviderError):
    """The model service refused the request; asking again cannot help."""

    code = "invalid_request"


class ContextWindowOverflowError(ProviderError):
    """The conversation is longer than the model can read."""

    code = "context_overflow"


class ProtocolError(ProviderError):
    """The model or its service broke the rules of the conversation."""

    code = "protocol"


class OutputLimitError(ProtocolError):
    """The model's answer was cut at its output limit."""

    code = "output_limit"


class MalformedToolCallError(ProtocolError):
    """The model asked for a tool in a form that cannot be read."""

    code = "malformed_tool_call"


class TurnLimitError(ProtocolError):
    """The agent used all the model turns it is allowed."""

    code = "max_turns"


class ToolCallLimitError(ProtocolError):
    """The agent asked for more tool calls than it is allowed."""

    code = "max_tool_calls"


class AssemblyError(LittleGhostError):
    """Several participants of a run did not work together."""

    code = "assembly"


class AssemblyLimitError(AssemblyError):
    """A composite would do more, or nest deeper, than it may."""

    code = "assembly_limit"


class AssemblyRoutingError(AssemblyError):
    """No participant, or more than one, was chosen to go on."""

    code = "assembly_routing"


class AssemblyStepTimeoutError(AssemblyError):
    """One step of a composite did not end within its own time; not the run's deadline."""

    code = "assembly_step_timeout"


class SignalTimeoutError(AssemblyError):
    """A workflow waited for a signal, and none came in time."""

    code = "signal_timeout"


class ReplayError(AssemblyError):
    """A workflow's code asks for something else than what its history recorded."""

    code = "replay"


class ToolError(LittleGhostError):
    """A tool cannot do what was asked; the message is shown to the model and must be safe."""

    code = "tool"


class ToolTimeoutError(ToolError):
    """A tool did not finish within its own time limit."""

    code = "tool_timeout"


class ControlError(LittleGhostError):
    """The run is being stopped; never shown to the model and never retried."""

    code = "control"


class CancelledError(ControlError):
    """The run was cancelled."""

    code = "cancelled"


class DeadlineExceededError(ControlError):
    """The run's deadline has passed."""

    code = "deadline_exceeded"


class HandOverError(ControlError):
    """This worker stops; its task goes on elsewhere."""

    code = "hand_over"


class StaleAttemptError(ControlError):
    """Another worker has the task now; whatever this one does is dropped."""

    code = "stale_attempt"


class CleanupError(ControlError):
    """Something the run had opened could not be closed."""

    code = "cleanup"


class JournalError(LittleGhostError):
    """The run's record could not be read or written."""

    code = "journal"


class JournalUnavailableError(JournalError):
    """Redis did not answer, or refused to write; nothing was recorded."""

    code = "journal_unavailable"
    retryable = True


class SchemaVersionError(JournalError):
    """The journal was written by another version that this one cannot read."""

    code = "schema_version"


def is_retryable(error: BaseException) -> bool:
    """Say whether the same request may succeed later.

    Returns:
        True for failures of a service or of Redis that pass by themselves.
    """
    if isinstance(error, ProviderError):
        return error.is_retryable
    return isinstance(error, LittleGhostError) and error.retryable
