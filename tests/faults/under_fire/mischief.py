"""A broker that loses, repeats and delays messages: thieves that wait at its queues."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from typing import Any

import redis
from kombu.connection import Connection
from kombu.exceptions import OperationalError

QUEUES = ("lg.turns", "lg.tools", "lg.turns.batch", "lg.tools.batch")
DELAY_S = (0.2, 3.0)
# So many of the messages that thieves meet come to harm, each once; they meet about half of all.
# One that is published again is another message.
HARM = 0.6
# Another one is to be first at the queue after a message was given back.
POLITE_S = 0.01


class Thieves:
    """Compete with the workers for messages, and treat some of those they get badly.

    Attributes:
        stolen: What became of the messages that came to harm.
    """

    def __init__(self, url: str, seed: int, count: int) -> None:
        """Start so many."""
        self._url = url
        self._stop = threading.Event()
        self._met: set[str] = set()
        self.stolen: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._steal, args=(random.Random(f"{seed}-{number}"),))
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _steal(self, chance: random.Random) -> None:
        is_redis = self._url.startswith("redis")
        held: list[tuple[float, str, Any]] = []
        while not self._stop.is_set():
            with contextlib.suppress(redis.RedisError, OSError, OperationalError):
                if is_redis:
                    self._from_redis(chance, held)
                else:
                    self._from_rabbit(chance, held)

    def _fate(self, chance: random.Random, message: str) -> str:
        is_known = message in self._met
        self._met.add(message)
        if is_known:
            self._stop.wait(POLITE_S)
        if is_known or chance.random() > HARM:
            return "given back"
        fate = chance.choice(("lost", "repeated", "delayed"))
        self.stolen[fate] += 1
        return fate

    def _from_redis(self, chance: random.Random, held: list[tuple[float, str, Any]]) -> None:
        with redis.Redis.from_url(self._url, decode_responses=True, retry=None) as client:
            while not self._stop.is_set():
                taken: Any = client.brpop(list(QUEUES), timeout=0.2)
                if taken:
                    queue, message = taken
                    fate = self._fate(chance, message)
                    if fate == "given back":
                        client.rpush(queue, message)
                    elif fate == "repeated":
                        client.lpush(queue, message, message)
                    elif fate == "delayed":
                        held.append((time.monotonic() + chance.uniform(*DELAY_S), queue, message))
                for item in _due(held):
                    client.lpush(item[1], item[2])

    def _from_rabbit(self, chance: random.Random, held: list[tuple[float, str, Any]]) -> None:
        with Connection(self._url, connect_timeout=1) as connection:
            channel: Any = connection.default_channel
            for queue in QUEUES:
                channel.queue_declare(queue, durable=True, auto_delete=False)
            while not self._stop.wait(0.005):
                queue = chance.choice(QUEUES)
                message = channel.basic_get(queue, no_ack=True)
                if message is not None:
                    fate = self._fate(chance, str(message.body))
                    for _ in range({"given back": 1, "repeated": 2}.get(fate, 0)):
                        channel.basic_publish(message, "", queue)
                    if fate == "delayed":
                        held.append((time.monotonic() + chance.uniform(*DELAY_S), queue, message))
                for item in _due(held):
                    channel.basic_publish(item[2], "", item[1])


def _due(held: list[tuple[float, str, Any]]) -> list[tuple[float, str, Any]]:
    now = time.monotonic()
    due = [item for item in held if item[0] <= now]
    held[:] = [item for item in held if item[0] > now]
    return due
