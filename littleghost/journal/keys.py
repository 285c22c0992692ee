"""Every key in Redis: its name, type, writer and end.

All keys of a run, of its session and of the indexes that change with it begin with the partition's
prefix `lg:{07}:`, whose braces make them share one Redis Cluster slot. So a script, which touches one
partition only, runs on one node of a cluster; what reads several partitions is pipelined to their nodes.

| key (after the prefix) | type | holds | ends |
| --- | --- | --- | --- |
| `r:<run>` | hash | the run's record, definitions `def:`; small, however many participants there are | retention after the end, given when all else has it |
| `r:<run>:t` | hash | what is still to be done: task headers `t:`, payloads `d:`, joins `j:`, states of participants `x:` | with the run |
| `r:<run>:p` | hash | what is kept of participants: headers `p:`, ends `z:`, tokens `u:` `w:`, whether they started others `b:`; answers of people `a:`, what was sent in `i:` | with the run |
| `r:<run>:f` | hash | what a run that did not end well had open: `ot:` `od:` `oj:` `x:` `f:` | when it completes after all, else with the run |
| `r:<run>:l` `:w` | set, sorted set | tasks that workers have; who waits for which signal | used up, or the run's end |
| `r:<run>:gone` | set | participants that were cancelled, until what they had open is cleared up | cleared up |
| `r:<run>:e` | stream | durable events, ids `1-0`, `2-0`, … | with the run |
| `r:<run>:d` | stream | live text of the newest turns, same numbering | with the run |
| `r:<run>:m:<participant>` | list | messages of an agent, results of a composite | with the run |
| `r:<run>:s:<participant>` | hash | working state, a JSON value per field | with the run |
| `r:<run>:r` | hash | results by task; `#n` points into the list | with the run |
| `r:<run>:j:` `:o:` `:q:` | set, list, list | a join's members left, order, and those not yet started | when the join fires, or the run ends |
| `r:<run>:g` `:b` | list, hash | signals nobody waited for yet; inboxes by participant, a JSON list each | taken, or the run's end |
| `r:<run>:x` `:i` `:c` `:cut` | list, list, hash, list | exclusive calls in waiting; first messages; context; ends of turns | used up, or the run's end |
| `s:<hash>` `:m` `:s` `:q` | hash, list, hash, list | a session's holder, messages, state, waiting runs | session time after its last run |
| `s:<hash>:k` `r:<run>:k`, `…:k:<key>` | hash, lists | conversations of subagents: facts by key, messages | with the session, or the run |
| `ready` `timers` `deadlines` `stops` `live` | sorted sets | what the keeper looks at, by time in ms | entries leave with their run |
| `clearing` | sorted set | runs of which something is to be cleared up, such as keys without an expiry yet | the keeper has done it |
| `runs` | sorted set | runs by creation time | entries leave a week after retention |
| `held:<worker>` `holders` | sets | tasks leased by a worker; workers that hold any | given back or reclaimed |
| `control:<worker>` | hash | stop notes for running tasks | 60 s |
| `answer:<run>:<task>:…` | string | a commit's answer, and the newest append of live text, for the same call sent again | 120 s |
| `delivered` | hash | newest publish time delivered, by queue | one field per queue |

Outside partitions: `lg:schema` (string; journal version and partitions; stays), `lg:workers` (sorted
set: worker by lease end), `lg:worker:<id>` (string, a worker's facts; 3 leases), `lg:keeper` (string,
the leader's lease), and the channel `lg:control:<worker>`. On a cluster each has a slot of its own, and
no script touches one of them and a partition; the channel is heard on every node. The broker's queues
are never on a cluster: with one server the scripts push messages to them, which no slot could hold.
"""

from __future__ import annotations

import hashlib

SCHEMA_VERSION = 2
SCHEMA = "lg:schema"
WORKERS = "lg:workers"
KEEPER = "lg:keeper"


def prefix(partition: int) -> str:
    """Give the prefix of a partition's keys."""
    return f"lg:{{{partition:02d}}}:"


def run(partition: int, run_id: str) -> str:
    """Give the key of a run's record; its other keys begin with it."""
    return f"{prefix(partition)}r:{run_id}"


def definition(name: str) -> str:
    """Give the field of a run's record that keeps the definition of a built assembly."""
    return "def:" + name.partition(":")[2]


def session(partition: int, session_id: str, actor_id: str | None) -> str:
    """Give the key of a session; actors never share one.

    The ids are hashed, since they are the caller's text and may be of any length.
    """
    marked = "" if actor_id is None else "a" + actor_id
    digest = hashlib.sha256(f"{marked}\0{session_id}".encode()).hexdigest()[:32]
    return f"{prefix(partition)}s:{digest}"


def worker(worker_id: str) -> str:
    """Give the key of a worker's facts."""
    return f"lg:worker:{worker_id}"


def control(worker_id: str) -> str:
    """Give the channel on which a worker hears that a running task must stop."""
    return f"lg:control:{worker_id}"
