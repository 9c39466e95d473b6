"""Reports the end of jobs, in batches when many end, and receives the next jobs in the answer."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from ._transport import Backoff, Transport, encode, part
from .errors import ProblemError, TroupeError, hopeless, of_problem, unfit
from .job import MOST_LOG, Job, cut, failure_of, text_of, told_by

MOST_REPORTS = 200  # maximal reports in one request
REPORT_BYTES = 1 << 20
SENDERS = 2  # concurrent requests; further reports wait for the next one


class Delivery:
    """A report, with the action to take when it is delivered."""

    def __init__(self, job: str, token: str, body: bytes, failed: bool, done: Callable[[], None]) -> None:
        self.job, self.token, self.body, self.failed, self.done = job, token, body, failed, done
        self.backoff = Backoff()  # used after it was refused alone
        self.again_at = 0.0

    def refuse(self, error: ProblemError) -> None:
        """Turns a result that the member refuses into a failure. Otherwise the member would repeat
        the job without success."""
        self.failed = True
        self.body = encode({"job": self.job, "token": self.token, "error": f"the result was rejected: {error}", "fatal": True})


def output_report(job: Job, token: str, output: Any, done: Callable[[], None]) -> Delivery:
    """Returns the report for a handler's result."""
    report: Dict[str, Any] = {"job": job.id, "token": token, "output": output, **told_by(job)}
    try:
        return Delivery(job.id, token, encode(report), False, done)
    except Exception as e:  # its parts may raise anything
        error = cut(f"the handler's result cannot be sent: {text_of(e)}", MOST_LOG)
        report = {"job": job.id, "token": token, "error": error, "fatal": True, **told_by(job)}
        return Delivery(job.id, token, encode(report), True, done)


def failure_report(job: Job, token: str, error: BaseException, done: Callable[[], None]) -> Delivery:
    """Returns the report for an exception raised by a handler."""
    report = {"job": job.id, "token": token, **failure_of(job, error), **told_by(job)}
    return Delivery(job.id, token, encode(report), True, done)


class Reporter:
    """Delivers reports until the member has answered or it is closed. It requests as many jobs as
    it reports.

    wanted:  returns the request for new jobs; None if no more are wanted
    take:    takes the new jobs before the reported ones are marked as over
    """

    def __init__(self, transport: Transport, path: str, wanted: Callable[[int], Optional[Dict[str, Any]]], take: Callable[[List[Any]], None],
                 logger: logging.Logger) -> None:
        self._transport, self._path, self._wanted, self._take, self._logger = transport, path, wanted, take, logger
        self._ended: "queue.Queue[Optional[Delivery]]" = queue.Queue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._aside: List[Delivery] = []  # refused alone and sent again alone; bounded by the number of held jobs

    def deliver(self, delivery: Delivery) -> None:
        self._ended.put(delivery)

    def close(self) -> None:
        self._closed.set()
        for _ in range(SENDERS):
            self._ended.put(None)

    def send(self) -> None:
        """Works until it is closed."""
        while not self._closed.is_set():
            for delivery in self._take_aside():
                self._deliver([delivery])
            try:
                first = self._ended.get(timeout=self._pause())
            except queue.Empty:
                continue
            if first is not None:
                self._deliver(self._gather(first))

    def _take_aside(self) -> List[Delivery]:
        """Returns the reports to send again now."""
        now = time.monotonic()
        with self._lock:
            due = [d for d in self._aside if d.again_at <= now]
            self._aside = [d for d in self._aside if d.again_at > now]
        return due

    def _pause(self) -> Optional[float]:
        """Returns the time without reports to send again; None until a report is put aside."""
        with self._lock:
            return max(min(d.again_at for d in self._aside) - time.monotonic(), 0.0) if self._aside else None

    def _put_aside(self, delivery: Delivery, error: ProblemError) -> None:
        """Sends it again later, and others meanwhile."""
        if delivery.backoff.fresh:
            self._logger.warning("the result of job %s is not delivered yet, trying on: %s", delivery.job, error)
        delivery.again_at = time.monotonic() + delivery.backoff.pause(error)
        with self._lock:
            self._aside.append(delivery)

    def _gather(self, first: Delivery) -> List[Delivery]:
        """Adds the reports of other ended jobs."""
        batch, size = [first], len(first.body)
        while len(batch) < MOST_REPORTS and size < REPORT_BYTES:
            try:
                more = self._ended.get_nowait()
            except queue.Empty:
                break
            if more is not None:
                batch.append(more)
                size += len(more.body)
        return batch

    def _deliver(self, batch: List[Delivery]) -> None:
        backoff = Backoff()
        while batch and not self._closed.is_set():
            error: Optional[Exception] = None
            try:
                batch, error = self._try(batch)
            except ProblemError as e:
                if len(batch) > 1 and (hopeless(e) or unfit(e)):
                    for delivery in batch:  # an invalid report must not block the others
                        self._deliver([delivery])
                    return
                error, batch = e, [d for d in batch if self._again(d, e)]
                if unfit(e):
                    for delivery in batch:
                        self._put_aside(delivery, e)
                    return
            except Exception as e:  # after any error the results still have to be delivered
                error = e
            if batch and error is not None:
                if backoff.fresh:
                    self._logger.warning("%d results are not delivered yet, trying on: %s", len(batch), error)
                self._closed.wait(backoff.pause(error))

    def _try(self, batch: List[Delivery]) -> "tuple[List[Delivery], Optional[ProblemError]]":
        """Sends a batch and returns the reports to send again."""
        answer = self._transport.call("POST", self._path + "/reports", self._body(batch))
        problems = self._problems(answer, len(batch))
        if "jobs" in answer:
            self._take(part(answer, "jobs", list))
        again: List[Delivery] = []
        last: Optional[ProblemError] = None
        for delivery, problem in zip(batch, problems):
            if problem is None:
                delivery.done()
                continue
            error = of_problem(problem["status"], problem)
            if self._again(delivery, error):
                again.append(delivery)
                last = error
        return again, last

    def _body(self, batch: List[Delivery]) -> bytes:
        wanted = self._wanted(len(batch))
        more = b"" if wanted is None else b',"next":' + encode(wanted)
        return b'{"reports":[' + b",".join(d.body for d in batch) + b"]" + more + b"}"

    def _problems(self, answer: Any, count: int) -> "List[Optional[Dict[str, Any]]]":
        """Returns the member's problem for each report; None if it was accepted. The whole answer
        is parsed before it is used."""
        items = part(answer, "items", list)
        if len(items) != count:
            raise TroupeError(f"a member has answered {len(items)} reports of {count}")
        problems = [item.get("problem") for item in items if isinstance(item, dict)]
        if len(problems) != count or any(p is not None and not isinstance(part(p, "status", int), int) for p in problems):
            raise TroupeError(f"this is not what a member answers to reports: {str(items)[:200]}")
        return problems

    def _again(self, delivery: Delivery, error: ProblemError) -> bool:
        """Returns whether a refused report is to be sent again (possibly as a failure)."""
        if not hopeless(error):
            return True
        if unfit(error) and not delivery.failed:
            delivery.refuse(error)
            return True
        if error._strange:
            return True
        self._logger.warning("the result of job %s was rejected: %s", delivery.job, error)
        delivery.done()
        return False
