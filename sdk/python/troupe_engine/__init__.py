"""Workers and a client for Troupe, the durable workflow engine.

A worker carries out jobs::

    worker = Worker("http://127.0.0.1:8070")

    @worker.handler("resize")
    def resize(job: Job) -> object:
        return {"width": job.input["width"] // 2}

    worker.run()

A client starts tasks and follows them::

    client = Client("http://127.0.0.1:8070")
    started = client.start("thumbnails", {"width": 800})
    print(client.wait(started["id"])["result"])

Nothing but the standard library is needed.
"""

from .client import Client
from .errors import (
    BusyError,
    ConflictError,
    DeniedError,
    Failed,
    Fatal,
    InternalError,
    InvalidError,
    JobCanceled,
    LimitError,
    NotFoundError,
    ProblemError,
    TroupeError,
    UnreachableError,
)
from ._streams import StreamWriter
from .job import Handler, Job
from .worker import Worker

__all__ = [
    "BusyError",
    "Client",
    "ConflictError",
    "DeniedError",
    "Failed",
    "Fatal",
    "Handler",
    "InternalError",
    "InvalidError",
    "Job",
    "JobCanceled",
    "LimitError",
    "NotFoundError",
    "ProblemError",
    "StreamWriter",
    "TroupeError",
    "UnreachableError",
    "Worker",
]
