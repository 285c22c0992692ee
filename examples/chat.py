"""A chat: a session keeps the conversation from run to run, and takes one run at a time.

    python -m examples.chat                       # type; an empty line ends it
    python -m examples.chat "I am Ada." "Who am I?"

A real model: model = "openai:gpt-5.6-luna" in place of "memory:any"; the connect line goes.
"""

import sys
import uuid

from littleghost import Agent, models


def memory(request):
    said = [message.text for message in request.messages if message.role == "user"]
    return f"That was number {len(said)}. You began with: {said[0]}"


models().connect("memory", "scripted", script=memory)


class ChatAgent(Agent):
    model = "memory:any"


def typed():
    while line := input("you: ").strip():
        yield line


def main():
    session = f"chat-{uuid.uuid4()}"  # an application would take its own conversation's id
    lines = sys.argv[1:] or (typed() if sys.stdin.isatty() else ["I am Ada.", "Who am I?"])
    for line in lines:
        print("agent: ", end="")
        for event in ChatAgent.stream_ask(line, session_id=session):
            print(event.text, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
