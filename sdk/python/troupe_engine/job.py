"""A job as seen by its handler."""

from __future__ import annotations

import threading
import traceback
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Union

from ._numbers import Numbers
from ._streams import Streams, StreamWriter
from ._transport import encode
from .errors import Failed, Fatal, JobCanceled

MOST_LOG = 256 << 10  # maximal bytes of a job's unsent log
MOST_LINES = 1000  # maximal lines of a log per request
MAX_PROGRESS = 256  # maximal bytes of a status text
MOST_DETAILS = 64 << 10  # maximal bytes of an error's details

Handler = Callable[["Job"], Union[Any, Awaitable[Any]]]
"""Carries out a job. Its result becomes the job's output as JSON; an exception fails the attempt.
"""


class Job:
    """A job to carry out. It may be delivered more than once, and retried.

    id:   id of the attempt; it differs for the next attempt
    key:  idempotency key for effects outside, such as a payment; it is the same for all attempts
          at a unit of a visit, through redeliveries, take-overs and retries, and new for a new
          visit, a rerun or a fork
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.id: str = told["id"]
        self.key: str = told["key"]
        self.service: str = told["service"]
        self.input: Any = told.get("input")
        self.params: Dict[str, Any] = told.get("params") or {}
        self.task: str = told["task"]
        self.flow: str = told.get("flow") or ""  # slug of the task's flow
        self.step: str = told.get("step") or ""  # a path for a step of an inner flow
        self.branch: str = told.get("branch") or ""  # name of the unit
        self.unit: int = told.get("unit") or 0  # index of the unit in the step, from 0
        self.units: int = told.get("units") or 1
        self.attempt: int = told.get("attempt") or 0  # attempt number, from 1
        self.labels: List[str] = told.get("labels") or []  # labels that the job requires
        self.deliveries: int = told.get("deliveries") or 0  # number of earlier deliveries that were lost
        self.timeout: Optional[float] = told["timeout_ms"] / 1000 if told.get("timeout_ms") else None  # time limit of the attempt in seconds
        self.trace: str = told.get("trace") or ""  # the attempt's span as a W3C Trace Context traceparent header
        self._canceled = threading.Event()
        self._on_progress: Optional[Callable[[str], None]] = None
        self._log = _Log()
        self._numbers = Numbers()
        self._streams = Streams(self.step)

    def progress(self, text: str) -> None:
        """Reports the progress of the job in a few words. Of texts in quick succession only the
        last one is sent."""
        if self._on_progress is not None:
            self._on_progress(cut(text.replace("\x00", "\ufffd"), MAX_PROGRESS))

    def log(self, *values: object) -> None:
        """Adds a line to the job's log, which can be read while the job runs. It never blocks;
        lines beyond the sending rate are dropped and counted."""
        self._log.write(" ".join(str(v) for v in values))

    def count(self, name: str, value: float = 1, labels: Optional[Mapping[str, str]] = None) -> None:
        """Adds to a metric of the job, such as the number of rows read. Values of the same name and
        labels are added up and stored with the attempt, whether it succeeds or fails. At most
        100 different ones are stored per job."""
        self._numbers.add(name, value, labels)

    def stream(self, name: str) -> StreamWriter:
        """Returns a stream of the task: values that others can read while the job runs, such as the
        tokens of a model: job.stream("answer").write(token)."""
        return StreamWriter(self._streams, name)

    @property
    def canceled(self) -> bool:
        """Whether the job is no longer needed."""
        return self._canceled.is_set()

    def wait_canceled(self, seconds: float) -> bool:
        """Sleeps until the time is over or the job is canceled. Returns True if it was canceled."""
        return self._canceled.wait(seconds)

    def check(self) -> None:
        """Raises JobCanceled if the job is no longer needed."""
        if self.canceled:
            raise JobCanceled(f"nobody waits for the job {self.id} any longer")


class _Log:
    """Logged lines of a job that were not sent yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: List[Dict[str, Any]] = []
        self._sent = 0  # number of lines sent, not yet acknowledged
        self._from = 0  # number of lines before them
        self._room = MOST_LOG
        self._lost = 0  # lines lost since the last stored one

    def write(self, text: str) -> None:
        at = _now()
        with self._lock:
            for line in cut(text.replace("\x00", "\ufffd"), MOST_LOG).split("\n"):
                size = len(line.encode("utf-8")) + 64
                if size > self._room:
                    self._lost += 1
                    continue
                self._tell_lost(at)
                self._room -= size
                self._lines.append({"text": line, "at": at})

    def _tell_lost(self, at: str) -> None:
        if self._lost:
            self._lines.append({"text": f"… {self._lost} lines lost here", "at": at})
            self._lost = 0

    def waits(self) -> bool:
        with self._lock:
            return bool(self._lines)

    def part(self) -> Dict[str, Any]:
        """Returns the next lines to send; the same as before until they are acknowledged."""
        with self._lock:
            self._sent = self._sent or min(len(self._lines), MOST_LINES)
            return {"lines": self._lines[: self._sent], "lines_from": self._from}

    def arrived(self) -> None:
        """Records that the member has received the lines."""
        with self._lock:
            for line in self._lines[: self._sent]:
                self._room += len(line["text"].encode("utf-8")) + 64
            del self._lines[: self._sent]
            self._from, self._sent = self._from + self._sent, 0

    def rest(self) -> Dict[str, Any]:
        """Returns all lines that the member may not have when the handler has returned."""
        with self._lock:
            self._tell_lost(_now())
            return {"lines": list(self._lines), "lines_from": self._from} if self._lines else {}


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def told_by(job: Job) -> Dict[str, Any]:
    """Returns the part of a report that is independent of the result."""
    numbers = job._numbers.told()
    return {**({"metrics": numbers} if numbers else {}), **job._log.rest()}


def close_streams(job: Job) -> None:
    """Stores the last values of a job's streams. The job's log says which were lost."""
    for error in job._streams.close():
        job._log.write(f"values of streams were lost: {error}")


def cut(text: str, most: int) -> str:
    """Returns the beginning of a text, as UTF-8 that any member accepts."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def failure_of(job: Job, error: BaseException) -> Dict[str, Any]:
    """Returns the report for an exception. The traceback is added to the job's log."""
    fatal = isinstance(error, Fatal)
    if not fatal:
        job._log.write("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip("\n"))
    text = cut(text_of(error), MOST_LOG)
    details = _details_of(error)
    size = len(encode(details))
    if size > MOST_DETAILS:
        text, details = f"{text} (its details have {size} bytes, more than the {MOST_DETAILS} that are kept)", None
    return {"error": text, "fatal": fatal, **({} if details is None else {"details": details})}


def text_of(error: BaseException) -> str:
    """Returns the text of an exception, or its class name if it has no text or fails to produce it.
    """
    try:
        # The text of a KeyError is only the key.
        return (repr(error) if isinstance(error, KeyError) else str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__


def _details_of(error: BaseException) -> Any:
    """Returns the details of a failure as JSON."""
    details = error.details if isinstance(error, Failed) else None
    try:
        encode(details)
        return details
    except Exception:  # its parts may raise anything
        pass
    try:
        return cut(repr(details), MOST_LOG)
    except Exception:
        return type(details).__name__
