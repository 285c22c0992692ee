"""A graph: fixed ways between agents, branches that run at once, and a way around a failure.

    python -m examples.graph
    littleghost run examples.graph:TripGraph "A trip to Ghent"

A real model: model = "openai:gpt-5.6-luna" in place of "trip:…"; the connect line goes.
"""

from littleghost import Agent, Edge, ErrorEdge, Graph, models
from littleghost.errors import ProviderError
from littleghost.providers import Reply

SAYS = {
    "sort": "trip",
    "weather": "It will be sunny.",
    "buses": "A bus leaves at nine.",
    "ticket": "It costs 12 euro.",
    "chat": "How nice.",
    "advise": "Take the bus at nine, and a hat.",
}


def trip(request):
    if request.model == "trains":
        return Reply(error=ProviderError("the timetable is closed"))
    return SAYS[request.model]


models().connect("trip", "scripted", script=trip)


class SortAgent(Agent):
    model = "trip:sort"


class WeatherAgent(Agent):
    model = "trip:weather"


class TrainsAgent(Agent):
    model = "trip:trains"


class BusesAgent(Agent):
    model = "trip:buses"


class TicketAgent(Agent):
    model = "trip:ticket"


class ChatAgent(Agent):
    model = "trip:chat"


class AdviseAgent(Agent):
    model = "trip:advise"


def is_trip(state):
    return state.result("sort").output == "trip"


class TripGraph(Graph):
    nodes = {
        "sort": SortAgent,
        "weather": WeatherAgent,
        "trains": TrainsAgent,
        "buses": BusesAgent,
        "ticket": TicketAgent,
        "chat": ChatAgent,
        "advise": AdviseAgent,
    }
    start = "sort"
    edges = [
        Edge("sort", ["weather", "trains"], when=is_trip),
        Edge("sort", "chat"),
        Edge("trains", "ticket"),
        ErrorEdge("trains", "buses", on=ProviderError),
        Edge("buses", "ticket"),
        Edge(["weather", "ticket"], "advise"),
        Edge("chat", "advise"),
    ]
    finish = "advise"


def main():
    print(TripGraph.to_mermaid())
    run = TripGraph.ask("A trip to Ghent")
    for step in run.result.steps:
        print(f"{step.participant}: {step.output or step.status}")
    print(run.response)


if __name__ == "__main__":
    main()
