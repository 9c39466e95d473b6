"""Metrics of a job."""

from __future__ import annotations

import math
import threading
from typing import Any, Dict, List, Mapping, Optional

from ._transport import encode

MOST_NUMBERS = 100  # maximal number of different names and labels
MOST_NUMBER_BYTES = 32 << 10  # maximal bytes of all names and labels


class Numbers:
    """The metrics of a job, added up by name and labels, within the limits of members; more are
    ignored."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: Dict[bytes, Dict[str, Any]] = {}
        self._bytes = 0

    def add(self, name: str, value: float, labels: Optional[Mapping[str, Any]]) -> None:
        """Adds a value. It ignores values that are no numbers or would overflow the sum, and
        metrics without a name."""
        told = {k: str(v) for k, v in sorted((labels or {}).items())}
        try:
            value = float(value)
            key = encode([name, told])
        except (TypeError, ValueError, OverflowError):
            return
        if not name or not math.isfinite(value):
            return
        with self._lock:
            of = self._place(key, name, told)
            if of is not None and math.isfinite(of["sum"] + value):
                of.update(count=of["count"] + 1, sum=of["sum"] + value, last=value)

    def _place(self, key: bytes, name: str, labels: Dict[str, str]) -> Optional[Dict[str, Any]]:
        if key not in self._of:
            if len(self._of) == MOST_NUMBERS or self._bytes + len(key) > MOST_NUMBER_BYTES:
                return None
            self._bytes += len(key)
            self._of[key] = {"name": name, **({"labels": labels} if labels else {}), "count": 0, "sum": 0.0, "last": 0.0}
        return self._of[key]

    def told(self) -> List[Dict[str, Any]]:
        """Returns the metrics in order of their first value."""
        with self._lock:
            return [dict(of) for of in self._of.values() if of["count"]]
