"""Answers of members. The values are plain dicts, as parsed; a newer member may add fields.

Times are texts such as "2026-05-04T12:00:00.000Z", which sort chronologically.
"""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict


class Place(TypedDict, total=False):
    """A place in a task. Fields that do not apply are absent."""

    scope: str
    node: str
    visit: int
    unit: int
    attempt: int


class _TaskSummary(TypedDict):
    id: str
    flow: str
    version: int
    version_id: str
    state: str  # pending, running, completed, failed, canceling, canceled
    paused: bool
    steps: int
    created_at: str
    updated_at: str


class TaskSummary(_TaskSummary, total=False):
    """A task in a list."""

    flow_name: str
    node: str
    last_action: str
    ignored_errors: int  # number of failed steps after which it continued because of on_error: follow
    error: str
    labels: Dict[str, str]
    ended_at: str
    warning: str  # in the answer to a command: why it may not have the intended effect


class IgnoredError(TypedDict):
    """Failed steps of a node after which its task continued."""

    node: str
    count: int  # number of these failures
    visit: int  # visit of the last failure
    error: str  # error of the last failure
    at: str


class _Task(TaskSummary):
    mode: str  # graph, dag
    params: Any
    shared: Dict[str, Any]
    active: List["Step"]
    seq: int


class Task(_Task, total=False):
    """The current state of a task according to its journal."""

    paused_at: str
    result: Any  # set when it is completed
    counts: Dict[str, int]
    ignored_error_details: List[IgnoredError]
    step: "Step"  # with wait_until: the step, if it has ended


class _StartResult(TypedDict):
    id: str
    created: bool  # False if the task with this key existed already


class StartResult(_StartResult, total=False):
    """The answer to a start."""

    task: Task  # with a requested wait: the task at the end of the wait
    step: "Step"  # with wait_until: the step, if it has ended


class _ForkStep(TypedDict):
    node: str
    visit: int


class ForkStep(_ForkStep, total=False):
    """A step of the history on which a fork is based."""

    scope: str
    reason: str  # why it runs again: changed, after, asked, undone, failed, unended


class _ForkResult(TypedDict):
    created: bool  # False after a dry run, and if the task with this key existed already
    forked_from: str  # id of the original task
    version: int  # version number of the new task
    kept_steps: List[ForkStep]  # ended steps that keep their results; the first 1,000
    rerun_steps: List[ForkStep]  # steps that run again; the first 1,000
    kept_count: int
    rerun_count: int


class ForkResult(_ForkResult, total=False):
    """The answer to a fork."""

    id: str  # id of the new task; absent after a dry run


class _Step(TypedDict):
    node: str
    kind: str
    visit: int
    state: str  # created, started, completed, failed, skipped
    units: Dict[str, int]


class Step(_Step, total=False):
    """A node within a task."""

    scope: str
    reason: str
    skip_mode: str
    action: str
    route: str
    waiting_for: List[str]
    waiting_for_count: int
    wait: "WaitReason"
    output: Any
    error: str
    details: Any  # of the error
    entered_at: str
    ended_at: str
    due_at: str
    inner_scope: str


class _Unit(TypedDict):
    unit: int
    state: str  # pending, dispatched, running, completed, failed, canceled


class Unit(_Unit, total=False):
    """One of the pieces of a step."""

    name: str
    attempt: int
    appended: bool
    input: Any
    output: Any
    error: str
    details: Any  # of the error
    worker: str
    status_text: str
    retry_at: str
    due_at: str


class Metric(TypedDict, total=False):
    """A metric reported by the job of an attempt."""

    name: str
    labels: Dict[str, str]
    count: int
    sum: float
    last: float


class _Event(Place):
    id: str
    seq: int
    type: str
    at: str


class Event(_Event, total=False):
    """A fact about a task."""

    state: str
    action: str
    next: str
    input: Any
    input_ref: str
    output: Any
    error: str
    details: Any  # of the error
    metrics: List[Metric]
    reason: str
    total: int
    reused_units: int
    due_at: str
    worker: str
    log: bool
    until: str
    status_text: str
    key: str
    sent_by: str  # sender of a signal, by its own claim
    version: str
    params: Any
    request_id: str


