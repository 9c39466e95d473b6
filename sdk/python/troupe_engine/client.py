"""The client of /v1: publish flows, start tasks, follow and control them."""

from __future__ import annotations

import datetime
import ssl
import time
import urllib.parse
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _watch
from ._transport import Backoff, Servers, Transport, encode, segment
from .errors import ProblemError, TroupeError, UnreachableError
from .types import (
    CompleteResult,
    Event,
    Flow,
    ForkResult,
    ServerInfo,
    JobInfo,
    PublishResult,
    QueueInfo,
    LogEntry,
    Run,
    StartResult,
    Step,
    StreamInfo,
    StreamValue,
    Task,
    TaskSummary,
    Unit,
    Validation,
    Version,
    WaitReasons,
    WaitingJob,
    WorkerInfo,
)

LONGEST_WAIT = 25.0  # maximal seconds that one request waits; proxies cut off much longer ones

Query = List[Tuple[str, str]]
Definition = Union[str, bytes, Mapping[str, Any]]


class Client:
    """Client of the members at the given addresses. It is safe for use by several threads.

    Promises: every refusal is a ProblemError that says what is wrong, where, and what to do. An
    unanswered request is retried, first at the next address, and takes effect once. A watch resumes
    after a broken connection without gaps and duplicates.

    servers:      addresses of members, as a list or separated by commas;
                  default TROUPE_SERVER, or http://127.0.0.1:8070
    token:        authenticates the caller to the members; default TROUPE_TOKEN
    timeout:      maximal silence of a member in seconds, in addition to any requested wait
    retries:      number of retries over all addresses; watch retries as long as it is read
    silence:      seconds without data or heartbeats after which watch reconnects
    ssl_context:  for https
    decimals:     parse numbers with a point or an exponent as decimal.Decimal, with all digits
    """

    def __init__(self, servers: Servers = None, *, token: Optional[str] = None, timeout: float = 60.0, retries: int = 6,
                 silence: float = 45.0, ssl_context: Optional[ssl.SSLContext] = None, decimals: bool = False) -> None:
        self._transport = Transport(servers, token, timeout=timeout, context=ssl_context, decimals=decimals)
        self._retries, self._silence = max(retries, 0), silence

    def close(self) -> None:
        """Closes the idle connections."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Flows.

    def publish(self, flow: str, definition: Definition, *, strict: bool = False) -> PublishResult:
        """Publishes a definition (YAML, JSON or a dict) as the newest version of a flow. Content
        equal to the newest version changes nothing.

        The answer contains warnings about the definition. With strict, a definition with warnings
        is refused.
        """
        body, kind = _definition(definition)
        return self._call("PUT", f"/flows/{segment(flow)}", body, query=_some(strict=strict), headers={"Content-Type": kind})

    def validate(self, definition: Definition, *, strict: bool = False) -> Validation:
        """Returns all problems of a definition; strict treats warnings as errors. Nothing is
        stored."""
        body, kind = _definition(definition)
        return self._call("POST", "/validate", body, query=_some(strict=strict), headers={"Content-Type": kind})

    def flows(self) -> Iterator[Flow]:
        """Lists all flows, newest first."""
        return self._pages("/flows")

    def flow(self, flow: str) -> Flow:
        return self._call("GET", f"/flows/{segment(flow)}")

    def versions(self, flow: str) -> Iterator[Version]:
        """Lists a flow's versions, highest number first."""
        return self._pages(f"/flows/{segment(flow)}/versions")

    def version(self, flow: str, number: int = 0) -> Version:
        """Returns a version with its definition; 0 means the newest published one."""
        return self._call("GET", f"/flows/{segment(flow)}/versions/{number or 'latest'}")

    # Tasks.

    def start(self, flow: str, params: Any = None, *, key: Optional[str] = None, labels: Optional[Mapping[str, str]] = None,
              version: int = 0, wait: float = 0.0, wait_until: str = "") -> StartResult:
        """Starts a task. Starts with the same key are the same task; the default is a new key for
        this call.

        With wait (seconds, at most 300) the answer contains the task when it has ended, or when the
        time is up. With wait_until, too, it waits for that step instead, and contains it as step if
        it has ended. Steps are named as in wait_for_step.
        """
        request: Dict[str, Any] = {"flow": flow, "params": params, "idempotency_key": key or uuid.uuid4().hex, "version": version,
                                   "wait_ms": int(wait * 1000)}
        if labels:
            request["labels"] = dict(labels)
        if wait_until:
            request["wait_until"] = wait_until
        return self._call("POST", "/tasks", encode(request), wait=wait)

    def tasks(self, *, flow: Optional[str] = None, states: Sequence[str] = (), labels: Optional[Mapping[str, str]] = None,
              created_from: Optional[datetime.datetime] = None, created_to: Optional[datetime.datetime] = None) -> Iterator[TaskSummary]:
        """Searches tasks, newest first: with any of the states and all of the labels. Times should
        have a time zone."""
        query: Query = [("flow", flow)] if flow else []
        query += [("state", s) for s in states] + [("label", f"{name}:{text}") for name, text in (labels or {}).items()]
        for name, moment in (("created_from", created_from), ("created_to", created_to)):
            if moment is not None:
                query.append((name, moment.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")))
        return self._pages("/tasks", query)

    def task(self, task: str) -> Task:
        """Returns the current state of a task."""
        return self._call("GET", _path(task))

    def wait(self, task: str, timeout: Optional[float] = None) -> Task:
        """Waits for the end of a task and returns it. A failed or canceled task is no error. Raises
        TimeoutError if it does not end in time."""
        return self._poll(task, timeout)

    def wait_for_step(self, task: str, step: str, timeout: Optional[float] = None) -> Step:
        """Waits for the end of a step at the top level of a task and returns it with its output. A
        failed or skipped step is no error.

        The step is NODE, or NODE#2 for its second visit; in a function it is the name of a step.
        Raises TimeoutError if it does not end in time, and TroupeError if the task ends without it.
        """
        found = self._poll(task, timeout, step)
        if "step" not in found:
            raise TroupeError(f"task {task} is {found['state']}, and its step {step} has not ended")
        return found["step"]

    def watch(self, task: str, after: str = "") -> Iterator[Event]:
        """Yields a task's events as they happen, after the event with the given id, and ends with
        the task."""
        return _watch.watch(self._transport, task, after, self._silence)

    def cancel(self, task: str, *, graceful: bool = False, force: bool = False, request_id: Optional[str] = None) -> TaskSummary:
        """Cancels a task. With graceful, running work continues. With force, compensations and
        clean-up are ended, too."""
        return self._command(task, "cancel", {"graceful": graceful, "force": force}, request_id)

    def pause(self, task: str, *, request_id: Optional[str] = None) -> TaskSummary:
        """Prevents new work of a task from starting; work in flight continues."""
        return self._command(task, "pause", None, request_id)

    def resume(self, task: str, *, request_id: Optional[str] = None) -> TaskSummary:
        """Reverts pause."""
        return self._command(task, "resume", None, request_id)

    def retry(self, task: str, *, request_id: Optional[str] = None) -> TaskSummary:
        """Continues a failed task where it failed."""
        return self._command(task, "retry", None, request_id)

    def fork(self, task: str, *, version: int = 0, latest: bool = False, from_node: str = "", params: Any = None, key: Optional[str] = None,
             dry_run: bool = False) -> ForkResult:
        """Starts a task from the history of an ended one. Steps with unchanged nodes keep their
        results; everything else runs again.

        It runs the version of that task, the one with the given number, or the latest. The node
        from_node runs again, together with everything that follows it. The default for params is
        those of that task. With dry_run it reports what the new task would keep and run again, and
        starts nothing. The key works as in start.
        """
        content: Dict[str, Any] = {"version": version, "latest": latest, "from": from_node, "params": params, "dry_run": dry_run,
                                   "idempotency_key": key or uuid.uuid4().hex}
        return self._call("POST", _path(task, "/fork"), encode(content))

    def signal(self, task: str, key: str, value: Any = None, *, sent_by: str = "", request_id: Optional[str] = None) -> TaskSummary:
        """Sets a key of a task's shared state and wakes the steps that wait for it."""
        return self._command(task, "signal", {"key": key, "value": value, "sent_by": sent_by}, request_id)

    def append(self, task: str, step: str, items: Sequence[Any], *, scope: str = "", request_id: Optional[str] = None) -> List[int]:
        """Adds units to a fanout that has begun and returns their indexes."""
        return self._command(task, "append", {"step": step, "scope": scope, "items": list(items)}, request_id)["units"]

    def complete(self, task: str, step: str, output: Any = None, *, error: Optional[str] = None, unit: int = 0, scope: str = "") -> CompleteResult:
        """Completes a unit of a step with the route direct, with an output or an error."""
        content: Dict[str, Any] = {"step": step, "scope": scope, "unit": unit}
        content.update({"error": error} if error is not None else {"output": output})
        return self._command(task, "complete", content, None)

    # Information about a task.

    def steps(self, task: str, *, scope: str = "", step: str = "", states: Sequence[str] = ()) -> Iterator[Step]:
        """Lists the steps of a task, or of a scope in it."""
        return self._pages(_path(task, "/steps"), _some(scope=scope, step=step) + [("state", s) for s in states])

    def units(self, task: str, step: str, *, scope: str = "", visit: int = 0, states: Sequence[str] = ()) -> Iterator[Unit]:
        """Lists the units of a step, in the given visit or the newest."""
        return self._pages(_path(task, "/units"), _some(scope=scope, step=step, visit=visit) + [("state", s) for s in states])

    def events(self, task: str, after: str = "") -> Iterator[Event]:
        """Lists a task's events so far, oldest first, after the given event."""
        return self._pages(_path(task, "/events"), _some(after=after), cursor="after")

    def runs(self, task: str) -> Iterator[Run]:
        """Lists a task's attempts and steps, ordered by start."""
        return self._pages(_path(task, "/runs"))

    def logs(self, task: str, *, node: str = "", unit: Optional[int] = None, attempt: int = 0, stream: str = "", after: str = "",
             follow: bool = False) -> Iterator[LogEntry]:
        """Yields the log lines of a task's attempts, after a given line: of one node, unit, attempt
        or stream, or of all. With follow it continues with new lines until the task has ended."""
        query = _some(node=node, attempt=attempt, stream=stream) + ([("unit", str(unit))] if unit is not None else [])
        if not follow:
            return self._pages(_path(task, "/logs"), query + _some(after=after), cursor="after")
        path = _path(task, "/logs/stream") + ("?" + urllib.parse.urlencode(query) if query else "")
        return _watch.follow(self._transport, path, after, self._silence)

    def streams(self, task: str) -> List[StreamInfo]:
        """Returns the streams of a task, to which its steps write values while they run."""
        return list(self._pages(_path(task, "/streams")))

    def stream(self, task: str, name: str, *, start: int = 0, follow: bool = False) -> Iterator[StreamValue]:
        """Yields the values of a stream from an offset on. With follow it continues with new values
        until the stream or the task has ended."""
        path = _path(task, f"/streams/{segment(name)}")
        if follow:
            return _watch.follow(self._transport, path, str(start - 1) if start > 0 else "", self._silence, lambda value: str(value["offset"]))
        return self._values(path, start)

    def _values(self, path: str, start: int) -> Iterator[StreamValue]:
        """Reads a stream page by page."""
        while True:
            page = self._call("GET", path, query=[("from", str(start))])
            yield from page["values"]
            if not page["values"]:
                return
            start = page["next"]

    def waiting(self, task: str) -> WaitReasons:
        """Returns the reasons why a task is waiting."""
        return self._call("GET", _path(task, "/waiting"))

    # Jobs, workers, members.

    def job(self, job: str) -> JobInfo:
        return self._call("GET", f"/jobs/{segment(job)}")

    def log(self, job: str) -> str:
        """Returns the log of a job."""
        return self._call("GET", f"/jobs/{segment(job)}/log")["content"]

    def jobs(self, services: Sequence[str] = ()) -> Iterator[WaitingJob]:
        """Lists the jobs in the queue, of some services or of all, the longest waiting first."""
        return self._pages("/jobs", [("service", s) for s in services])

    def queues(self) -> List[QueueInfo]:
        """Returns the lengths of the queues."""
        return list(self._pages("/queues"))

    def workers(self) -> List[WorkerInfo]:
        return list(self._pages("/workers"))

    def info(self) -> ServerInfo:
        """Returns information about the server."""
        return self._call("GET", "/info")

    # Sending requests.

    def _poll(self, task: str, timeout: Optional[float], step: str = "") -> Task:
        """Reads a task again and again until it, or its step, has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LONGEST_WAIT if deadline is None else min(deadline - time.monotonic(), LONGEST_WAIT)
            ms = max(int(left * 1000), 1)  # without a wait, members refuse wait_until
            found: Task = self._call("GET", _path(task), query=[("wait_ms", str(ms))] + _some(wait_until=step), wait=ms / 1000)
            if found.get("ended_at") or "step" in found:
                return found
            if deadline is not None and time.monotonic() >= deadline:
                what = f"step {step} of task {task} has not ended" if step else f"task {task} is still {found['state']}"
                raise TimeoutError(f"{what} after {timeout:g} s")

    def _command(self, task: str, name: str, content: Optional[Mapping[str, Any]], request_id: Optional[str]) -> Any:
        """Sends a command with a request id, so that it takes effect once, however often it is
        sent."""
        headers = {} if name == "complete" else {"Request-Id": request_id or uuid.uuid4().hex}
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
    # An empty definition is reported by the server like every other problem.
    return text or b"\n", "application/json" if text.lstrip().startswith(b"{") else "application/yaml"
