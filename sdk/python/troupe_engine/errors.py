"""Errors between a program and Troupe."""

from __future__ import annotations

import http
import json
from typing import Any, Dict, List, Mapping, Optional, Type


class TroupeError(Exception):
    """The base class of all errors of this package."""


class UnreachableError(TroupeError):
    """No address answered: there is no listener, the connection broke, or it took too long."""


class JobCanceled(TroupeError):
    """The job is no longer needed. The result or exception of its handler is not reported."""


class Failed(TroupeError):
    """Raised by a handler to fail the job with details, which are shown with the attempt beside the
    text.

    Details may be any JSON of up to 64 KiB; other values are converted to text.
    """

    def __init__(self, text: str = "", details: Any = None) -> None:
        super().__init__(text)
        self.details = details


class Fatal(Failed):
    """Raised by a handler to fail the job without retries."""


class ProblemError(TroupeError):
    """A refusal. Its text and fields say what is wrong, where, and what to do.

    There is a subclass for each code: InvalidError, NotFoundError, ConflictError, LimitError,
    BusyError, DeniedError and InternalError.
    """

    _strange = False  # the answer came from a proxy, not from a member

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float = 0.0) -> None:
        self.status = status
        self.problem: Dict[str, Any] = dict(problem)
        self.code: str = problem.get("code") or _code_of(status)
        self.message: str = problem.get("message") or ""
        self.field: str = problem.get("field") or ""
        self.hint: str = problem.get("hint") or ""
        self.detail: str = problem.get("detail") or ""
        self.errors: List[Dict[str, Any]] = problem.get("errors") or []
        self.problems: List[Dict[str, Any]] = problem.get("problems") or []
        self.request_id: str = problem.get("request_id") or ""
        self.retry_after = retry_after
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.status} {_title(self.status)}" + (f": {self.detail}" if self.detail else "")]
        for p in self.problems:
            lines.append(f"  {p.get('line', 0)}:{p.get('column', 0)}: {p.get('severity')}: {p.get('path', '')}: {p.get('message')}")
        for f in self.errors:
            lines.append(f"  {f.get('field', '')}: {f.get('message')}")
        return "\n".join(lines)

    @property
    def temporary(self) -> bool:
        """The same request may succeed later, or at another member."""
        return self.status in (408, 429, 502, 503, 504)


class InvalidError(ProblemError):
    """The request is malformed."""


class NotFoundError(ProblemError):
    """The named object does not exist."""


class ConflictError(ProblemError):
    """The request conflicts with the current state: another task has the key, another worker has
    the job."""


class LimitError(ProblemError):
    """The request exceeds a size limit of the member."""


class BusyError(ProblemError):
    """The member is overloaded, leaving, or currently unable to write. Several retries were made.
    """


class DeniedError(ProblemError):
    """The token is missing or wrong."""


class InternalError(ProblemError):
    """A bug of the member. Its log contains the id of the request, in `request_id`."""


_BY_CODE: Dict[str, Type[ProblemError]] = {
    "invalid": InvalidError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "limit": LimitError,
    "busy": BusyError,
    "denied": DeniedError,
    "internal": InternalError,
}


def refusal(status: int, body: bytes, retry_after: Optional[str] = None) -> ProblemError:
    """Returns the error for an answer."""
    document = _document(body)
    error = of_problem(status, document, _seconds(retry_after))
    error._strange = "code" not in document
    return error


def unfit(error: ProblemError) -> bool:
    """Returns whether the content of the request was refused."""
    return error.status in (400, 413, 422)


def hopeless(error: ProblemError) -> bool:
    """Returns whether a retry would be refused again. A proxy may temporarily redirect or fail to
    route a request, so only its answer that a request is too large counts as final. Whether the
    worker is accepted is determined by its registration."""
    if error.temporary or not 400 <= error.status < 500 or error.status in (401, 403):
        return False
    return not error._strange or error.status == 413


def of_problem(status: int, problem: Mapping[str, Any], retry_after: float = 0.0) -> ProblemError:
    code = problem.get("code") or _code_of(status)
    return _BY_CODE.get(code, ProblemError)(status, problem, retry_after)


def _document(body: bytes) -> Dict[str, Any]:
    """Returns the problem in a body; a proxy may send anything."""
    try:
        document = json.loads(body)
    except ValueError:
        return {"detail": body[:200].decode("utf-8", "replace")}
    if not isinstance(document, dict):
        return {}
    if "code" not in document and isinstance(document.get("error"), str):
        return {"message": document["error"], "detail": document["error"]}
    return document


def _seconds(retry_after: Optional[str]) -> float:
    return min(float(retry_after), 3600.0) if retry_after and retry_after.isdigit() else 0.0


def _title(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _code_of(status: int) -> str:
    by_status = {401: "denied", 403: "denied", 404: "not_found", 409: "conflict", 413: "limit", 429: "busy", 502: "busy", 503: "busy", 504: "busy"}
    return by_status.get(status) or ("invalid" if status < 500 else "internal")
