"""Params that are too large to be sent with each job. The jobs of one step request them once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Dict, Optional

from ._claims import Claim
from ._transport import Backoff, Transport, part, segment
from .errors import ProblemError, hopeless

MOST_REMEMBERED = 16  # maximal number of steps


class _Params:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: Optional[Dict[str, Any]] = None


class LargeParams:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._known: "OrderedDict[str, _Params]" = OrderedDict()

    def _of(self, key: str) -> _Params:
        with self._lock:
            known = self._known.setdefault(key, _Params())
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            return known

    def fetch(self, claim: Claim) -> bool:
        """Sets the params of a job. Returns False if they are not available, or the job is no
        longer needed."""
        if not claim.params_key:
            return True
        known, backoff = self._of(claim.params_key), Backoff()
        with known.lock:
            while known.value is None:
                try:
                    path = f"/jobs/{segment(claim.job.id)}/params?token={segment(claim.token)}"
                    known.value = part(self._transport.call("GET", path), "params", dict)
                except Exception as e:  # after any error the job still waits for them
                    if isinstance(e, ProblemError) and hopeless(e):
                        return False
                    if claim.job.wait_canceled(backoff.pause(e)):
                        return False
            claim.job.params = known.value
        return not claim.canceled
