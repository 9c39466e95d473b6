"""A worker for the services "resize", "describe" and "pay".

    troupe dev &
    TROUPE_SERVER=http://127.0.0.1:8070 python3 examples/resize_worker.py
"""

import asyncio
import logging

from troupe_engine import Fatal, Job, Worker

LONGEST = 200  # pixels

worker = Worker()


@worker.handler("resize")
def resize(job: Job) -> dict:
    """Computes the size of a thumbnail. A plain function runs in a thread of its own."""
    width, height = job.input["width"], job.input["height"]
    if width <= 0 or height <= 0:
        raise Fatal("an image has at least one pixel")  # retries would not help
    scale = LONGEST / max(width, height)
    job.log(f"scaled by {scale:g}")
    return {"width": int(width * scale), "height": int(height * scale)}


@worker.handler("describe")
async def describe(job: Job) -> str:
    """A coroutine runs in the worker's event loop. It is canceled when the job is no longer needed.
    """
    job.progress("looking for words")
    await asyncio.sleep(0.01)
    return f"{job.input['width']} by {job.input['height']} pixels"


@worker.handler("pay")
def pay(job: Job) -> dict:
    """Requests a payment from a bank. The bank recognizes a repetition by the key, which is the
    same for all attempts; job.id is not."""
    return {"charged": job.input["amount"], "idempotency_key": job.key}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run()  # until SIGTERM or Ctrl-C
