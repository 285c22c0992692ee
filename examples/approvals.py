"""Approvals: a tool call waits for a person, for days if need be, and holds no worker.

    python -m examples.approvals      # asks on a terminal; elsewhere it approves by itself
    littleghost run examples.approvals:RefundAgent "Refund order 481."

A real model: model = "openai:gpt-5.6-luna" in place of "till:any"; the connect line goes.
"""

import sys

from littleghost import Agent, models, tool
from littleghost.providers import Call, Reply


def till(request):
    last = request.messages[-1]
    if last.role == "tool":
        return f"The till says: {last.content[0].content}"
    return Reply(text="I will refund it.", tool_calls=[Call("refund", {"order": 481, "euro": 30})])


models().connect("till", "scripted", script=till)


@tool(requires_approval=True, approval_timeout_s=3 * 86_400)
def refund(order: int, euro: int) -> str:
    """Pay an order back."""
    return f"{euro} euro for order {order} are paid back."


class RefundAgent(Agent):
    model = "till:any"
    tools = [refund]


def allows(question):
    if not sys.stdin.isatty():
        print(f"{question} Yes, nobody is here to ask.")
        return True
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def main():
    run = RefundAgent.enqueue("Refund order 481.")
    for event in run.events(need_worker=True):
        if event.type != "approval_requested":
            continue
        use = event.data["tool_use"]
        if allows(f"May it call {use['name']} with {dict(use['input'])}?"):
            run.approve(event.data["id"], by="the till's owner")
        else:
            run.reject(event.data["id"], "not today", by="the till's owner")
    print(run.refresh().response)


if __name__ == "__main__":
    main()
