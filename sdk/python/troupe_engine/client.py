"""The client of /v1: publishing flows, starting tasks, following and steering them."""

from __future__ import annotations

import datetime
import ssl
import time
import urllib.parse
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _watch
from ._transport import Backoff, Servers, Transport, encode, segment
from .errors import ProblemError, UnreachableError
from .types import (
    Completed,
    Event,
    Flow,
    Forked,
    Info,
    JobInfo,
    Published,
    QueueInfo,
    LogEntry,
    Run,
    Started,
    Step,
    Task,
    TaskSummary,
    Unit,
    Validation,
    Version,
    Waiting,
    WaitingJob,
    WorkerInfo,
)

LONGEST_WAIT = 25.0  # seconds that one request waits; proxies cut off what takes much longer

Query = List[Tuple[str, str]]
Definition = Union[str, bytes, Mapping[str, Any]]


class Client:
    """Speaks to the members at some addresses; it may be used by several threads.

    Promises: every refusal is a ProblemError that says what is wrong, where, and what to do; a request that is not answered is sent again,
    to the next address first, and has its effect once; watch goes on where it broke off, without a gap and without an event twice.

    servers:      addresses of members, as a list or with commas between them. TROUPE_SERVER, else http://127.0.0.1:8070
    token:        proves the caller to the members; TROUPE_TOKEN
    timeout:      seconds that a member may be silent, what it is to wait for left aside
    retries:      how often all addresses are asked again; watch goes on for as long as it is read
    silence:      seconds that a stream may say nothing, not even that it is alive, before watch connects again
    ssl_context:  for https
    decimals:     numbers with a point or an exponent are read as decimal.Decimal, with all their digits, and not as float
    """

    def __init__(self, servers: Servers = None, *, token: Optional[str] = None, timeout: float = 60.0, retries: int = 6,
                 silence: float = 45.0, ssl_context: Optional[ssl.SSLContext] = None, decimals: bool = False) -> None:
        self._transport = Transport(servers, token, timeout=timeout, context=ssl_context, decimals=decimals)
        self._retries, self._silence = max(retries, 0), silence

    def close(self) -> None:
        """Ends the connections that nobody uses."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Flows.

    def publish(self, flow: str, definition: Definition, *, strict: bool = False) -> Published:
        """Makes a definition (YAML, JSON or a dict) the newest version of a flow. The content of the newest version changes nothing.

        The answer has the warnings about the definition. With strict, a definition with warnings is refused.
        """
        body, kind = _definition(definition)
        return self._call("PUT", f"/flows/{segment(flow)}", body, query=_some(strict=strict), headers={"Content-Type": kind})

    def validate(self, definition: Definition, *, strict: bool = False) -> Validation:
        """Tells all problems of a definition, where strict makes errors of warnings. Nothing is kept."""
        body, kind = _definition(definition)
        return self._call("POST", "/validate", body, query=_some(strict=strict), headers={"Content-Type": kind})

    def flows(self) -> Iterator[Flow]:
        """All flows, newest first."""
        return self._pages("/flows")

    def flow(self, flow: str) -> Flow:
        return self._call("GET", f"/flows/{segment(flow)}")

    def versions(self, flow: str) -> Iterator[Version]:
        """A flow's versions, highest number first."""
        return self._pages(f"/flows/{segment(flow)}/versions")

    def version(self, flow: str, number: int = 0) -> Version:
        """A version with its definition; 0 = the newest published one."""
        return self._call("GET", f"/flows/{segment(flow)}/versions/{number or 'latest'}")

    # Tasks.

    def start(self, flow: str, params: Any = None, *, key: Optional[str] = None, labels: Optional[Mapping[str, str]] = None,
              version: int = 0, wait: float = 0.0) -> Started:
        """Starts a task. With the same key it is the same task, whoever starts it; without one a key is made up for this call.

        With wait (seconds, at most 300) the answer has the task as it is when it has ended or the time is up.
        """
        request: Dict[str, Any] = {"flow": flow, "params": params, "idempotency_key": key or uuid.uuid4().hex, "version": version,
                                   "wait_ms": int(wait * 1000)}
        if labels:
            request["labels"] = dict(labels)
        return self._call("POST", "/tasks", encode(request), wait=wait)

    def tasks(self, *, flow: Optional[str] = None, states: Sequence[str] = (), labels: Optional[Mapping[str, str]] = None,
              created_from: Optional[datetime.datetime] = None, created_to: Optional[datetime.datetime] = None) -> Iterator[TaskSummary]:
        """Searches tasks, newest first: of any of the states, with all of the labels. Times should have a time zone."""
        query: Query = [("flow", flow)] if flow else []
        query += [("state", s) for s in states] + [("label", f"{name}:{text}") for name, text in (labels or {}).items()]
        for name, moment in (("created_from", created_from), ("created_to", created_to)):
            if moment is not None:
                query.append((name, moment.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")))
        return self._pages("/tasks", query)

    def task(self, task: str) -> Task:
        """A task as it is at this moment."""
        return self._call("GET", _path(task))

    def wait(self, task: str, timeout: Optional[float] = None) -> Task:
        """Reads a task when it has ended. One that failed or was canceled is no error. TimeoutError when it takes too long."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONGEST_WAIT if deadline is None else max(min(deadline - time.monotonic(), LONGEST_WAIT), 0.0)
            found: Task = self._call("GET", _path(task), query=[("wait_ms", str(int(left * 1000)))], wait=left)
            if found.get("ended_at"):
                return found
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"task {task} is still {found['state']} after {timeout:g} s")

    def watch(self, task: str, after: str = "") -> Iterator[Event]:
        """Gives a task's events as they happen, from behind the one with an id on, and ends with the task."""
        return _watch.watch(self._transport, task, after, self._silence)

    def cancel(self, task: str, *, gently: bool = False, force: bool = False, request: Optional[str] = None) -> TaskSummary:
        """Ends a task. Gently: what has begun goes on. By force: what undoes and cleans up is ended, too."""
        return self._command(task, "cancel", {"gently": gently, "force": force}, request)

    def pause(self, task: str, *, request: Optional[str] = None) -> TaskSummary:
        """Keeps anything new of a task from starting; what is in flight goes on."""
        return self._command(task, "pause", None, request)

    def resume(self, task: str, *, request: Optional[str] = None) -> TaskSummary:
        """Undoes pause."""
        return self._command(task, "resume", None, request)

    def retry(self, task: str, *, request: Optional[str] = None) -> TaskSummary:
        """Has a failed task go on where it failed."""
        return self._command(task, "retry", None, request)

    def fork(self, task: str, *, version: int = 0, newest: bool = False, from_node: str = "", params: Any = None, key: Optional[str] = None,
             dry_run: bool = False) -> Forked:
        """Starts a task that goes on from the history of one that has ended: steps whose nodes are the same keep their results, what else there was is done again.

        It runs that task's version, the one with a number, or the newest; from_node is done again with all that follows it; without params it has those of that
        task. With dry_run it is said what it would keep and do again, and nothing is started. The same key is the same task, as in start.
        """
        content: Dict[str, Any] = {"version": version, "newest": newest, "from": from_node, "params": params, "dry_run": dry_run,
                                   "idempotency_key": key or uuid.uuid4().hex}
        return self._call("POST", _path(task, "/fork"), encode(content))

    def signal(self, task: str, key: str, value: Any = None, *, by: str = "", request: Optional[str] = None) -> TaskSummary:
        """Sets a key of a task's shared state and wakes whoever waits for it."""
        return self._command(task, "signal", {"key": key, "value": value, "by": by}, request)

    def append(self, task: str, step: str, items: Sequence[Any], *, scope: str = "", request: Optional[str] = None) -> List[int]:
        """Adds units to a fan-out that has begun and gives their indexes."""
        return self._command(task, "append", {"step": step, "scope": scope, "items": list(items)}, request)["units"]

    def complete(self, task: str, step: str, output: Any = None, *, error: Optional[str] = None, unit: int = 0, scope: str = "") -> Completed:
        """Ends a unit of a step whose route is direct, with an output or with an error."""
        content: Dict[str, Any] = {"step": step, "scope": scope, "unit": unit}
        content.update({"error": error} if error is not None else {"output": output})
        return self._command(task, "complete", content, None)

    # What there is to know about a task.

    def steps(self, task: str, *, scope: str = "", step: str = "", states: Sequence[str] = ()) -> Iterator[Step]:
        """The steps of a task, or of a scope in it."""
        return self._pages(_path(task, "/steps"), _some(scope=scope, step=step) + [("state", s) for s in states])

    def units(self, task: str, step: str, *, scope: str = "", visit: int = 0, states: Sequence[str] = ()) -> Iterator[Unit]:
        """The units of a step; of its visits the one with a number, or the newest."""
        return self._pages(_path(task, "/units"), _some(scope=scope, step=step, visit=visit) + [("state", s) for s in states])

    def events(self, task: str, after: str = "") -> Iterator[Event]:
        """A task's history so far, oldest first, from behind an event on."""
        return self._pages(_path(task, "/events"), _some(after=after), cursor="after")

    def runs(self, task: str) -> Iterator[Run]:
        """A task's attempts and steps, in order of their beginning."""
        return self._pages(_path(task, "/runs"))

    def logs(self, task: str, *, node: str = "", unit: Optional[int] = None, attempt: int = 0, stream: str = "", after: str = "",
             follow: bool = False) -> Iterator[LogEntry]:
        """What a task's attempts have printed, from behind a line on: of one node, unit, attempt or stream, or of all. With follow it goes on
        with what they print from now on, until the task has ended."""
        query = _some(node=node, attempt=attempt, stream=stream) + ([("unit", str(unit))] if unit is not None else [])
        if not follow:
            return self._pages(_path(task, "/logs"), query + _some(after=after), cursor="after")
        path = _path(task, "/logs/stream") + ("?" + urllib.parse.urlencode(query) if query else "")
        return _watch.follow(self._transport, path, after, self._silence)

    def waiting(self, task: str) -> Waiting:
        """Why a task is waiting."""
        return self._call("GET", _path(task, "/waiting"))

    # Jobs, workers, members.

    def job(self, job: str) -> JobInfo:
        return self._call("GET", f"/jobs/{segment(job)}")

    def log(self, job: str) -> str:
        """What a job has printed."""
        return self._call("GET", f"/jobs/{segment(job)}/log")["content"]

    def jobs(self, services: Sequence[str] = ()) -> Iterator[WaitingJob]:
        """The jobs in the queue, of some services or of all, the longest waiting first."""
        return self._pages("/jobs", [("service", s) for s in services])

    def queues(self) -> List[QueueInfo]:
        """How long the queues are."""
        return list(self._pages("/queues"))

    def workers(self) -> List[WorkerInfo]:
        return list(self._pages("/workers"))

    def info(self) -> Info:
        """With whom one speaks."""
        return self._call("GET", "/info")

    # How it is sent.

    def _command(self, task: str, name: str, content: Optional[Mapping[str, Any]], request: Optional[str]) -> Any:
        """Gives a command. It has a name, so that it has its effect once, however often it is sent."""
        headers = {} if name == "complete" else {"Request-Id": request or uuid.uuid4().hex}
        body = None if content is None else encode(content)
        return self._call("POST", _path(task, "/" + name), body, headers=headers)

    def _pages(self, path: str, query: Sequence[Tuple[str, str]] = (), *, cursor: str = "cursor") -> Iterator[Any]:
        """Reads a list page by page."""
        page = self._call("GET", path, query=query)
        rest = [q for q in query if q[0] != cursor]
        while True:
            yield from page["items"]
            if not page.get("next"):
                return
            page = self._call("GET", path, query=rest + [(cursor, page["next"])])

    def _call(self, method: str, path: str, body: Optional[bytes] = None, *, query: Sequence[Tuple[str, str]] = (),
              headers: Optional[Mapping[str, str]] = None, wait: float = 0.0) -> Any:
        """Sends a request until it is answered."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        backoff = Backoff()
        for _ in range(self._retries):
            try:
                return self._transport.call(method, path, body, headers=headers, wait=wait)
            except (ProblemError, UnreachableError) as e:
                if isinstance(e, ProblemError) and not e.temporary:
                    raise
                time.sleep(backoff.pause(e))
        return self._transport.call(method, path, body, headers=headers, wait=wait)


def _path(task: str, what: str = "") -> str:
    return f"/tasks/{segment(task)}{what}"


def _some(**fields: Union[str, int]) -> Query:
    """Returns the fields that are set, as a query."""
    return [(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in fields.items() if value]


def _definition(definition: Definition) -> Tuple[bytes, str]:
    if isinstance(definition, Mapping):
        return encode(definition), "application/json"
    text = definition.encode("utf-8") if isinstance(definition, str) else definition
    # What is wrong with an empty definition is told like every other problem.
    return text or b"\n", "application/json" if text.lstrip().startswith(b"{") else "application/yaml"
