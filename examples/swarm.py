"""A swarm: agents hand the work to each other, and the one that answers ends it.

    python -m examples.swarm
    littleghost run examples.swarm:HelpSwarm "My bill is wrong."

A real model: model = "openai:gpt-5.6-luna" in place of "help:…"; the connect line goes.
"""

from littleghost import Agent, Member, Swarm, models, tool
from littleghost.providers import Call, Reply


def help_desk(request):
    last = request.messages[-1]
    if request.model == "triage":
        handoff = {"agent_id": "billing", "message": f"The customer says: {last.text}"}
        return Reply(text="One moment.", tool_calls=[Call("handoff_to_agent", handoff)])
    if last.role == "tool":
        return f"It is corrected: {last.content[0].content}."
    return Reply(tool_calls=[Call("correct_bill", {"number": 7})])


models().connect("help", "scripted", script=help_desk)


@tool(idempotent=True)
def correct_bill(number: int) -> str:
    """Correct a bill."""
    return f"bill {number} is 30 euro now"


class TriageAgent(Agent):
    model = "help:triage"
    system_prompt = "Hand each customer to the colleague who can help."


class BillingAgent(Agent):
    description = "Corrects bills."
    model = "help:billing"
    tools = [correct_bill]


class HelpSwarm(Swarm):
    members = [TriageAgent, Member(BillingAgent, history=True)]
    start = TriageAgent
    handoffs = {TriageAgent: [BillingAgent]}


def main():
    run = HelpSwarm.ask("My bill is wrong.")
    print(" → ".join(step.participant for step in run.result.steps))
    print(run.response)


if __name__ == "__main__":
    main()
