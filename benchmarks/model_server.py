"""A local server that speaks OpenAI's streaming dialect at a steady pace.

python -m benchmarks.model_server PORT
"""

from __future__ import annotations

import asyncio
import json
import sys


def chunk(delta: dict, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n"
)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with as many pieces, at as many seconds apart, as its text asks for."""

    async def send(data: bytes) -> None:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()

    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            body = json.loads(await reader.readexactly(length))
            content = body["messages"][-1]["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            pieces, gap_s = text.split()
            writer.write(HEAD)
            await send(chunk({"role": "assistant", "content": ""}))
            for _ in range(int(pieces)):
                await asyncio.sleep(float(gap_s))
                await send(chunk({"content": "word "}))
            await send(chunk({}, "stop"))
            await send(b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, OSError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=2048)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
