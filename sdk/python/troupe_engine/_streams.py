"""Values that a job writes to streams of its task: sent a moment later, several at once."""

from __future__ import annotations

import re
import threading
import uuid
from collections import deque
from datetime import datetime, timezone
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional

from ._transport import Backoff, Transport, encode, part, segment
from .errors import ProblemError, TroupeError, hopeless, of_problem

MOST_WAITING = 1 << 20  # bytes of unsent values above which write waits
BATCH_BYTES = 256 << 10  # approximate maximal bytes of one request
MOST_VALUE = 256 << 10  # maximal bytes of a value
PER_VALUE = 32  # cost of a value in bytes besides its JSON
GATHER_TIME = 0.05  # seconds that a value waits for others
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Send = Callable[[bytes], List[Optional[TroupeError]]]
"""Sends the writes of a job, as JSON, and returns why they were refused."""


class _Value(NamedTuple):
    stream: str
    value: bytes  # JSON; empty if it only ends the stream
    number: int
    at: str


class Streams:
    """The streams of one delivery of a job. A thread sends the values, and ends when all are stored."""

    def __init__(self, step: str) -> None:
        self._step, self._writer = step, uuid.uuid4().hex
        self._send: Optional[Send] = None  # None drops all values
        self._stopped: Callable[[], bool] = lambda: True
        self._changed = threading.Condition()
        self._waiting: Deque[_Value] = deque()
        self._bytes = 0  # cost of the values that are not stored
        self._added = self._stored = 0
        self._numbers: Dict[str, int] = {}
        self._refused: Dict[str, TroupeError] = {}
        self._sending = self._urgent = self._closed = False

    def open(self, send: Send, stopped: Callable[[], bool]) -> None:
        """Sets how values are sent, and whether further tries are useless."""
        self._send, self._stopped = send, stopped

    def write(self, stream: str, value: bytes) -> None:
        if self._send is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < MOST_WAITING or self._closed or stream in self._refused)
            if stream in self._refused:
                raise self._refused[stream]
            if self._closed:
                raise TroupeError(f"the job that writes to the stream {stream} has ended")
            number = self._numbers[stream] = self._numbers.get(stream, 0) + (1 if value else 0)
            self._waiting.append(_Value(stream, value, number, _now()))
            self._bytes += len(value) + PER_VALUE
            self._added += 1
            if not self._sending:
                self._sending = True
                threading.Thread(target=self._send_all, name="troupe-streams", daemon=True).start()
            if self._bytes >= BATCH_BYTES:
                self._hurry()

    def _hurry(self) -> None:
        self._urgent = True
        self._changed.notify_all()

    def flush(self, stream: str) -> None:
        """Waits until all values are stored."""
        with self._changed:
            goal = self._added
            while self._stored < goal:
                self._hurry()
                self._changed.wait()
            if stream in self._refused:
                raise self._refused[stream]

    def close(self) -> List[TroupeError]:
        """Stores the last values, and returns why streams have lost values."""
        with self._changed:
            self._closed = True
            goal = self._added
            while self._stored < goal:
                self._hurry()
                self._changed.wait()
            return list(self._refused.values())

    def written(self) -> bool:
        with self._changed:
            return self._added > 0

    def _send_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._urgent, GATHER_TIME)
                batch = self._take()
                if not batch:
                    self._sending = False
                    return
                writes = [value for value in batch if value.stream not in self._refused]
            refused = self._deliver(writes) if writes else {}
            with self._changed:
                self._refused.update({name: e for name, e in refused.items() if name not in self._refused})
                self._bytes -= sum(len(v.value) + PER_VALUE for v in batch)
                self._stored += len(batch)
                self._changed.notify_all()

    def _take(self) -> List[_Value]:
        batch: List[_Value] = []
        size = 0
        while self._waiting and (not batch or size + len(self._waiting[0].value) + PER_VALUE <= BATCH_BYTES):
            size += len(self._waiting[0].value) + PER_VALUE
            batch.append(self._waiting.popleft())
        if not self._waiting:
            self._urgent = False
        return batch

    def _deliver(self, batch: List[_Value]) -> Dict[str, TroupeError]:
        """Sends values until they are stored or refused, or the job must stop."""
        assert self._send is not None
        groups = _grouped(batch)
        body = b"[" + b",".join(self._encoded(group) for group in groups) + b"]"
        backoff, error = Backoff(), TroupeError("the values were not sent")
        while True:
            try:
                answers = self._send(body)
                return {g[0].stream: e for g, e in zip(groups, answers) if e is not None}
            except Exception as e:  # any error may pass soon, except a refusal
                error = e if isinstance(e, TroupeError) else TroupeError(str(e))
            if self._stopped() or isinstance(error, ProblemError) and hopeless(error):
                return {value.stream: error for value in batch}
            threading.Event().wait(backoff.pause(error))

    def _encoded(self, group: List[_Value]) -> bytes:
        last = group[-1]
        head = encode({"stream": last.stream, "writer": self._writer, "number": last.number, "at": group[0].at, "step": self._step,
                       "ends": not last.value})
        return head[:-1] + b',"values":[' + b",".join(value.value for value in group if value.value) + b"]}"


def _grouped(batch: List[_Value]) -> List[List[_Value]]:
    """Groups values by stream, in order. The end of a stream ends its group."""
    groups: List[List[_Value]] = []
    newest: Dict[str, List[_Value]] = {}
    for value in batch:
        group = newest.get(value.stream)
        if group is None or not group[-1].value:
            group = newest[value.stream] = []
            groups.append(group)
        group.append(value)
    return groups


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StreamWriter:
    """A stream of the task of a job: values that others can read while the job runs, such as the
    tokens of a model.

    A job that runs again writes its values again, behind the earlier ones. Each value has the step
    and the attempt that wrote it.
    """

    def __init__(self, streams: Streams, name: str) -> None:
        if not NAME.fullmatch(name):
            raise ValueError(f"a stream cannot have the name {name!r}: write up to 100 letters, digits, dots, hyphens and underscores")
        self._streams, self._name = streams, name

    def write(self, value: Any) -> None:
        """Appends a value, as JSON. It is stored a moment later, and before the job ends. It waits
        while more than 1 MiB is not stored yet.

        Raises a TroupeError if an earlier value of the stream was refused, for example because the
        streams of the task are full.
        """
        text = encode(value)
        if len(text) > MOST_VALUE:
            raise ValueError(f"a value of the stream {self._name} has {len(text)} bytes, more than {MOST_VALUE}")
        self._streams.write(self._name, text)

    def flush(self) -> None:
        """Waits until all values are stored."""
        self._streams.flush(self._name)

    def close(self) -> None:
        """Ends the stream, so that its readers need not wait for the end of the task. A value that
        is written later opens it again."""
        self._streams.write(self._name, b"")


def sender(transport: Transport, job: str, token: str) -> Send:
    """Returns the function that sends the values of a claimed job."""
    head = encode({"token": token})[:-1] + b',"writes":'

    def send(writes: bytes) -> List[Optional[TroupeError]]:
        answer = transport.call("POST", f"/jobs/{segment(job)}/streams", head + writes + b"}")
        problems = [item.get("problem") for item in part(answer, "items", list)]
        return [of_problem(p.get("status") or 422, p) if p else None for p in problems]

    return send
