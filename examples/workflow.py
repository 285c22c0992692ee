"""A workflow: ordinary Python that waits for agents, for time and for a person, without a slot.

    python -m examples.workflow
    littleghost run examples.workflow:OrderWorkflow "a teapot"      # then: send it the signal

A real model: model = "openai:gpt-5.6-luna" in place of "shop:…"; the connect line goes.
"""

from littleghost import Agent, Workflow, models


def shop(request):
    return f"{request.model} of {request.messages[-1].text}: fine"


models().connect("shop", "scripted", script=shop)


class StockAgent(Agent):
    model = "shop:stock"


class PriceAgent(Agent):
    model = "shop:price"


class LetterAgent(Agent):
    model = "shop:letter"


def reserve(what):
    # Acts on the outside: called again only if a worker dies before it is recorded.
    return f"reservation of {what}"


class OrderWorkflow(Workflow):
    def perform(self):
        what = self.input.text
        checks = self.parallel(self.invoke(StockAgent), self.invoke(PriceAgent))
        reserved = self.step(reserve, what, name="reserve")
        self.sleep(0.2)  # days would hold no worker either
        paid = self.wait_for("paid", timeout_s=3600)
        letter = f"{what}; {'; '.join(checks)}; {reserved}; {paid['euro']} euro"
        return self.invoke(LetterAgent, input=letter)


def main():
    run = OrderWorkflow.enqueue("a teapot")
    run.signal("paid", {"euro": 30})  # from any process; one that comes early is kept
    print(run.wait(need_worker=True).response)
    for step in run.result.steps:
        print(f"  {step.participant}: {step.status}")


if __name__ == "__main__":
    main()
