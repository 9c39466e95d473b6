"""Following a task: server-sent events, resumed after broken connections."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._transport import Backoff, Stream, Transport, segment
from .errors import ProblemError, UnreachableError
from .types import Event


def watch(transport: Transport, task: str, after: str, silence: float) -> Iterator[Event]:
    """Yields the events of a task until it ends."""
    return follow(transport, f"/tasks/{segment(task)}/stream", after, silence)


def follow(transport: Transport, path: str, after: str, silence: float, id_of: Callable[[Any], str] = lambda told: told["id"]) -> Iterator[Any]:
    """Yields the messages of a stream until it ends, without gaps and duplicates, however often the
    connection breaks. id_of returns the id from which to continue after a message."""
    backoff = Backoff()
    while True:
        stream: Optional[Stream] = None
        error: Exception
        try:
            headers: Dict[str, str] = {"Accept": "text/event-stream"}
            if after:
                headers["Last-Event-ID"] = after
            stream = transport.stream(path, headers, silence)
            while True:
                kind, data = _message(stream)
                if kind == "end":
                    return
                if kind or not data:  # a newer member may have other kinds
                    continue
                told = transport.parse(data)
                after, backoff = id_of(told), Backoff()
                yield told
        except ProblemError as e:
            if not e.temporary and e.status < 500:
                raise
            error = e
        except UnreachableError as e:
            error = e
        finally:
            if stream is not None:
                stream.close()
        time.sleep(backoff.pause(error))


def _message(stream: Stream) -> Tuple[str, bytes]:
    """Reads up to the empty line that ends a message."""
    kind = ""
    data: List[bytes] = []
    while True:
        line = stream.line().rstrip(b"\r\n")
        if not line:
            return kind, b"\n".join(data)
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"data":
            data.append(value)
