/** The client of /v1: publish flows, start tasks, follow and control them. */

import { randomUUID } from "node:crypto";

import { mayPass, TimeoutError, TroupeError } from "./errors.js";
import { Backoff, sleep } from "./pauses.js";
import { itemsOf, remember, textOf } from "./raw.js";
import { Transport, type Request, type Servers } from "./transport.js";
import type {
  CompleteResult, Event, Flow, ForkResult, JobInfo, LogEntry, PublishResult, QueueInfo, Run, ServerInfo, StartResult, Step, StepState, Task, TaskState, TaskSummary, StreamInfo, StreamValue,
  Unit, UnitState, Validation, Version, WaitReasons, WaitingJob, WorkerInfo,
} from "./types.js";
import { follow, watch } from "./watch.js";
import { encode, textAs } from "./write.js";

export interface ClientOptions {
  servers?: Servers;
  /** Authenticates the caller to the members; default TROUPE_TOKEN. */
  token?: string;
  /** Time limit for an answer, in addition to any requested wait; default 60 s. */
  timeoutMs?: number;
  /** Number of retries over all addresses; default 6. A watch retries as long as it is read. */
  retries?: number;
  /** Time without data or heartbeats after which a watch reconnects; default 45 s. */
  silenceMs?: number;
}

/** Aborts a waiting call. */
export interface Abortable {
  signal?: AbortSignal;
}

export interface WaitOptions extends Abortable {
  /** Maximum time to wait; default without limit. */
  timeoutMs?: number;
}

export interface CheckOptions {
  /** Treats warnings as errors, so that a definition with a warning is refused. */
  strict?: boolean;
}

export interface StartOptions extends Abortable {
  /** Params of the task: an object, or any JSON for a flow in dag mode. */
  params?: unknown;
  /**
   * Idempotency key: starts with the same key are the same task. The default is a new key for this
   * call.
   */
  key?: string;
  /** Labels for searching the task. */
  labels?: Record<string, string>;
  /** Version number; default the newest one. */
  version?: number;
  /**
   * Wait this long for the task's end, at most 300,000, and include the ended task in the answer.
   */
  waitMs?: number;
  /**
   * With waitMs: wait for the end of this step instead, and include it in the answer if it has
   * ended. Steps are named as in waitForStep.
   */
  waitUntil?: string;
}

export interface ForkOptions {
  /** Version number of the new task; default that of the original task. */
  version?: number;
  /** Run the latest version. */
  latest?: boolean;
  /** Root node to run again, together with everything that follows it. */
  from?: string;
  /** Params for the remaining work; default those of the original task. */
  params?: unknown;
  /**
   * Idempotency key: forks with the same key are the same task. The default is a new key for this
   * call.
   */
  key?: string;
  /** Report what the new task would keep and run again, and start nothing. */
  dryRun?: boolean;
}

export interface TaskQuery {
  flow?: string;
  /** Any of these states. */
  states?: (TaskState | "paused")[];
  /** All of these labels. */
  labels?: Record<string, string>;
  /** Created at this time or later. */
  createdFrom?: Date;
  /** Created before this time. */
  createdTo?: Date;
}

/**
 * A command with a request id can be repeated, by other processes too, and takes effect once. The
 * default is a new id for the call.
 */
export interface Command {
  requestId?: string;
}

type Query = [string, string][];

/** Maximal wait of one request; proxies cut off much longer ones. */
const longestWait = 25_000;

/** Selects lines of a task's logs. Absent fields match everything. */
export interface LogQuery {
  node?: string;
  unit?: number;
  attempt?: number;
  stream?: "log" | "stdout" | "stderr";
  after?: string;
  follow?: boolean;
}

/** Selects values of a stream. Absent fields match everything. */
export interface StreamQuery {
  from?: number;
  follow?: boolean;
}

/**
 * Client of the members at the given addresses.
 *
 * Promises: every refusal is a ProblemError that says what is wrong, where, and what to do. An
 * unanswered request is retried, first at the next address, and takes effect once. A watch resumes
 * after a broken connection without gaps and duplicates.
 */
