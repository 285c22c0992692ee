"""Subagents: a model starts other agents, lets them work at once, and waits for them.

    python -m examples.subagents
    littleghost run examples.subagents:EditorAgent "Write about light."

A real model: model = "openai:gpt-5.6-luna" in place of "desk:…"; the connect line goes.
"""

import json

from littleghost import Agent, Subagent, models
from littleghost.providers import Call, Reply

TOPICS = ("lamps", "lighthouses")


def spawn(topic):
    task = f"Find out about {topic}."
    given = {"kind": "research", "task_name": topic, "task": task, "mode": "async"}
    return Call("spawn_subagent", given)


def desk(request):
    last, turn = request.messages[-1], sum(m.role == "assistant" for m in request.messages)
    if request.model == "research":
        return f"Done: {last.text}"
    if turn == 0:
        return Reply(text="Two look into it.", tool_calls=[spawn(topic) for topic in TOPICS])
    if turn == 1:
        return Reply(tool_calls=[Call("wait_for_subagents")])
    return last.content[0].content


models().connect("desk", "scripted", script=desk)


class ResearchAgent(Agent):
    description = "Finds things out."
    model = "desk:research"


class EditorAgent(Agent):
    model = "desk:editor"
    subagents = [Subagent(ResearchAgent, kind="research")]


def main():
    run = EditorAgent.enqueue("Write about light.")
    for event in run.events(need_worker=True):
        if event.type == "subagent":
            told = event.data["event"]
            print(told["subagent_id"], told["event"])
    for found in json.loads(run.refresh().response)["subagents"]:
        print(f"{found['subagent_id']}: {found['response']}")


if __name__ == "__main__":
    main()
