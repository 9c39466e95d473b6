"""A job as its handler sees it."""

from __future__ import annotations

import threading
import traceback
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Union

from ._numbers import Numbers
from ._transport import encode
from .errors import Failed, Fatal, JobCanceled

MOST_LOG = 256 << 10  # bytes of what a job logs that wait to be sent
MOST_LINES = 1000  # of a log that are sent at once
MOST_NOTE = 256  # bytes of a note
MOST_DETAILS = 64 << 10  # bytes of what is told of an error beside its text

Handler = Callable[["Job"], Union[Any, Awaitable[Any]]]
"""Carries out a job. What it returns becomes the job's output as JSON; what it raises fails the attempt."""


class Job:
    """Something to be carried out. It may be handed out more than once, and tried again.

    id:   names the attempt: another one for the next attempt
    key:  the idempotency key for effects outside, such as a payment: the same for all attempts at a unit of a visit, however often
          it is delivered, taken over or retried. A new visit, a rerun and a fork have new ones.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.id: str = told["id"]
        self.key: str = told["key"]
        self.service: str = told["service"]
        self.input: Any = told.get("input")
        self.params: Dict[str, Any] = told.get("params") or {}
        self.task: str = told["task"]
        self.flow: str = told.get("flow") or ""  # slug of the task's flow
        self.step: str = told.get("step") or ""  # a path, in a flow inside another
        self.branch: str = told.get("branch") or ""  # the unit's name
        self.unit: int = told.get("unit") or 0  # which of the step's units, from 0
        self.units: int = told.get("units") or 1
        self.attempt: int = told.get("attempt") or 0  # which try, from 1
        self.deliveries: int = told.get("deliveries") or 0  # how often it was handed out before and lost
        self.timeout: Optional[float] = told["timeout_ms"] / 1000 if told.get("timeout_ms") else None  # seconds for the attempt
        self.trace: str = told.get("trace") or ""  # the attempt's span, as the header traceparent of W3C Trace Context
        self._canceled = threading.Event()
        self._noted: Optional[Callable[[str], None]] = None
        self._log = _Log()
        self._numbers = Numbers()

    def note(self, text: str) -> None:
        """Tells whoever watches how far the job is, in a few words. Of notes in quick succession only the last one is told."""
        if self._noted is not None:
            self._noted(cut(text.replace("\x00", "\ufffd"), MOST_NOTE))

    def log(self, *values: object) -> None:
        """Keeps a line with the job, to be read while it goes on. It waits for nobody: what comes faster than it is sent is counted and told."""
        self._log.write(" ".join(str(v) for v in values))

    def count(self, name: str, value: float = 1, labels: Optional[Mapping[str, str]] = None) -> None:
        """Tells a number of the job, such as how many rows it has read. All of a name and the same labels are added up, and are kept with the attempt,
        whatever becomes of it. Of a job up to 100 different ones are kept."""
        self._numbers.add(name, value, labels)

    @property
    def canceled(self) -> bool:
        """Whether nobody waits for the job any longer."""
        return self._canceled.is_set()

    def wait_canceled(self, seconds: float) -> bool:
        """Sleeps, but not longer than the job is wanted. True when it was canceled."""
        return self._canceled.wait(seconds)

    def check(self) -> None:
        """Raises JobCanceled when nobody waits for the job any longer."""
        if self.canceled:
            raise JobCanceled(f"nobody waits for the job {self.id} any longer")


class _Log:
    """What a job has logged and the member does not have yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: List[Dict[str, Any]] = []
        self._sent = 0  # of them, perhaps in vain
        self._from = 0  # how many were before them
        self._room = MOST_LOG
        self._lost = 0  # lines that did not fit since the last one that did

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
        """What is to be sent next: the same as before, until that has arrived."""
        with self._lock:
            self._sent = self._sent or min(len(self._lines), MOST_LINES)
            return {"lines": self._lines[: self._sent], "lines_from": self._from}

    def arrived(self) -> None:
        """The member has the part."""
        with self._lock:
            for line in self._lines[: self._sent]:
                self._room += len(line["text"].encode("utf-8")) + 64
            del self._lines[: self._sent]
            self._from, self._sent = self._from + self._sent, 0

    def rest(self) -> Dict[str, Any]:
        """All that the member may not have when the handler has returned."""
        with self._lock:
            self._tell_lost(_now())
            return {"lines": list(self._lines), "lines_from": self._from} if self._lines else {}


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def told_by(job: Job) -> Dict[str, Any]:
    """What is reported of a job whatever became of it."""
    numbers = job._numbers.told()
    return {**({"metrics": numbers} if numbers else {}), **job._log.rest()}


def cut(text: str, most: int) -> str:
    """The beginning of a text, as UTF-8 that any member takes."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def failure_of(job: Job, error: BaseException) -> Dict[str, Any]:
    """What is reported of a job whose handler raised. Where it did so is kept in the job's log."""
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
    """The text of an exception. Where it has none, or fails to give it, it is the exception's name."""
    try:
        # The text of a KeyError is only the key.
        return (repr(error) if isinstance(error, KeyError) else str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__


def _details_of(error: BaseException) -> Any:
    """What a handler tells of its failure beside the text, as JSON."""
    details = error.details if isinstance(error, Failed) else None
    try:
        encode(details)
        return details
    except Exception:  # whatever its parts raise
        pass
    try:
        return cut(repr(details), MOST_LOG)
    except Exception:
        return type(details).__name__
