"""What an application that only starts runs imports: an agent, and nothing of a worker."""

from __future__ import annotations

from littleghost import Agent, models

models().connect("local", "openai_compatible", base_url="http://127.0.0.1:9/v1", api_key="none")


class Asked(Agent):
    """An agent that nobody here serves."""

    model = "local:bench"


def enqueue_some(count: int) -> None:
    """Start runs, then tell the parent, and wait until it has looked."""
    for number in range(count):
        Asked.enqueue(f"row {number}")
    print("done", flush=True)
    input()
