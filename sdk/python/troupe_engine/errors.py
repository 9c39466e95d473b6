"""What can go wrong between a program and Troupe."""

from __future__ import annotations

import http
import json
from typing import Any, Dict, List, Mapping, Optional, Type


class TroupeError(Exception):
    """The parent of all errors of this package."""


class UnreachableError(TroupeError):
    """No address answered: nobody listens there, the connection broke off or took too long."""


class JobCanceled(TroupeError):
    """Nobody waits for a job any longer. What its handler returns or raises is not reported."""


class Failed(TroupeError):
    """Raised by a handler: the job has failed, and whoever looks at the attempt finds the details beside the text.

    Details may be anything that is JSON, of up to 64 KiB; what is not is told as a text.
    """

    def __init__(self, text: str = "", details: Any = None) -> None:
        super().__init__(text)
        self.details = details


class Fatal(Failed):
    """Raised by a handler: the job has failed, and trying it again would be of no use."""


class ProblemError(TroupeError):
    """A refusal. Its text says what is wrong, where, and what to do; so do its fields.

    There is a subclass for each kind: InvalidError, NotFoundError, ConflictError, LimitError, BusyError, DeniedError and
    InternalError.
    """

    _strange = False  # no member has said so, but something on the way to it

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float = 0.0) -> None:
        self.status = status
        self.problem: Dict[str, Any] = dict(problem)
        self.kind: str = problem.get("kind") or _kind_of(status)
        self.what: str = problem.get("what") or ""
        self.where: str = problem.get("where") or ""
        self.hint: str = problem.get("hint") or ""
        self.detail: str = problem.get("detail") or ""
        self.faults: List[Dict[str, Any]] = problem.get("faults") or []
        self.problems: List[Dict[str, Any]] = problem.get("problems") or []
        self.request: str = problem.get("request") or ""
        self.retry_after = retry_after
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.status} {_title(self.status)}" + (f": {self.detail}" if self.detail else "")]
        for p in self.problems:
            lines.append(f"  {p.get('line', 0)}:{p.get('column', 0)}: {p.get('severity')}: {p.get('path', '')}: {p.get('msg')}")
        for f in self.faults:
            lines.append(f"  {f.get('where', '')}: {f.get('what')}")
        return "\n".join(lines)

    @property
    def temporary(self) -> bool:
        """The same request may be taken later, or by another member."""
        return self.status in (408, 429, 502, 503, 504)


class InvalidError(ProblemError):
    """The request is not as it has to be."""


class NotFoundError(ProblemError):
    """What the request names is not there."""


class ConflictError(ProblemError):
    """It does not fit to what there is: another task has the key, another worker the job."""


class LimitError(ProblemError):
    """It is larger, deeper or longer than a limit of the member allows."""


class BusyError(ProblemError):
    """The member is full, leaves, or cannot write at the moment. It was asked several times."""


class DeniedError(ProblemError):
    """The token is missing or wrong."""


class InternalError(ProblemError):
    """A bug of the member. The id of the request, in `request`, is in its log."""


_BY_KIND: Dict[str, Type[ProblemError]] = {
    "invalid": InvalidError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "limit": LimitError,
    "busy": BusyError,
    "denied": DeniedError,
    "internal": InternalError,
}


def refusal(status: int, body: bytes, retry_after: Optional[str] = None) -> ProblemError:
    """The error that an answer stands for."""
    document = _document(body)
    error = of_problem(status, document, _seconds(retry_after))
    error._strange = "kind" not in document
    return error


def unfit(error: ProblemError) -> bool:
    """It is what was sent which is not taken."""
    return error.status in (400, 413, 422)


def hopeless(error: ProblemError) -> bool:
    """The same request would be refused again. Something on the way to the member may send it elsewhere for a while, or not know the way; it is
    believed only that what is sent is too large. Whether the worker is let in is found out by what it says of itself."""
    if error.temporary or not 400 <= error.status < 500 or error.status in (401, 403):
        return False
    return not error._strange or error.status == 413


def of_problem(status: int, problem: Mapping[str, Any], retry_after: float = 0.0) -> ProblemError:
    kind = problem.get("kind") or _kind_of(status)
    return _BY_KIND.get(kind, ProblemError)(status, problem, retry_after)


def _document(body: bytes) -> Dict[str, Any]:
    """The problem in a body. A proxy may answer with anything."""
    try:
        document = json.loads(body)
    except ValueError:
        return {"detail": body[:200].decode("utf-8", "replace")}
    if not isinstance(document, dict):
        return {}
    if "kind" not in document and isinstance(document.get("error"), str):
        return {"what": document["error"], "detail": document["error"]}
    return document


def _seconds(retry_after: Optional[str]) -> float:
    return min(float(retry_after), 3600.0) if retry_after and retry_after.isdigit() else 0.0


def _title(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _kind_of(status: int) -> str:
    by_status = {401: "denied", 403: "denied", 404: "not_found", 409: "conflict", 413: "limit", 429: "busy", 502: "busy", 503: "busy", 504: "busy"}
    return by_status.get(status) or ("invalid" if status < 500 else "internal")