export class Client {
  readonly #transport: Transport;
  readonly #retries: number;
  readonly #silenceMs: number;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options.servers, options.token, options.timeoutMs ?? 60_000);
    this.#retries = Math.max(options.retries ?? 6, 0);
    this.#silenceMs = options.silenceMs ?? 45_000;
  }

  // Flows.

  /**
   * Publishes a definition (YAML or JSON text, or an object) as the newest version of a flow.
   * Content equal to the newest version changes nothing. The answer contains warnings about the
   * definition.
   */
  publish(flow: string, definition: string | object, options: CheckOptions = {}): Promise<PublishResult> {
    return this.#call("PUT", `/flows/${encodeURIComponent(flow)}${checks(options)}`, bodyOf(definition));
  }

  /** Returns all problems of a definition. Nothing is stored. */
  validate(definition: string | object, options: CheckOptions = {}): Promise<Validation> {
    return this.#call("POST", `/validate${checks(options)}`, bodyOf(definition));
  }

  /** Lists all flows, newest first. */
  flows(): AsyncGenerator<Flow, void, void> {
    return this.#pages("/flows");
  }

  flow(flow: string): Promise<Flow> {
    return this.#call("GET", `/flows/${encodeURIComponent(flow)}`);
  }

  /** Lists a flow's versions, highest number first. */
  versions(flow: string): AsyncGenerator<Version, void, void> {
    return this.#pages(`/flows/${encodeURIComponent(flow)}/versions`);
  }

  /** Returns a version with its definition; default the newest published one. */
  version(flow: string, number?: number): Promise<Version> {
    return this.#call("GET", `/flows/${encodeURIComponent(flow)}/versions/${number ?? "latest"}`);
  }

  // Tasks.

  /** Starts a task. The task is stored when the call returns. */
  start(flow: string, options: StartOptions = {}): Promise<StartResult> {
    const body = encode({
      flow, params: options.params, idempotency_key: options.key || randomUUID(), version: options.version,
      labels: options.labels, wait_ms: options.waitMs, wait_until: options.waitUntil,
    });
    return this.#call("POST", "/tasks", { body, waitMs: options.waitMs, signal: options.signal });
  }

  /** Searches tasks, newest first. */
  tasks(query: TaskQuery = {}): AsyncGenerator<TaskSummary, void, void> {
    return this.#pages("/tasks", [
      ...some({ flow: query.flow, created_from: query.createdFrom?.toISOString(), created_to: query.createdTo?.toISOString() }),
      ...each("state", query.states),
      ...each("label", Object.entries(query.labels ?? {}).map(([name, text]) => `${name}:${text}`)),
    ]);
  }

  /** Returns the current state of a task. */
  task(task: string): Promise<Task> {
    return this.#call("GET", pathOf(task));
  }

  /**
   * Waits for the end of a task and returns it. A failed or canceled task is no error; a
   * TimeoutError means that it did not end in time.
   */
  wait(task: string, options: WaitOptions = {}): Promise<Task> {
    return this.#poll(task, options);
  }

  /**
   * Waits for the end of a step at the top level of a task and returns it with its output. A failed
   * or skipped step is no error.
   *
   * The step is NODE, or NODE#2 for its second visit; in a function it is the name of a step. A
   * TimeoutError means that it did not end in time, a TroupeError that the task ended without it.
   */
  async waitForStep(task: string, step: string, options: WaitOptions = {}): Promise<Step> {
    const found = await this.#poll(task, options, step);
    if (found.step === undefined) throw new TroupeError(`task ${task} is ${found.state}, and its step ${step} has not ended`);
    return remember(found.step, () => textOf(found, "step") as string);
  }

  /**
   * Yields a task's events as they happen, after the event with the given id, and ends with the
   * task.
   */
  watch(task: string, options: Abortable & { after?: string } = {}): AsyncGenerator<Event, void, void> {
    return watch(this.#transport, task, options.after ?? "", this.#silenceMs, options.signal);
  }

  /**
   * Cancels a task. With graceful, running work continues. With force, compensations and clean-up
   * are ended, too.
   */
  cancel(task: string, how: Command & { graceful?: boolean; force?: boolean } = {}): Promise<TaskSummary> {
    return this.#command(task, "cancel", how, { graceful: how.graceful, force: how.force });
  }

  /** Prevents new work of a task from starting; work in flight continues. */
  pause(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "pause", command);
  }

  /** Reverts pause. */
  resume(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "resume", command);
  }

  /** Continues a failed task where it failed. */
  retry(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "retry", command);
  }

  /**
   * Starts a task from the history of an ended one. Steps with unchanged nodes keep their results;
   * everything else runs again.
   */
  fork(task: string, options: ForkOptions = {}): Promise<ForkResult> {
    const body = encode({
      version: options.version, latest: options.latest, from: options.from, params: options.params, dry_run: options.dryRun,
      idempotency_key: options.key || randomUUID(),
    });
    return this.#call("POST", pathOf(task, "/fork"), { body });
  }

  /** Sets a key of a task's shared state and wakes the steps that wait for it. */
  signal(task: string, key: string, value: unknown = null, command: Command & { sentBy?: string } = {}): Promise<TaskSummary> {
    return this.#command(task, "signal", command, { key, value, sent_by: command.sentBy });
  }

  /** Adds units to a fanout that has begun and returns their indexes. */
  async append(task: string, step: string, items: unknown[], options: Command & { scope?: string } = {}): Promise<number[]> {
    const content = { step, scope: options.scope, items };
    return (await this.#command<{ units: number[] }>(task, "append", options, content)).units;
  }

  /** Completes a unit of a step with the route direct, with an output or an error. */
  complete(task: string, step: string, end: { output?: unknown; error?: string; unit?: number; scope?: string } = {}): Promise<CompleteResult> {
    const output = end.error === undefined ? (end.output ?? null) : undefined;
    const body = encode({ step, scope: end.scope, unit: end.unit, output, error: end.error });
    return this.#call("POST", pathOf(task, "/complete"), { body });
  }

  // Information about a task.

  /** Lists the steps of a task, or of a scope in it. */
  steps(task: string, query: { scope?: string; step?: string; states?: StepState[] } = {}): AsyncGenerator<Step, void, void> {
    return this.#pages(pathOf(task, "/steps"), [...some({ scope: query.scope, step: query.step }), ...each("state", query.states)]);
  }

  /** Lists the units of a step, in the given visit or the newest. */
  units(task: string, step: string, query: { scope?: string; visit?: number; states?: UnitState[] } = {}): AsyncGenerator<Unit, void, void> {
    return this.#pages(pathOf(task, "/units"), [...some({ step, scope: query.scope, visit: query.visit }), ...each("state", query.states)]);
  }

  /** Lists a task's events so far, oldest first, after the given event. */
  events(task: string, after = ""): AsyncGenerator<Event, void, void> {
    return this.#pages(pathOf(task, "/events"), some({ after }), "after");
  }

  /** Lists a task's attempts and steps, ordered by start. */
  runs(task: string): AsyncGenerator<Run, void, void> {
    return this.#pages(pathOf(task, "/runs"));
  }

  /**
   * Yields the log lines of a task's attempts, after a given line: of one node, unit, attempt or
   * stream, or of all. With follow it continues with new lines until the task has ended.
   */
  logs(task: string, query: Abortable & LogQuery = {}): AsyncGenerator<LogEntry, void, void> {
    const { node, unit, attempt, stream, after } = query;
    const picked: Query = [...some({ node, attempt, stream }), ...(unit === undefined ? [] : [["unit", String(unit)] as [string, string]])];
    if (query.follow !== true) return this.#pages(pathOf(task, "/logs"), [...picked, ...some({ after })], "after");
    const path = pathOf(task, "/logs/stream") + (picked.length > 0 ? `?${new URLSearchParams(picked as [string, string][]).toString()}` : "");
    return follow<LogEntry>(this.#transport, path, after ?? "", this.#silenceMs, query.signal, (line) => line.id);
  }

  /** Returns the streams of a task, to which its steps write values while they run. */
  streams(task: string): Promise<StreamInfo[]> {
    return this.#call<{ items: StreamInfo[] }>("GET", pathOf(task, "/streams")).then((page) => page.items);
  }

  /**
   * Yields the values of a stream from an offset on. With follow it continues with new values until
   * the stream or the task has ended.
   */
  stream(task: string, name: string, query: Abortable & StreamQuery = {}): AsyncGenerator<StreamValue, void, void> {
    const path = pathOf(task, `/streams/${encodeURIComponent(name)}`);
    const from = query.from ?? 0;
    if (query.follow !== true) return this.#values(path, from);
    const after = from > 0 ? String(from - 1) : "";
    return follow<StreamValue>(this.#transport, path, after, this.#silenceMs, query.signal, (value) => String(value.offset));
  }

  /** Reads a stream page by page. */
  async *#values(path: string, from: number): AsyncGenerator<StreamValue, void, void> {
    for (;;) {
      const page = await this.#call<{ values: StreamValue[]; next: number }>("GET", `${path}?from=${from}`);
      yield* page.values;
      if (page.values.length === 0) return;
      from = page.next;
    }
  }

  /** Returns the reasons why a task is waiting. */
  waiting(task: string): Promise<WaitReasons> {
    return this.#call("GET", pathOf(task, "/waiting"));
  }

  // Jobs, workers, members.

  job(job: string): Promise<JobInfo> {
    return this.#call("GET", `/jobs/${encodeURIComponent(job)}`);
  }

  /** Returns the log of a job. */
  async log(job: string): Promise<string> {
    return (await this.#call<{ content: string }>("GET", `/jobs/${encodeURIComponent(job)}/log`)).content;
  }

  /** Lists the jobs in the queue, of some services or of all, the longest waiting first. */
  jobs(services: string[] = []): AsyncGenerator<WaitingJob, void, void> {
    return this.#pages("/jobs", each("service", services));
  }

  /** Returns the lengths of the queues. */
  queues(): Promise<QueueInfo[]> {
    return allOf(this.#pages("/queues"));
  }

  workers(): Promise<WorkerInfo[]> {
    return allOf(this.#pages("/workers"));
  }

  /** Returns information about the server. */
  info(): Promise<ServerInfo> {
    return this.#call("GET", "/info");
  }

  // Sending requests.

  /** Reads a task again and again until it, or its step, has ended. */
  async #poll(task: string, options: WaitOptions, step?: string): Promise<Task> {
    const deadline = performance.now() + (options.timeoutMs ?? Infinity);
    for (;;) {
      const left = deadline - performance.now();
      const waitMs = Math.floor(Math.max(Math.min(left, longestWait), 1)); // without a wait, members refuse wait_until
      const path = pathOf(task) + textOfQuery(some({ wait_ms: waitMs, wait_until: step }));
      const found = await this.#call<Task>("GET", path, { waitMs, signal: options.signal });
      if (found.ended_at !== undefined || found.step !== undefined) return found;
      if (performance.now() >= deadline) {
        const what = step ? `step ${step} of task ${task} has not ended` : `task ${task} is still ${found.state}`;
        throw new TimeoutError(`${what} after ${options.timeoutMs} ms`);
      }
    }
  }

  /** Sends a command with a request id, so that it takes effect once, however often it is sent. */
  #command<T = TaskSummary>(task: string, name: string, command: Command, content?: Record<string, unknown>): Promise<T> {
    const headers = { "Request-Id": command.requestId ?? randomUUID() };
    return this.#call("POST", pathOf(task, `/${name}`), { headers, body: content && encode(content) });
  }

  /** Reads a list page by page. */
  async *#pages<T>(path: string, query: Query = [], cursor = "cursor"): AsyncGenerator<T, void, void> {
    let page = await this.#call<{ items: T[]; next?: string }>("GET", path + textOfQuery(query));
    for (;;) {
      const read = page;
      let texts: string[] | undefined; // of the items, parsed on demand
      for (const [i, item] of read.items.entries()) {
        yield remember(item, () => (texts ??= itemsOf(textOf(read, "items") as string))[i] as string);
      }
      if (!page.next) return;
      page = await this.#call("GET", path + textOfQuery([...query.filter(([name]) => name !== cursor), [cursor, page.next]]));
    }
  }

  /** Sends a request until it is answered. */
  async #call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const backoff = new Backoff();
    for (let left = this.#retries; ; left--) {
      try {
        return await this.#transport.call<T>(method, path, request);
      } catch (e) {
        if (left === 0 || !mayPass(e)) throw e;
        await sleep(backoff.pause(e), request.signal);
        request.signal?.throwIfAborted();
      }
    }
  }
}

function pathOf(task: string, what = ""): string {
  return `/tasks/${encodeURIComponent(task)}${what}`;
}

/** Returns the defined fields as a query. */
function some(fields: Record<string, string | number | undefined>): Query {
  return Object.entries(fields).flatMap(([name, value]): Query => (value ? [[name, String(value)]] : []));
}

function each(name: string, values: readonly string[] = []): Query {
  return values.map((value) => [name, value]);
}

function textOfQuery(query: Query): string {
  return query.length === 0 ? "" : `?${new URLSearchParams(query)}`;
}

/** Returns the query of the options. */
function checks(options: CheckOptions): string {
  return options.strict ? "?strict=true" : "";
}

function bodyOf(definition: string | object): Request {
  const text = typeof definition === "string" ? definition : textAs(definition, "the definition");
  const kind = text.trimStart().startsWith("{") ? "application/json" : "application/yaml";
  // An empty definition is reported by the server like every other problem.
  return { body: text || "\n", headers: { "Content-Type": kind } };
}

async function allOf<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of pages) all.push(item);
  return all;
}
