"""A worker that begins a job, reports it, and never ends it: the tests kill it."""

import sys
import threading

from troupe_engine import Job, Worker

worker = Worker(sys.argv[1], id="doomed", heartbeat=0.2)


@worker.handler(sys.argv[2])
def hang(job: Job) -> None:
    print(job.id, flush=True)
    threading.Event().wait()


worker.run()
