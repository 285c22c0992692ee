"""Starts a run from a process that carries no work itself, and watches its answer come.

    python -m examples.caller "Where is order 481?"

With LITTLEGHOST_REDIS_URL set, workers carry the run; else this process does.
"""

import sys

from examples.support import SupportAgent


def main() -> int:
    question = " ".join(sys.argv[1:]) or "Where is order 481?"
    run = SupportAgent.enqueue(question, actor_id="user-1", context={"account_id": "acme"})
    print(f"run {run.id}", file=sys.stderr, flush=True)
    for event in run.events(need_worker=True):
        if event.inner_type == "tool_start":
            use = event.inner["data"]["tool_use"]
            print(f"\n[{use['name']} {dict(use['input'])}]", flush=True)
        print(event.text, end="", flush=True)
    run.refresh()
    print(f"\n{run.status}", file=sys.stderr)
    return 0 if run.is_completed else 1


if __name__ == "__main__":
    sys.exit(main())
