"""A worker that polls a member for jobs, so it works behind any firewall."""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import ssl
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Union

from ._claims import PARTING_TIME, Claim, Claims
from ._hands import Hands
from ._params import LargeParams
from ._reports import SENDERS, Reporter, failure_report, output_report
from ._transport import Backoff, Breaker, BrokenOff, Servers, Transport, encode, part, segment
from .errors import DeniedError, NotFoundError, TroupeError
from .job import Handler

MOST_JOBS = 1000  # maximal jobs in one answer
EMPTY_PAUSE = 0.2  # seconds between polls of a member that answers at once despite the requested wait
REGISTER_PAUSE = 2.0  # maximal seconds between two tries to register
LEAST_BEAT_TIME = 1.0  # minimal time limit of a heartbeat in seconds, so that the next one arrives before the worker counts as gone
HEED_TIME = 1.0  # seconds for canceled handlers to return at the end


class Worker:
    """Carries out jobs of the services for which it has handlers. It can be run once.

    Promises:
    - At most `concurrency` handlers run at once.
    - A result is sent until a member has answered, so a job may run more than once but is never
      lost.
    - A job is canceled when it is no longer needed.
    - When the worker stops, it starts no new job and returns waiting jobs at once. Running jobs may
      finish within `grace`.

    servers:      addresses of members, as a list or separated by commas; the next one is used
                  if one does not answer; default TROUPE_SERVER, or http://127.0.0.1:8070
    token:        authenticates the worker to the members; default TROUPE_TOKEN
    id:           id of the worker; the default is derived from host, process and time
    labels:       capabilities such as "gpu": jobs that require labels go only to workers with all
    concurrency:  maximal number of concurrent handlers
    prefetch:     additional jobs to hold, so that one is available when a handler finishes
    wait:         maximal seconds that a poll waits at the member
    grace:        seconds for running jobs to finish when the worker stops
    heartbeat:    seconds between heartbeats, and between checks for canceled jobs
    running_after:   seconds until a job is reported as running; shorter jobs save this message
    logger:       receives errors, never the contents of jobs; default logging.getLogger("troupe")
    ssl_context:  for https
    decimals:     parse numbers with a point or an exponent as decimal.Decimal, with all digits
    """

    def __init__(self, servers: Servers = None, *, token: Optional[str] = None, id: Optional[str] = None, labels: Sequence[str] = (),
                 concurrency: int = 64, prefetch: int = 0, wait: float = 20.0, grace: float = 10.0, heartbeat: float = 5.0,
                 running_after: float = 0.25, logger: Optional[logging.Logger] = None, ssl_context: Optional[ssl.SSLContext] = None,
                 decimals: bool = False) -> None:
        self.id = id or f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
        self._labels = list(labels)
        self._concurrency, self._prefetch = max(concurrency, 1), max(prefetch, 0)
        self._wait, self._grace, self._heartbeat = min(max(wait, 0.0), 60.0), max(grace, 0.0), max(heartbeat, 0.01)
        self._logger = logger or logging.getLogger("troupe")
        self._handlers: Dict[str, Handler] = {}
        self._transport = Transport(servers, token, timeout=30.0, context=ssl_context, decimals=decimals)
        self._path = "/workers/" + segment(self.id)
        self._claims = Claims(self._transport, self._path, running_after, self._logger)
        self._reporter = Reporter(self._transport, self._path, self._wanted_next, lambda jobs: self._take(self._read(jobs)), self._logger)
        self._hands = Hands(self._claims, LargeParams(self._transport), self._ended, self._leave)
        self._changed = threading.Condition()
        self._waiting: Deque[Claim] = deque()  # claimed jobs without a free slot
        self._at_work = 0
        self._stopping = threading.Event()
        self._wake: "queue.SimpleQueue[None]" = queue.SimpleQueue()  # a signal handler may put something into it at any moment
        self._poll, self._announcing = Breaker(), Breaker()
        self._denied: Optional[DeniedError] = None  # reason why no member accepts the worker

    def handle(self, service: str, handler: Handler) -> None:
        """Registers the handler of a service, a function or a coroutine function; call it before
        run.

        Raises ValueError if the service already has one, and TypeError if the handler is no
        function.
        """
        if not isinstance(service, str):
            raise TypeError(f"the name of a service is a text, not {service!r}: write handle(service, handler)")
        if not service or "\x00" in service:
            raise ValueError(f"{service!r} is no name of a service")
        if not callable(handler):
            raise TypeError(f"the handler of the service {service!r} is no function but {handler!r}")
        if service in self._handlers:
            raise ValueError(f"the service {service!r} has a handler already: register one for each service")
        self._handlers[service] = handler

    def handler(self, service: Union[str, Handler]) -> Any:
        """Registers a handler as a decorator: @worker.handler("resize"), or @worker.handler for a
        service named like the function."""
        if callable(service):
            self.handle(service.__name__, service)
            return service

        def register(handler: Handler) -> Handler:
            self.handle(service, handler)
            return handler

        return register

    def stop(self) -> None:
        """Stops run; it may be called from any thread and from a signal handler."""
        self._wake.put(None)

    def run(self, *, signals: bool = True) -> None:
        """Works until stop is called, or SIGTERM or SIGINT arrives; a second signal has its usual
        effect.

        Signals are handled only in the main thread. Raises DeniedError if the token is missing,
        wrong or of another role.
        """
        if not self._handlers:
            raise ValueError("there is no handler, so there is nothing to offer")
        restore = self._heed_signals() if signals and threading.current_thread() is threading.main_thread() else None
        self._hands.open()
        announcer = self._begin("announce", self._announce)
        poller = self._begin("poll", self._poll_loop)
        self._begin("claims", self._claims.keep)
        for _ in range(SENDERS):
            self._begin("reports", self._reporter.send)
        try:
            self._wake.get()
            if restore is not None:
                restore()
            self._stop(announcer, poller)
        finally:
            self._stopping.set()
            self._claims.close()
            self._reporter.close()
            self._hands.close()
            self._transport.close()
        if self._denied is not None:
            raise self._denied

    def _deny(self, error: DeniedError) -> bool:
        """Stops run if no member accepts the token or its role, because retries would not help."""
        denied = error.status in (401, 403)
        if denied:
            self._denied = error
            self.stop()
        return denied

    def _begin(self, name: str, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, name="troupe-" + name, daemon=True)
        thread.start()
        return thread

    def _heed_signals(self) -> Callable[[], None]:
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore

    def _stop(self, announcer: threading.Thread, poller: threading.Thread) -> None:
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        self._announcing.break_off()
        announcer.join()
        if self._denied is None:  # otherwise it would not be accepted
            self._say_goodbye()
        self._poll.break_off()
        poller.join()  # so that no more jobs are claimed
        self._give_up_waiting()
        if self._finished(self._grace):
            return
        left = self._claims.all()
        self._logger.warning("%d jobs are left unfinished, the member will give them to others", len(left))
        for claim in left:
            self._claims.cancel(claim)
        self._finished(HEED_TIME)  # handlers that react to the cancellation return at once
        self._claims.give_back([c for c in left if not self._claims.holds(c)])

    def _give_up_waiting(self) -> None:
        dropped = self._claims.drop_waiting()
        self._claims.give_back(dropped)
        with self._changed:
            waiting = list(self._waiting)
            self._waiting.clear()
        for claim in waiting:
            self._claims.remove(claim)

    def _finished(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._at_work == 0, seconds)

    # Registration.

    def _announce(self) -> None:
        """Registers the worker and sends heartbeats. It registers again with a member that does not
        know it (any longer)."""
        registered, failing = self._register(), False
        while registered and not self._stopping.wait(self._heartbeat):
            try:
                body = encode({"load": len(self._claims)})
                answer = self._transport.call("POST", self._path + "/heartbeat", body, timeout=max(self._heartbeat, LEAST_BEAT_TIME),
                                              breaker=self._announcing)
                known = part(answer, "registered", bool)
            except BrokenOff:
                return
            except Exception as e:  # after any error heartbeats continue
                if isinstance(e, DeniedError) and self._deny(e):
                    return
                if not failing:
                    self._logger.warning("no member hears from this worker, trying on: %s", e)
                failing = True
                continue
            failing = False
            if not known:
                registered = self._register()

    def _register(self) -> bool:
        me = encode({"services": sorted(self._handlers), "labels": self._labels})
        failing = False
        while not self._stopping.is_set():
            try:
                self._transport.call("PUT", self._path, me, breaker=self._announcing)
                self._logger.info("registered as %s for %s", self.id, ", ".join(sorted(self._handlers)))
                return True
            except BrokenOff:
                return False
            except Exception as e:  # any error may pass soon
                if isinstance(e, DeniedError) and self._deny(e):
                    return False
                if not failing:
                    self._logger.warning("the worker is not registered yet, trying on: %s", e)
                failing = True
                self._stopping.wait(min(REGISTER_PAUSE, self._heartbeat))
        return False

    def _say_goodbye(self) -> None:
        try:
            self._transport.call("DELETE", self._path, timeout=PARTING_TIME)
        except NotFoundError:
            pass
        except TroupeError as e:
            self._logger.warning("no member was told that this worker ends, it will be noticed by its silence: %s", e)

    # Receiving jobs.

    def _poll_loop(self) -> None:
        backoff = Backoff()
        while (room := self._room()) > 0:
            begun = time.monotonic()
            try:
                jobs = self._ask(min(room, MOST_JOBS))
            except BrokenOff:
                return
            except Exception as e:  # after any error polling continues
                if isinstance(e, DeniedError) and self._deny(e):
                    return
                if backoff.fresh:
                    self._logger.warning("no member gives jobs, trying on: %s", e)
                self._stopping.wait(backoff.pause(e))
                continue
            backoff = Backoff()
            self._take(jobs)
            if not jobs and time.monotonic() - begun < min(EMPTY_PAUSE, self._wait):
                self._stopping.wait(EMPTY_PAUSE)

    def _room(self) -> int:
        """Waits until there is room for jobs and returns how much; 0 if the worker stops."""
        with self._changed:
            free = lambda: self._concurrency + self._prefetch - self._at_work - len(self._waiting)  # noqa: E731
            self._changed.wait_for(lambda: self._stopping.is_set() or free() > 0)
            return 0 if self._stopping.is_set() else free()

    def _ask(self, most: int) -> List[Claim]:
        ask = {**self._wanted(most), "wait_ms": int(self._wait * 1000)}
        answer = self._transport.call("POST", self._path + "/poll", encode(ask), wait=self._wait, breaker=self._poll)
        return self._read(part(answer, "jobs", list))

    def _wanted(self, most: int) -> Dict[str, Any]:
        return {"services": sorted(self._handlers), "labels": self._labels, "max": most}

    def _read(self, jobs: List[Any]) -> List[Claim]:
        claims = [Claim(told, self._heartbeat) for told in jobs]
        for claim in claims:
            if claim.job.service not in self._handlers:
                raise TroupeError(f"a member gave a job of the service {claim.job.service!r}, which was not asked for")
        return claims

    def _take(self, claims: List[Claim]) -> None:
        """Starts jobs when there is a free slot. If the worker is stopping, it returns them."""
        with self._changed:
            late = self._stopping.is_set()
            if not late:
                for claim in claims:
                    self._claims.add(claim)
                self._waiting.extend(claims)
        if late:
            self._claims.give_back(claims)
        self._begin_waiting()

    def _wanted_next(self, most: int) -> Optional[Dict[str, Any]]:
        """Returns the request for jobs to send with reports: each new job replaces an ended one."""
        return None if self._stopping.is_set() else self._wanted(most)

    def _begin_waiting(self) -> None:
        """Starts the oldest jobs for which there is a slot."""
        while True:
            with self._changed:
                if self._stopping.is_set() or not self._waiting or self._at_work >= self._concurrency:
                    return
                claim = self._waiting.popleft()
                self._at_work += 1
            self._hands.carry_out(claim, self._handlers[claim.job.service])

    # Ending jobs.

    def _ended(self, claim: Claim, output: Any, error: Optional[BaseException]) -> None:
        """Reports the result of a job, unless it was canceled or given up at the end of the grace
        period; then it is not reported as failed."""
        if claim.canceled:
            self._leave(claim)
            return
        done = lambda: self._leave(claim)  # noqa: E731
        if error is None:
            self._reporter.deliver(output_report(claim.job, claim.token, output, done))
        else:
            self._reporter.deliver(failure_report(claim.job, claim.token, error, done))

    def _leave(self, claim: Claim) -> None:
        """Removes a job and frees its slot."""
        self._claims.remove(claim)
        with self._changed:
            self._at_work -= 1
            self._changed.notify_all()
        self._begin_waiting()
