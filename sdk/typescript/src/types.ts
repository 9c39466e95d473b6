/**
 * What members answer, as it was parsed; a newer member may say more. Times are texts such as "2026-05-04T12:00:00.000Z", which sort as they
 * follow each other. Values of users are `any`: what JSON.parse makes of them (see textOf for where that is not enough).
 */

export type TaskState = "pending" | "running" | "completed" | "failed" | "canceling" | "canceled";
export type StepState = "created" | "started" | "completed" | "failed" | "skipped";
export type UnitState = "pending" | "dispatched" | "running" | "completed" | "failed" | "canceled";

/** A place in a task. What does not apply is absent; unit counts from 0. */
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
  /** Failed steps that it went on after, because on_error says follow. */
  followed?: number;
  error?: string;
  labels?: Record<string, string>;
  created_at: string;
  updated_at: string;
  ended_at?: string;
  /** In the answer to a command: why it may not do what was meant. */
  warning?: string;
}

/** A task as its journal says it is at this moment. */
export interface Task extends TaskSummary {
  mode: "graph" | "dag";
  paused_at?: string;
  params: any;
  shared: Record<string, any>;
  /** Once it is completed. */
  result?: any;
  active: Step[];
  counts?: Record<StepState, number>;
  /** Of followed steps the last error of each node, in the order in which they happened. */
  followed_errors?: FollowedError[];
  seq: number;
}

/** Failed steps of a node that its task went on after. */
export interface FollowedError {
  node: string;
  times: number;
  /** The last time. */
  visit: number;
  /** That of the last time. */
  error: string;
  at: string;
}

/** The answer to a start. */
export interface Started {
  id: string;
  /** False when the task with this key had been started before. */
  created: boolean;
  /** When it was to wait: the task as it is then. */
  task?: Task;
}

/** The answer to a fork. */
export interface Forked {
  /** Of the new task; absent after a dry run. */
  id?: string;
  /** False after a dry run, and when the task with this key had been started before. */
  created: boolean;
  /** The other task. */
  forked_from: string;
  /** Number of the version that the new task runs. */
  version: number;
  /** Steps that have ended, whose results count; the first 1,000. */
  keeps: ForkStep[];
  /** Steps that are done again; the first 1,000. */
  again: ForkStep[];
  kept_steps: number;
  again_steps: number;
}

/** A step of the history that a fork goes on from. */
export interface ForkStep {
  scope?: string;
  node: string;
  visit: number;
  /** It is done again because its node does something else now, what it follows is done again, it is `from`, it was compensated, it failed, or it was under way. */
  why?: "changed" | "after" | "asked" | "undone" | "failed" | "unended";
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
  waits_for?: string[];
  waits?: number;
  wait?: Wait;
  units: { total: number; appended?: number; in_flight: number; retrying: number; done: number; failed: number };
  output?: any;
  error?: string;
  /** Of the error: what its carrier has told beside the text. */
  details?: any;
  entered_at?: string;
  ended_at?: string;
  due?: string;
  below?: string;
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
  /** Of the error: what its carrier has told beside the text. */
  details?: any;
  worker?: string;
  note?: string;
  retry_at?: string;
  due?: string;
}

/** Numbers of one name that the job of an attempt has told. */
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
  /** Of the error: what its carrier has told beside the text. */
  details?: any;
  metrics?: Metric[];
  reason?: string;
  total?: number;
  index?: number;
  kept?: number;
  due?: string;
  worker?: string;
  log?: boolean;
  until?: string;
  note?: string;
  key?: string;
  by?: string; // who sent a signal, as it calls itself
  version?: string;
  params?: any;
  request?: string;
}

/** A line that an attempt has printed. */
export interface LogEntry extends Place {
  id: string;
  job: string;
  at: string;
  stream: "log" | "stdout" | "stderr";
  text: string;
  /** The line goes on with the next one of its stream. */
  part?: boolean;
  /** What was before it in the attempt's log and is not kept any more. */
  missing?: { lines: number; chars: number };
}

/** An attempt of a unit, or the end of a step without one. */
export interface Run extends Place {
  job?: string;
  kind: "attempt" | "summary" | "cancel";
  branch?: string;
  state: "running" | "ok" | "error" | "timeout" | "canceled" | "skipped";
  queue?: boolean;
  note?: string;
  input?: any;
  output?: any;
  error?: string;
  /** Of the error: what its carrier has told beside the text. */
  details?: any;
  metrics?: Metric[];
  reason?: string;
  action?: string;
  worker?: string;
  log?: boolean;
  started_at: string;
  ended_at?: string;
}

/** What a task is waiting for, in words a person can act on. */
export interface Wait extends Place {
  for: "job" | "claim" | "outside" | "retry" | "timer" | "signal" | "approval" | "completion" | "delay" | "resume";
  text: string;
  job?: string;
  since?: string;
  until?: string;
}

/** Why a task is waiting. */
export interface Waiting {
  state: string;
  waits: Wait[];
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

/** Something wrong with a definition, and where. */
export interface DefinitionProblem {
  path?: string;
  line?: number;
  column?: number;
  severity: "error" | "warning";
  msg: string;
}

/** The answer to a publication. */
export interface Published {
  /** False when the newest version had this very content. */
  created: boolean;
  flow: Flow;
  version: Version;
  warnings?: DefinitionProblem[];
}

/** Whether a definition could be published. */
export interface Validation {
  valid: boolean;
  problems: DefinitionProblem[];
}

/** A job, also long after it ended. */
export interface JobInfo extends Place {
  id: string;
  task: string;
  branch?: string;
  service?: string;
  state: "pending" | "claimed" | "completed" | "failed" | "timeout";
  queue?: boolean;
  worker?: string;
  note?: string;
  input?: any;
  output?: any;
  error?: string;
  /** Of the error: what its carrier has told beside the text. */
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

/** What waits for the workers of a service. */
export interface QueueInfo {
  service: string;
  waiting: number;
  oldest: string;
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
  last_heartbeat: string;
  registered_at?: string;
}

/** The answer to the completion of a direct unit. */
export interface Completed {
  /** False when the unit had ended before. */
  changed: boolean;
  task: TaskSummary;
}

/** With whom one speaks. */
export interface Info {
  version: string;
  store: string;
  member: string;
  now: string;
}
