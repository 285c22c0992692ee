"""How the answer of every dialect begins and ends, in model events."""

from __future__ import annotations

from littleghost.messages import Message
from littleghost.providers.base import FinishReason, ModelEvent, ModelResponse
from littleghost.usage import Usage


class AnswerFrame:
    """The answer's id and model, told once at its beginning, and the response at its end.

    Attributes:
        id: The service's id of the answer, as far as it was told.
        model: The model that answers.
        has_started: Whether the beginning was told.
    """

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.has_started = False

    def start(self) -> list[ModelEvent]:
        """Tell of the beginning, the first time."""
        if self.has_started:
            return []
        self.has_started = True
        return [ModelEvent("message_start", {"id": self.id, "model": self.model})]

    def stop(self, message: Message, finish: FinishReason, usage: Usage | None) -> list[ModelEvent]:
        """Tell of the end: the tokens, if they are known, and the response."""
        told = [] if usage is None else [ModelEvent("usage", {"usage": usage.to_json()})]
        response = ModelResponse(
            message=message, finish=finish, usage=usage, model=self.model, id=self.id
        )
        return [*told, ModelEvent("message_stop", {}, response)]
