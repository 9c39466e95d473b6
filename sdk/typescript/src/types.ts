/**
 * Answers of members, as parsed; a newer member may add fields. Times are texts such as
 * "2026-05-04T12:00:00.000Z", which sort chronologically. Values of users are `any`: the result of
 * JSON.parse (see textOf if that is not precise enough).
 */

export type TaskState = "pending" | "running" | "completed" | "failed" | "canceling" | "canceled";
export type StepState = "created" | "started" | "completed" | "failed" | "skipped";
export type UnitState = "pending" | "dispatched" | "running" | "completed" | "failed" | "canceled";

/** A place in a task. Fields that do not apply are absent; unit counts from 0. */
export interface Place {
  scope?: string;
  node?: string;
  visit?: number;
  unit?: number;
  attempt?: number;
}

/** A task in a list. */
export interface TaskSummary {
  id: string;
  flow: string;
  flow_name?: string;
  version: number;
  version_id: string;
  state: TaskState;
  paused: boolean;
  node?: string;
  last_action?: string;
  steps: number;
  /** Number of failed steps after which it continued because of on_error: follow. */
  ignored_errors?: number;
  error?: string;
  labels?: Record<string, string>;
  created_at: string;
  updated_at: string;
  ended_at?: string;
  /** In the answer to a command: why it may not have the intended effect. */
  warning?: string;
}

/** The current state of a task according to its journal. */
export interface Task extends TaskSummary {
  mode: "graph" | "dag";
  paused_at?: string;
  params: any;
  shared: Record<string, any>;
  /** Set when it is completed. */
  result?: any;
  active: Step[];
  counts?: Record<StepState, number>;
  /**
   * The last error of each node with failed steps after which it continued, in order of occurrence.
   */
  ignored_error_details?: IgnoredError[];
  /** With waitUntil: the step, if it has ended. */
  step?: Step;
  seq: number;
}

/** Failed steps of a node after which its task continued. */
export interface IgnoredError {
  node: string;
  /** Number of these failures. */
  count: number;
  /** Visit of the last failure. */
  visit: number;
  /** Error of the last failure. */
  error: string;
  at: string;
}

/** The answer to a start. */
export interface StartResult {
  id: string;
  /** False if the task with this key existed already. */
  created: boolean;
  /** With a requested wait: the task at the end of the wait. */
  task?: Task;
  /** With waitUntil: the step, if it has ended. */
  step?: Step;
}

/** The answer to a fork. */
export interface ForkResult {
  /** Id of the new task; absent after a dry run. */
  id?: string;
  /** False after a dry run, and if the task with this key existed already. */
  created: boolean;
  /** Id of the original task. */
  forked_from: string;
  /** Version number of the new task. */
  version: number;
  /** Ended steps that keep their results; the first 1,000. */
  kept_steps: ForkStep[];
  /** Steps that run again; the first 1,000. */
  rerun_steps: ForkStep[];
  kept_count: number;
  rerun_count: number;
}

/** A step of the history on which a fork is based. */
export interface ForkStep {
  scope?: string;
  node: string;
  visit: number;
  /**
   * Why it runs again: its node has changed, it follows a step that runs again, it is `from`, it
   * was compensated, it failed, or it was still running.
   */
  reason?: "changed" | "downstream" | "requested" | "compensated" | "failed" | "unfinished";
}

/** A node within a task. */
export interface Step {
  scope?: string;
  node: string;
  kind: string;
  visit: number;
  state: StepState;
  reason?: string;
  skip_mode?: string;
  action?: string;
  route?: string;
  waiting_for?: string[];
  waiting_for_count?: number;
  wait?: WaitReason;
  units: { total: number; appended?: number; in_flight: number; retrying: number; done: number; failed: number };
  output?: any;
  error?: string;
  /** Details of the error from the worker, besides the text. */
  details?: any;
  entered_at?: string;
  ended_at?: string;
  due_at?: string;
  inner_scope?: string;
}

/** One of the pieces of a step. */
export interface Unit {
  unit: number;
  name?: string;
  state: UnitState;
  attempt?: number;
  appended?: boolean;
  input?: any;
  output?: any;
  error?: string;
  /** Details of the error from the worker, besides the text. */
  details?: any;
  worker?: string;
  status_text?: string;
  retry_at?: string;
  due_at?: string;
}

/** A metric reported by the job of an attempt. */
export interface Metric {
  name: string;
  labels?: Record<string, string>;
  count: number;
  sum: number;
  last: number;
}

