"""A job as its handler sees it."""

from __future__ import annotations

import threading
import traceback
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Union

from .errors import Fatal, JobCanceled

MOST_LOG = 256 << 10  # bytes of what a job logs
MOST_NOTE = 256  # bytes of a note

Handler = Callable[["Job"], Union[Any, Awaitable[Any]]]
"""Carries out a job. What it returns becomes the job's output as JSON; what it raises fails the attempt."""


class Job:
    """Something to be carried out. It may be handed out more than once: `id` stays the same."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.id: str = told["id"]
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
        self._canceled = threading.Event()
        self._noted: Optional[Callable[[str], None]] = None
        self._log = _Log()

    def note(self, text: str) -> None:
        """Tells whoever watches how far the job is, in a few words. Of notes in quick succession only the last one is told."""
        if self._noted is not None:
            self._noted(cut(text.replace("\x00", "\ufffd"), MOST_NOTE))

    def log(self, *values: object) -> None:
        """Keeps a line with the job, up to 256 KiB of them."""
        self._log.write(" ".join(str(v) for v in values) + "\n")

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
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: List[str] = []
        self._room = MOST_LOG

    def write(self, text: str) -> None:
        with self._lock:
            text = cut(text, self._room)
            self._room -= len(text.encode("utf-8"))
            self._kept.append(text)

    def text(self) -> str:
        with self._lock:
            return "".join(self._kept)


def log_of(job: Job) -> str:
    return job._log.text()


def cut(text: str, most: int) -> str:
    """The beginning of a text, as UTF-8 that any member takes."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def failure_of(job: Job, error: BaseException) -> Dict[str, Any]:
    """What is reported of a job whose handler raised. Where it did so is kept in the job's log."""
    fatal = isinstance(error, Fatal)
    if not fatal:
        job._log.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    # The text of a KeyError is only the key.
    text = repr(error) if isinstance(error, KeyError) else str(error)
    return {"error": cut(text, MOST_LOG) or type(error).__name__, "fatal": fatal}