class _Run(Place):
    kind: str
    state: str
    started_at: str


class _LogEntry(Place):
    id: str
    job: str
    at: str
    stream: str  # log, stdout or stderr
    text: str


class LogEntry(_LogEntry, total=False):
    """A line of an attempt's log."""

    part: bool  # the line continues in the next one of its stream
    omitted: Dict[str, int]  # lines and characters of earlier lines of the attempt's log that are no longer stored


class StreamInfo(TypedDict):
    """A stream of a task."""

    name: str
    length: int  # number of values so far
    bytes: int
    ended: bool


class _StreamValue(TypedDict):
    offset: int  # from 0
    value: Any
    at: str
    attempt: int
    writer: str  # identifies the delivery of the job that wrote it


class StreamValue(_StreamValue, total=False):
    """A value of a stream."""

    step: str  # step that wrote it; absent for a durable function between its steps
    visit: int
    unit: int


class Run(_Run, total=False):
    """An attempt of a unit, or the end of a step without one."""

    job: str
    branch: str
    queue: bool
    status_text: str
    input: Any
    output: Any
    error: str
    details: Any  # of the error
    metrics: List[Metric]
    reason: str
    action: str
    worker: str
    log: bool
    ended_at: str


class WaitReason(Place, total=False):
    """A reason why a task is waiting."""

    kind: str  # job, claim, outside, retry, timer, signal, approval, completion, delay, resume, permit
    text: str
    job: str
    waiting_since: str
    deadline: str


class WaitReasons(TypedDict):
    """The reasons why a task is waiting."""

    state: str
    waits: List[WaitReason]


class _Flow(TypedDict):
    id: str
    name: str
    created_at: str


class Flow(_Flow, total=False):
    """A named definition."""

    slug: str
    description: str


class _Version(TypedDict):
    id: str
    flow: str
    number: int
    status: str
    created_at: str


class Version(_Version, total=False):
    """One immutable state of a flow."""

    hash: str
    definition: Dict[str, Any]


class DefinitionProblem(TypedDict, total=False):
    """A problem of a definition, with its position."""

    path: str
    line: int
    column: int
    severity: str  # error, warning
    message: str


class _PublishResult(TypedDict):
    created: bool  # False if the newest version had the same content
    flow: Flow
    version: Version


class PublishResult(_PublishResult, total=False):
    """The answer to a publication."""

    warnings: List[DefinitionProblem]


class Validation(TypedDict):
    """The result of validating a definition."""

    valid: bool
    problems: List[DefinitionProblem]


class _JobInfo(Place):
    id: str
    task: str
    state: str  # pending, claimed, completed, failed, timeout
    started_at: str


class JobInfo(_JobInfo, total=False):
    """A job, including one that ended long ago."""

    branch: str
    service: str
    queue: bool
    worker: str
    status_text: str
    input: Any
    output: Any
    error: str
    details: Any  # of the error
    ended_at: str


class _WaitingJob(TypedDict):
    id: str
    task: str
    service: str
    state: str  # pending, claimed
    enqueued_at: str


class WaitingJob(_WaitingJob, total=False):
    """A job in the queue."""

    worker: str


class QueueInfo(TypedDict):
    """The queue of a service."""

    service: str
    waiting: int
    oldest_at: str


class _WorkerInfo(TypedDict):
    id: str
    type: str
    services: List[str]
    load: int
    state: str  # online, offline
    last_heartbeat_at: str


class WorkerInfo(_WorkerInfo, total=False):
    """A registered worker."""

    url: str
    labels: List[str]
    registered_at: str


class CompleteResult(TypedDict):
    """The answer to the completion of a direct unit."""

    changed: bool  # False if the unit had ended before
    task: TaskSummary


class ServerInfo(TypedDict):
    """Information about the server."""

    version: str
    store: str
    member: str
    store_time: str
