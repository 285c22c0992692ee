"""Assemblies declared at run time, of what a table or a customer's drawing says.

    python -m examples.builder

A real model: .model("openai:gpt-5.6-luna") in place of "words:…"; the connect line goes.
"""

from littleghost import AgentBuilder, GraphBuilder, models

# What an application would read from its database.
TEAMS = {"billing": "The bill is corrected.", "shipping": "The parcel is on its way."}


def words(request):
    if request.model != "triage":
        return request.model
    text = request.messages[-1].text
    return "shipping" if "parcel" in text else "billing"


models().connect("words", "scripted", script=words)


# Code is told by its name, so it stands in a module that the workers import.
def to_billing(state):
    return state.result("triage").output == "billing"


def to_shipping(state):
    return state.result("triage").output == "shipping"


def draw():
    flow = GraphBuilder("help").node("triage", AgentBuilder("triage").model("words:triage"))
    for name, when in (("billing", to_billing), ("shipping", to_shipping)):
        flow.node(name, AgentBuilder(name).model(f"words:{TEAMS[name]}"))
        flow.edge("triage", name, when=when).edge(name, "answer")
    flow.node("answer", AgentBuilder("answer").model("words:We have seen to it."))
    return flow.start("triage").finish("answer")


def main():
    flow = draw()
    for question in ("My bill is wrong.", "Where is my parcel?"):
        run = flow.ask(question)
        print(" → ".join(step.participant for step in run.result.steps), "|", run.response)


if __name__ == "__main__":
    main()
