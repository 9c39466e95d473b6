"""What members answer. The values are plain dicts, as they were parsed; a newer member may say more.

Times are texts such as "2026-05-04T12:00:00.000Z", which sort as they follow each other.
"""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict


class Place(TypedDict, total=False):
    """A place in a task. What does not apply is absent."""

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
    followed: int  # failed steps that it went on after, because on_error says follow
    error: str
    labels: Dict[str, str]
    ended_at: str
    warning: str  # in the answer to a command: why it may not do what was meant


class FollowedError(TypedDict):
    """Failed steps of a node that its task went on after."""

    node: str
    times: int
    visit: int  # the last time
    error: str  # that of the last time
    at: str


class _Task(TaskSummary):
    mode: str  # graph, dag
    params: Any
    shared: Dict[str, Any]
    active: List["Step"]
    seq: int


class Task(_Task, total=False):
    """A task as its journal says it is at this moment."""

    paused_at: str
    result: Any  # once it is completed
    counts: Dict[str, int]
    followed_errors: List[FollowedError]


class _Started(TypedDict):
    id: str
    created: bool  # False: the task with this key had been started before


class Started(_Started, total=False):
    """The answer to a start."""

    task: Task  # when it was to wait


class _ForkStep(TypedDict):
    node: str
    visit: int


class ForkStep(_ForkStep, total=False):
    """A step of the history that a fork goes on from."""

    scope: str
    why: str  # it is done again: changed, after, asked, undone, failed, unended


class _Forked(TypedDict):
    created: bool  # False: a dry run, or the task with this key had been started before
    forked_from: str  # the other task
    version: int  # that the new task runs
    keeps: List[ForkStep]  # steps that have ended, whose results count; the first 1,000
    again: List[ForkStep]  # steps that are done again; the first 1,000
    kept_steps: int
    again_steps: int


class Forked(_Forked, total=False):
    """The answer to a fork."""

    id: str  # of the new task; absent after a dry run


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
    waits_for: List[str]
    waits: int
    wait: "Wait"
    output: Any
    error: str
    details: Any  # of the error
    entered_at: str
    ended_at: str
    due: str
    below: str


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
    note: str
    retry_at: str
    due: str


class Metric(TypedDict, total=False):
    """Numbers of one name that the job of an attempt has told."""

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
    kept: int
    due: str
    worker: str
    log: bool
    until: str
    note: str
    key: str
    by: str  # who sent a signal, as it calls itself
    version: str
    params: Any
    request: str


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
    """A line that an attempt has printed."""

    part: bool  # the line goes on with the next one of its stream
    missing: Dict[str, int]  # lines and chars of the attempt's log before it that are not kept any more


class Run(_Run, total=False):
    """An attempt of a unit, or the end of a step without one."""

    job: str
    branch: str
    queue: bool
    note: str
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


Wait = TypedDict("Wait", {"for": str, "text": str, "job": str, "since": str, "until": str, "node": str, "scope": str}, total=False)


class Waiting(TypedDict):
    """Why a task is waiting."""

    state: str
    waits: List[Wait]


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
    """Something wrong with a definition, and where."""

    path: str
    line: int
    column: int
    severity: str  # error, warning
    msg: str


class _Published(TypedDict):
    created: bool  # False: the newest version had this very content
    flow: Flow
    version: Version


class Published(_Published, total=False):
    """The answer to a publication."""

    warnings: List[DefinitionProblem]


class Validation(TypedDict):
    """Whether a definition could be published."""

    valid: bool
    problems: List[DefinitionProblem]


class _JobInfo(Place):
    id: str
    task: str
    state: str  # pending, claimed, completed, failed, timeout
    started_at: str


class JobInfo(_JobInfo, total=False):
    """A job, also long after it ended."""

    branch: str
    service: str
    queue: bool
    worker: str
    note: str
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
    """What waits for the workers of a service."""

    service: str
    waiting: int
    oldest: str


class _WorkerInfo(TypedDict):
    id: str
    type: str
    services: List[str]
    load: int
    state: str  # online, offline
    last_heartbeat: str


class WorkerInfo(_WorkerInfo, total=False):
    """A registered worker."""

    url: str
    labels: List[str]
    registered_at: str


class Completed(TypedDict):
    """The answer to the completion of a direct unit."""

    changed: bool  # False: the unit had ended before
    task: TaskSummary


class Info(TypedDict):
    """With whom one speaks."""

    version: str
    store: str
    member: str
    now: str