/** A fact about a task. */
export interface Event extends Place {
  id: string;
  seq: number;
  type: string;
  at: string;
  state?: string;
  action?: string;
  next?: string;
  input?: any;
  input_ref?: string;
  output?: any;
  error?: string;
  /** Details of the error from the worker, besides the text. */
  details?: any;
  metrics?: Metric[];
  reason?: string;
  total?: number;
  index?: number;
  reused_units?: number;
  due_at?: string;
  worker?: string;
  log?: boolean;
  until?: string;
  status_text?: string;
  key?: string;
  sent_by?: string; // sender of a signal, by its own claim
  version?: string;
  params?: any;
  request_id?: string;
}

/** A line of an attempt's log. */
export interface LogEntry extends Place {
  id: string;
  job: string;
  at: string;
  stream: "log" | "stdout" | "stderr";
  text: string;
  /** The line continues in the next one of its stream. */
  part?: boolean;
  /** Earlier lines of the attempt's log that are no longer stored. */
  omitted?: { lines: number; characters: number };
}

/** A stream of a task. */
export interface StreamInfo {
  name: string;
  length: number;
  bytes: number;
  ended: boolean;
}

/** A value of a stream. */
export interface StreamValue {
  /** Position in the stream, from 0. */
  offset: number;
  value: any;
  at: string;
  /** Step that wrote it; absent for a durable function between its steps. */
  step?: string;
  visit?: number;
  unit?: number;
  attempt: number;
  /** Number of the try within the attempt; absent if there is only one. */
  try?: number;
  /** Identifies the delivery of the job that wrote it. */
  writer: string;
}

/** An attempt of a unit, or the end of a step without one. */
export interface Run extends Place {
  job?: string;
  kind: "attempt" | "summary" | "cancel";
  branch?: string;
  state: "running" | "ok" | "error" | "timeout" | "canceled" | "skipped";
  queue?: boolean;
  status_text?: string;
  input?: any;
  output?: any;
  error?: string;
  /** Details of the error from the worker, besides the text. */
  details?: any;
  metrics?: Metric[];
  reason?: string;
  action?: string;
  worker?: string;
  log?: boolean;
  started_at: string;
  ended_at?: string;
}

/** A reason why a task is waiting, in words for users. */
export interface WaitReason extends Place {
  kind:
    | "job" | "claim" | "external" | "retry" | "timer" | "signal" | "approval" | "manual" | "delay" | "resume"
    | "permit";
  text: string;
  job?: string;
  waiting_since?: string;
  deadline?: string;
}

/** The reasons why a task is waiting. */
export interface WaitReasons {
  state: string;
  waits: WaitReason[];
}

/** A named definition. */
export interface Flow {
  slug?: string;
  id: string;
  name: string;
  description?: string;
  created_at: string;
}

/** One immutable state of a flow. */
export interface Version {
  id: string;
  flow: string;
  number: number;
  status: string;
  hash?: string;
  created_at: string;
  definition?: Record<string, any>;
}

/** A problem of a definition, with its position. */
export interface DefinitionProblem {
  path?: string;
  line?: number;
  column?: number;
  severity: "error" | "warning";
  message: string;
}

/** The answer to a publication. */
export interface PublishResult {
  /** False if the newest version had the same content. */
  created: boolean;
  flow: Flow;
  version: Version;
  warnings?: DefinitionProblem[];
}

/** The result of validating a definition. */
export interface Validation {
  valid: boolean;
  problems: DefinitionProblem[];
}

/** A job, including one that ended long ago. */
export interface JobInfo extends Place {
  id: string;
  task: string;
  branch?: string;
  service?: string;
  state: "pending" | "claimed" | "completed" | "failed" | "timeout";
  queue?: boolean;
  worker?: string;
  status_text?: string;
  input?: any;
  output?: any;
  error?: string;
  /** Details of the error from the worker, besides the text. */
  details?: any;
  started_at: string;
  ended_at?: string;
}

/** A job in the queue. */
export interface WaitingJob {
  id: string;
  task: string;
  service: string;
  state: "pending" | "claimed";
  worker?: string;
  enqueued_at: string;
}

/** The queue of a service. */
export interface QueueInfo {
  service: string;
  waiting: number;
  oldest_at: string;
}

/** A registered worker. */
export interface WorkerInfo {
  id: string;
  url?: string;
  type: string;
  services: string[];
  labels?: string[];
  load: number;
  state: "online" | "offline";
  last_heartbeat_at: string;
  registered_at?: string;
}

/** The answer to the completion of a direct unit. */
export interface CompleteResult {
  /** False if the unit had ended before. */
  changed: boolean;
  task: TaskSummary;
}

/** Information about the server. */
export interface ServerInfo {
  version: string;
  store: string;
  member: string;
  store_time: string;
}
