"""Ask a real model through the durable engine: a run, its stream, and a cancel.

python ask.py http://127.0.0.1:PORT/v1
"""

import sys
import time

from littleghost import Agent, models

models().connect("local", "openai_compatible", base_url=sys.argv[1], api_key="none")


class Storyteller(Agent):
    model = "local:smollm2-135m"
    system_prompt = "You are a storyteller. Answer in plain sentences."


def main() -> None:
    print("== a run, as it streams")
    started = time.monotonic()
    stream = Storyteller.stream_ask(
        "Tell me about a lighthouse.", settings={"max_tokens": 300, "temperature": 0}
    )
    for event in stream:
        print(event.text, end="", flush=True)
        if event.inner_type == "model_stop":
            print(f"\n[{event.inner['data']['finish']}, {event.inner['data'].get('usage')}]")
    run = stream.run
    print(f"[{run.outcome} in {time.monotonic() - started:.1f} s, {run.usage}]")
    if run.error:
        print(f"[{run.error.code}: {run.error.detail}]")

    print("== a cancel in mid-stream")
    run = Storyteller.enqueue("Tell me a very long story.", settings={"max_tokens": 1500})
    for event in run.events():
        if event.text:
            cancelled = time.monotonic()
            run.cancel("heard enough")
            break
    run.wait()
    print(f"[{run.outcome} {(time.monotonic() - cancelled) * 1000:.0f} ms after the cancel]")

    print("== in a session")
    for text in ("My name is Ada.", "What is my name?"):
        run = Storyteller.ask(
            text, session_id="ada", settings={"max_tokens": 300, "temperature": 0}
        )
        print(f"{text} -> {run.response.strip()}")


if __name__ == "__main__":
    main()
