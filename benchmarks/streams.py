"""Streaming model calls: memory and CPU of a turns worker, cancel latency, time to first token.

python -m benchmarks.streams [--calls 200,500]
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time

import httpx

from benchmarks import report
from benchmarks.rig import ROOT, Rig, free_port, wait_until


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def memory_figures(rig: Rig, stream, calls: int) -> list[report.Figure]:
    """Hold many streaming calls at once in one worker."""
    worker = rig.worker("ours", "lg.turns", slots=calls + 20, BENCH_BASE_URL=rig.model_url)
    stream.enqueue("1 0").wait(60)
    idle_mb, cpu = worker.rss_mb(), worker.cpu_s()
    seconds, gap_s = 20, 0.5
    started = time.monotonic()
    runs = [stream.enqueue(f"{int(seconds / gap_s)} {gap_s}") for _ in range(calls)]

    def streaming() -> int:
        return sum(
            bool(rig.runtime.client.exists(rig.runtime.journal.place(r.id)[0] + ":d")) for r in runs
        )

    wait_until(lambda: streaming() == calls, 120)
    all_streaming_s = time.monotonic() - started
    busy_mb = worker.rss_mb()
    for run in runs:
        run.wait(120)
    assert all(run.is_completed for run in runs)
    used = worker.cpu_s() - cpu
    worker.stop()
    rig.clear()
    each_kb = (busy_mb - idle_mb) * 1000 / calls
    print(
        f"{calls} streaming calls: {each_kb:.0f} kB each "
        f"({idle_mb:.0f} -> {busy_mb:.0f} MB), all streaming after {all_streaming_s:.1f} s, "
        f"{used * 1000 / calls:.1f} ms worker CPU per call of {int(seconds / gap_s)} pieces"
    )
    name = f"{calls} streaming calls at once in one turns worker"
    return [
        report.Figure(f"{name}: memory of each", each_kb, "kB", 100),
        report.Figure(f"{name}: worker CPU of a call", used * 1000 / calls, "ms"),
    ]


def cancel_figures(rig: Rig, stream, count: int) -> list[report.Figure]:
    """From cancel() to the terminal event, which comes after the stream was cut."""
    worker = rig.worker("ours", "lg.turns", slots=20, BENCH_BASE_URL=rig.model_url)
    took: list[float] = []
    for _ in range(count):
        run = stream.enqueue("2000 0.02")
        next(event for event in run.events() if event.text)
        started = time.monotonic()
        run.cancel()
        run.wait(10)
        took.append((time.monotonic() - started) * 1000)
    worker.stop()
    rig.clear()
    return [
        report.median_of("cancel to cut model stream, median", took, "ms", most=200),
        report.Figure(
            f"cancel to cut model stream, p99 of {count}", percentile(took, 0.99), "ms", 1000
        ),
    ]


def first_token_figures(rig: Rig, stream, count: int) -> list[report.Figure]:
    """Time to first token through the durable path, and with httpx directly."""
    worker = rig.worker("ours", "lg.turns", slots=8, BENCH_BASE_URL=rig.model_url)
    durable: list[float] = []
    direct: list[float] = []
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "2 0.01"}]}
    with httpx.Client() as client:
        for _ in range(count):
            started = time.monotonic()
            next(event for event in stream.stream_ask("2 0.01") if event.text)
            durable.append((time.monotonic() - started) * 1000)
            started = time.monotonic()
            with client.stream("POST", rig.model_url + "/chat/completions", json=body) as response:
                for line in response.iter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        delta = json.loads(line[6:])["choices"][0]["delta"]
                        if delta.get("content"):
                            direct.append((time.monotonic() - started) * 1000)
                            break
    worker.stop()
    rig.clear()
    more = statistics.median(durable) - statistics.median(direct)
    return [
        report.Figure(
            f"time to first token beyond a direct httpx call, medians of {count}", more, "ms", 10
        ),
        report.median_of("time to first token, durable", durable, "ms"),
        report.median_of("time to first token, direct httpx call", direct, "ms"),
    ]


def main() -> None:
    parser = report.parser_of(__doc__)
    parser.add_argument("--calls", default="200,500")
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    port = free_port()
    os.environ["BENCH_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
    from benchmarks.bench_app import Stream

    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.model_server", str(port)], cwd=ROOT
    )
    rig = Rig()
    rig.model_url = os.environ["BENCH_BASE_URL"]
    try:
        wait_until(lambda: listening(port), 10)
        figures = first_token_figures(rig, Stream, options.times)
        figures += cancel_figures(rig, Stream, options.times)
        for calls in map(int, options.calls.split(",")):
            figures += memory_figures(rig, Stream, calls)
        report.write(options, figures)
    finally:
        rig.stop()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
