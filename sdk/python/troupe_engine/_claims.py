"""The jobs held by a worker: renewing their claims, sending status texts, receiving cancellations."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._streams import sender
from ._transport import Backoff, Transport, encode, part
from .errors import TroupeError
from .job import Job

MOST_CLAIMS = 500  # maximal number of claims in one request
SHORTEST_BEAT = 0.02  # seconds
STATUS_PAUSE = 0.25  # minimal seconds between two status texts of a job
LOG_PAUSE = 0.5  # seconds between sending the logs of jobs
MOST_LOGGED = 512 << 10  # approximate maximal bytes of logs in one request, because members reject requests that are too large
PARTING_TIME = 2.0  # seconds for the final messages
LONGEST_BEAT = 30.0  # time limit for a heartbeat in seconds, unless a claim would expire earlier


class Claim:
    """A job held by this worker until it is reported, returned or canceled."""

    def __init__(self, told: Mapping[str, Any], heartbeat: float) -> None:
        self.job = Job(told)
        self.token: str = told["token"]
        self.params_key: str = told.get("params_key") or ""
        self.patience = (told.get("lease_ms") or 60_000) / 3000  # time limit for a heartbeat, so that two more are in time
        self.every = max(min(self.patience, heartbeat), SHORTEST_BEAT)
        self.beat_at = time.monotonic() + self.every
        self.status_text: Optional[str] = None  # status text to send
        self.status_at = 0.0
        self.told_at = -STATUS_PAUSE
        self.log_at = time.monotonic() + LOG_PAUSE  # time to send the job's log next
        self.begun = False  # its handler was called
        self.canceled = False
        self.interrupt: Optional[Callable[[], None]] = None  # stops the handler

    def held(self, with_status: bool = True) -> Dict[str, Any]:
        held: Dict[str, Any] = {"job": self.job.id, "token": self.token}
        if with_status and self.status_text is not None:
            held["status_text"] = self.status_text
        return held

    def due(self, quiet_until: float) -> float:
        told = self.log_at if self.status_text is None else min(self.log_at, self.status_at)
        return min(self.beat_at, max(told, quiet_until))


class Claims:
    """All claims of a worker. They are renewed by a thread of its own, so that claims hold whatever
    handlers do."""

    def __init__(self, transport: Transport, path: str, running_after: float, logger: logging.Logger) -> None:
        self._transport, self._path, self._running_after, self._logger = transport, path, running_after, logger
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._held: Dict[str, Claim] = {}
        self._closed = False
        self._outage = False  # the last heartbeat had no answer, and this was logged
        self._backoff = Backoff()  # for logs and status texts, because a proxy may reject only those
        self._quiet_until = 0.0  # until then only heartbeats are sent

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def add(self, claim: Claim) -> None:
        claim.job._on_progress = lambda text: self._set_status(claim, text)
        claim.job._streams.open(sender(self._transport, claim.job.id, claim.token), lambda: claim.canceled)
        claim.status_text, claim.status_at = "running", time.monotonic() + self._running_after
        with self._lock:
            old = self._held.get(claim.job.id)
            self._held[claim.job.id] = claim
            self._changed.notify()
        if old is not None:  # its claim is lost, otherwise the job would not have been delivered again
            self.cancel(old)

    def remove(self, claim: Claim) -> None:
        with self._lock:
            if self._held.get(claim.job.id) is claim:  # it may have been delivered again meanwhile
                del self._held[claim.job.id]

    def holds(self, claim: Claim) -> bool:
        with self._lock:
            return self._held.get(claim.job.id) is claim

    def start(self, claim: Claim) -> bool:
        """Returns whether to call the handler; false if the job was canceled or returned."""
        with self._lock:
            claim.begun = not claim.canceled
            return claim.begun

    def on_cancel(self, claim: Claim, interrupt: Callable[[], None]) -> None:
        with self._lock:
            claim.interrupt = interrupt
            canceled = claim.canceled
        if canceled:
            interrupt()

    def cancel(self, claim: Claim) -> None:
        with self._lock:
            if claim.canceled:
                return
            claim.canceled = True
            interrupt = claim.interrupt
        claim.job._canceled.set()
        if interrupt is not None:
            interrupt()

    def drop_waiting(self) -> List[Claim]:
        """Removes and returns the jobs that have not started."""
        with self._lock:
            waiting = [c for c in self._held.values() if not c.begun and not c.canceled]
            for claim in waiting:
                claim.canceled = True
                claim.job._canceled.set()
        return waiting

    def all(self) -> List[Claim]:
        with self._lock:
            return list(self._held.values())

    def _set_status(self, claim: Claim, text: str) -> None:
        with self._lock:
            claim.status_text, claim.status_at = text, max(time.monotonic(), claim.told_at + STATUS_PAUSE)
            self._changed.notify()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def keep(self) -> None:
        """Works until it is closed."""
        while True:
            with self._lock:
                while not self._closed and (pause := self._pause()) != 0.0:
                    self._changed.wait(pause)
                if self._closed:
                    return
                due = self._take_due()
            for i in range(0, len(due), MOST_CLAIMS):
                self._beat(due[i : i + MOST_CLAIMS])

    def _pause(self) -> Optional[float]:
        """Returns the time without work; None until something changes."""
        if not self._held:
            return None
        return max(min(c.due(self._quiet_until) for c in self._held.values()) - time.monotonic(), 0.0)

    def _take_due(self) -> List[Tuple[Claim, Dict[str, Any]]]:
        """Returns the claims to renew now, including those that are nearly due."""
        now, due, room = time.monotonic(), [], MOST_LOGGED
        for claim in self._held.values():
            talks = now >= self._quiet_until
            reports = talks and claim.status_text is not None and claim.status_at <= now
            looked = talks and claim.log_at <= now and room > 0  # otherwise the next request sends it
            logged = looked and claim.begun and claim.job._log.waits()
            if looked:
                claim.log_at = now + LOG_PAUSE
            if not reports and not logged and claim.beat_at > now + claim.every / 4:
                continue
            held = claim.held(with_status=reports)
            if logged:
                held.update(claim.job._log.part())
                room -= sum(len(line["text"].encode("utf-8")) + 64 for line in held["lines"])
            due.append((claim, held))
            claim.beat_at = now + claim.every
            if reports:
                claim.status_text, claim.told_at = None, now
        return due

    def _beat(self, due: List[Tuple[Claim, Dict[str, Any]]]) -> None:
        """Renews claims. The next heartbeat makes up for a lost one, because a claim lasts for at
        least two. If logs and status texts are rejected, they are retried with backoff, and the claims
        are renewed without them at once."""
        telling = any("status_text" in held or "lines" in held for _, held in due)
        body = encode({"load": len(self), "claims": [held for _, held in due]})
        patience = min(LONGEST_BEAT, *(claim.patience for claim, _ in due))
        try:
            answer = self._transport.call("POST", self._path + "/heartbeat", body, timeout=patience)
            canceled = {str(job) for job in part(answer, "canceled", list)}
        except Exception as e:  # after any error the next heartbeat must follow
            if not self._outage and (self._backoff.fresh or not telling) and not self._closed:
                self._logger.warning("the claims of %d jobs could not be prolonged, trying on: %s", len(due), e)
                self._outage = True
            if telling:
                self._quiet_until = time.monotonic() + self._backoff.pause(e)
                plain = [(claim, claim.held(with_status=False)) for claim, _ in due if self.holds(claim)]
                if plain and not self._closed:
                    self._beat(plain)
            return
        self._outage = False
        if telling:
            self._backoff, self._quiet_until = Backoff(), 0.0
        for claim, held in due:
            if "lines" in held:
                claim.job._log.arrived()
            if held["job"] in canceled:
                self.cancel(claim)

    def give_back(self, claims: List[Claim]) -> None:
        """Returns jobs so that others get them at once. If this fails, others get them when the
        claims expire."""
        for i in range(0, len(claims), MOST_CLAIMS):
            group = claims[i : i + MOST_CLAIMS]
            body = encode({"claims": [c.held(with_status=False) for c in group]})
            try:
                self._transport.call("POST", self._path + "/release", body, timeout=PARTING_TIME)
            except TroupeError as e:
                self._logger.warning("%d jobs could not be given back, others get them when the claims run out: %s", len(group), e)
