"""Names for functions that are tasks: task, executor, Context, TaskError, and the module
deferrables."""

from dataclasses import dataclass, field
import json
import logging
import os
import sys
from typing import Any, Mapping, Optional

__all__ = ["Context", "TaskError", "executor", "task"]


class TaskError(Exception):
    """A failure reported by the task. Details may be any JSON."""

    def __init__(self, message: str, details: Any = None):
        super().__init__(message)
        self.message = message
        self.details = details


def task(function=None, **options):
    """Marks a function as a task and returns it unchanged."""
    return _marked("__ork_task__", function, options)


def executor(cls=None, **options):
    """Marks a class as an executor and returns it unchanged."""
    return _marked("__ork_executor__", cls, options)


def _marked(name, what, options):
    def mark(it):
        setattr(it, name, options)
        return it

    return mark if what is None or not callable(what) else mark(what)


class Metrics:
    """Metrics reported beside the output."""

    def record(self, name: str, value: float, labels: Optional[Mapping[str, str]] = None, **more: str) -> None:
        labels = {**(labels or {}), **more}
        sys.stdout.write("ORK_METRIC:" + json.dumps({"name": name, "value": value, "labels": labels}) + "\n")


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    return int(text) if text else None


@dataclass
class Context:
    """Information about the job for which a task is called."""

    task_id: str = ""
    run_id: str = ""
    task_name: str = ""
    workflow_name: str = ""
    attempt: int = 1
    parallel_index: Optional[int] = None
    parallel_count: Optional[int] = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("ork"))
    metrics: Metrics = field(default_factory=Metrics)

    @classmethod
    def current(cls) -> "Context":
        env = os.environ.get
        log = logging.getLogger("ork")
        if not log.handlers:
            handler = logging.StreamHandler(sys.stdout)
            handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            log.propagate = False
        return cls(
            task_id=env("ORK_TASK_ID", ""),
            run_id=env("ORK_RUN_ID", ""),
            task_name=env("ORK_TASK_NAME", ""),
            workflow_name=env("ORK_WORKFLOW_NAME", ""),
            attempt=_number("ORK_ATTEMPT") or 1,
            parallel_index=_number("ORK_PARALLEL_INDEX"),
            parallel_count=_number("ORK_PARALLEL_COUNT"),
            log=log,
        )
