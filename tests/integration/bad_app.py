"""An application with a wrong definition."""

from littleghost import Agent, Tool
from littleghost.celery.app import make_app
from littleghost.settings import Settings


class Undescribed(Tool):
    def call(self, input: dict) -> str:
        return ""


class BadAgent(Agent):
    tools = [Undescribed]  # noqa: RUF012


app = make_app(Settings.from_environment())
