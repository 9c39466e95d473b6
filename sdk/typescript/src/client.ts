/** The client of /v1: publishing flows, starting tasks, following and steering them. */

import { randomUUID } from "node:crypto";

import { mayPass, TimeoutError } from "./errors.js";
import { Backoff, sleep } from "./pauses.js";
import { itemsOf, remember, textOf } from "./raw.js";
import { Transport, type Request, type Servers } from "./transport.js";
import type {
  Completed, Event, Flow, Forked, Info, JobInfo, LogEntry, Published, QueueInfo, Run, Started, Step, StepState, Task, TaskState, TaskSummary, Unit, UnitState,
  Validation, Version, Waiting, WaitingJob, WorkerInfo,
} from "./types.js";
import { follow, watch } from "./watch.js";
import { encode, textAs } from "./write.js";

export interface ClientOptions {
  servers?: Servers;
  /** Proves the caller to the members; by default TROUPE_TOKEN. */
  token?: string;
  /** How long an answer may take, what the member is to wait for left aside; 60 s. */
  timeoutMs?: number;
  /** How often all addresses are asked again; 6. A watch goes on for as long as it is read. */
  retries?: number;
  /** How long a stream may say nothing, not even that it is alive, before a watch connects again; 45 s. */
  silenceMs?: number;
}

/** Ends what would wait. */
export interface Abortable {
  signal?: AbortSignal;
}

export interface CheckOptions {
  /** Makes errors of warnings, so that a definition with a warning is refused. */
  strict?: boolean;
}

export interface StartOptions extends Abortable {
  /** What the task is started with: an object, for a flow of dag mode any JSON. */
  params?: unknown;
  /** With the same key it is the same task, whoever starts it; without one a key is made up for this call. */
  key?: string;
  /** Marks to find the task by. */
  labels?: Record<string, string>;
  /** Number of the version; by default the newest one. */
  version?: number;
  /** Wait so long for the task's end, at most 300,000, and answer with it. */
  waitMs?: number;
}

export interface ForkOptions {
  /** Number of the version that the new task runs; by default that of the other one. */
  version?: number;
  /** Run the newest version. */
  newest?: boolean;
  /** A node at the top of the flow that is done again, with all that follows it. */
  from?: string;
  /** With which what is left is done; by default those of the other task. */
  params?: unknown;
  /** With the same key it is the same task; without one a key is made up for this call. */
  key?: string;
  /** Say what the new task would keep and do again, and start nothing. */
  dryRun?: boolean;
}

export interface TaskQuery {
  flow?: string;
  /** Any of them. */
  states?: (TaskState | "paused")[];
  /** All of them. */
  labels?: Record<string, string>;
  /** Created then or later. */
  createdFrom?: Date;
  /** Created before. */
  createdTo?: Date;
}

/** A command with a name may be given again, by another process too, and has its effect once. Without one a name is made up for the call. */
export interface Command {
  request?: string;
}

type Query = [string, string][];

/** What one request waits for at most; proxies cut off what takes much longer. */
const longestWait = 25_000;

/** Which lines of a task's logs are wanted. What is absent does not matter. */
export interface LogQuery {
  node?: string;
  unit?: number;
  attempt?: number;
  stream?: "log" | "stdout" | "stderr";
  after?: string;
  follow?: boolean;
}

/**
 * Speaks to the members at some addresses.
 *
 * Promises: every refusal is a ProblemError that says what is wrong, where, and what to do; a request that is not answered is sent again, to the next
 * address first, and has its effect once; watch goes on where it broke off, without a gap and without an event twice.
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
   * Makes a definition (YAML or JSON text, or an object) the newest version of a flow. The content of the newest version changes nothing.
   * The answer has the warnings about the definition.
   */
  publish(flow: string, definition: string | object, options: CheckOptions = {}): Promise<Published> {
    return this.#call("PUT", `/flows/${encodeURIComponent(flow)}${checks(options)}`, bodyOf(definition));
  }

  /** Tells all problems of a definition. Nothing is kept. */
  validate(definition: string | object, options: CheckOptions = {}): Promise<Validation> {
    return this.#call("POST", `/validate${checks(options)}`, bodyOf(definition));
  }

  /** All flows, newest first. */
  flows(): AsyncGenerator<Flow, void, void> {
    return this.#pages("/flows");
  }

  flow(flow: string): Promise<Flow> {
    return this.#call("GET", `/flows/${encodeURIComponent(flow)}`);
  }

  /** A flow's versions, highest number first. */
  versions(flow: string): AsyncGenerator<Version, void, void> {
    return this.#pages(`/flows/${encodeURIComponent(flow)}/versions`);
  }

  /** A version with its definition; by default the newest published one. */
  version(flow: string, number?: number): Promise<Version> {
    return this.#call("GET", `/flows/${encodeURIComponent(flow)}/versions/${number ?? "latest"}`);
  }

  // Tasks.

  /** Starts a task. When it is answered the task is stored. */
  start(flow: string, options: StartOptions = {}): Promise<Started> {
    const body = encode({
      flow, params: options.params, idempotency_key: options.key || randomUUID(), version: options.version,
      labels: options.labels, wait_ms: options.waitMs,
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

  /** A task as it is at this moment. */
  task(task: string): Promise<Task> {
    return this.#call("GET", pathOf(task));
  }

  /** Reads a task when it has ended. One that failed or was canceled is no error; a TimeoutError says that it takes too long. */
  async wait(task: string, options: Abortable & { timeoutMs?: number } = {}): Promise<Task> {
    const deadline = performance.now() + (options.timeoutMs ?? Infinity);
    for (;;) {
      const left = Math.floor(Math.min(Math.max(deadline - performance.now(), 0), longestWait));
      const found = await this.#call<Task>("GET", `${pathOf(task)}?wait_ms=${left}`, { waitMs: left, signal: options.signal });
      if (found.ended_at !== undefined) return found;
      if (performance.now() >= deadline) {
        throw new TimeoutError(`task ${task} is still ${found.state} after ${options.timeoutMs} ms`);
      }
    }
  }

  /** Gives a task's events as they happen, from behind the one with an id on, and ends with the task. */
  watch(task: string, options: Abortable & { after?: string } = {}): AsyncGenerator<Event, void, void> {
    return watch(this.#transport, task, options.after ?? "", this.#silenceMs, options.signal);
  }

  /** Ends a task. Gently: what has begun goes on. By force: what undoes and cleans up is ended, too. */
  cancel(task: string, how: Command & { gently?: boolean; force?: boolean } = {}): Promise<TaskSummary> {
    return this.#command(task, "cancel", how, { gently: how.gently, force: how.force });
  }

  /** Keeps anything new of a task from starting; what is in flight goes on. */
  pause(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "pause", command);
  }

  /** Undoes pause. */
  resume(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "resume", command);
  }

  /** Has a failed task go on where it failed. */
  retry(task: string, command: Command = {}): Promise<TaskSummary> {
    return this.#command(task, "retry", command);
  }

  /**
   * Starts a task that goes on from the history of one that has ended: steps whose nodes are the same keep their results, what else there was is
   * done again.
   */
  fork(task: string, options: ForkOptions = {}): Promise<Forked> {
    const body = encode({
      version: options.version, newest: options.newest, from: options.from, params: options.params, dry_run: options.dryRun,
      idempotency_key: options.key || randomUUID(),
    });
    return this.#call("POST", pathOf(task, "/fork"), { body });
  }

  /** Sets a key of a task's shared state and wakes whoever waits for it. */
  signal(task: string, key: string, value: unknown = null, command: Command & { by?: string } = {}): Promise<TaskSummary> {
    return this.#command(task, "signal", command, { key, value, by: command.by });
  }

  /** Adds units to a fan-out that has begun and gives their indexes. */
  async append(task: string, step: string, items: unknown[], options: Command & { scope?: string } = {}): Promise<number[]> {
    const content = { step, scope: options.scope, items };
    return (await this.#command<{ units: number[] }>(task, "append", options, content)).units;
  }

  /** Ends a unit of a step whose route is direct, with an output or with an error. */
  complete(task: string, step: string, end: { output?: unknown; error?: string; unit?: number; scope?: string } = {}): Promise<Completed> {
    const output = end.error === undefined ? (end.output ?? null) : undefined;
    const body = encode({ step, scope: end.scope, unit: end.unit, output, error: end.error });
    return this.#call("POST", pathOf(task, "/complete"), { body });
  }

  // What there is to know about a task.

  /** The steps of a task, or of a scope in it. */
  steps(task: string, query: { scope?: string; step?: string; states?: StepState[] } = {}): AsyncGenerator<Step, void, void> {
    return this.#pages(pathOf(task, "/steps"), [...some({ scope: query.scope, step: query.step }), ...each("state", query.states)]);
  }

  /** The units of a step; of its visits the one with a number, or the newest. */
  units(task: string, step: string, query: { scope?: string; visit?: number; states?: UnitState[] } = {}): AsyncGenerator<Unit, void, void> {
    return this.#pages(pathOf(task, "/units"), [...some({ step, scope: query.scope, visit: query.visit }), ...each("state", query.states)]);
  }

  /** A task's history so far, oldest first, from behind an event on. */
  events(task: string, after = ""): AsyncGenerator<Event, void, void> {
    return this.#pages(pathOf(task, "/events"), some({ after }), "after");
  }

  /** A task's attempts and steps, in order of their beginning. */
  runs(task: string): AsyncGenerator<Run, void, void> {
    return this.#pages(pathOf(task, "/runs"));
  }

  /**
   * What a task's attempts have printed, from behind a line on: of one node, unit, attempt or stream, or of all. With follow it goes on with what
   * they print from now on, until the task has ended.
   */
  logs(task: string, query: Abortable & LogQuery = {}): AsyncGenerator<LogEntry, void, void> {
    const { node, unit, attempt, stream, after } = query;
    const picked: Query = [...some({ node, attempt, stream }), ...(unit === undefined ? [] : [["unit", String(unit)] as [string, string]])];
    if (query.follow !== true) return this.#pages(pathOf(task, "/logs"), [...picked, ...some({ after })], "after");
    const path = pathOf(task, "/logs/stream") + (picked.length > 0 ? `?${new URLSearchParams(picked as [string, string][]).toString()}` : "");
    return follow<LogEntry>(this.#transport, path, after ?? "", this.#silenceMs, query.signal);
  }

  /** Why a task is waiting. */
  waiting(task: string): Promise<Waiting> {
    return this.#call("GET", pathOf(task, "/waiting"));
  }

  // Jobs, workers, members.

  job(job: string): Promise<JobInfo> {
    return this.#call("GET", `/jobs/${encodeURIComponent(job)}`);
  }

  /** What a job has printed. */
  async log(job: string): Promise<string> {
    return (await this.#call<{ content: string }>("GET", `/jobs/${encodeURIComponent(job)}/log`)).content;
  }

  /** The jobs in the queue, of some services or of all, the longest waiting first. */
  jobs(services: string[] = []): AsyncGenerator<WaitingJob, void, void> {
    return this.#pages("/jobs", each("service", services));
  }

  /** How long the queues are. */
  queues(): Promise<QueueInfo[]> {
    return allOf(this.#pages("/queues"));
  }

  workers(): Promise<WorkerInfo[]> {
    return allOf(this.#pages("/workers"));
  }

  /** With whom one speaks. */
  info(): Promise<Info> {
    return this.#call("GET", "/info");
  }

  // How it is sent.

  /** Gives a command. It has a name, so that it has its effect once, however often it is sent. */
  #command<T = TaskSummary>(task: string, name: string, command: Command, content?: Record<string, unknown>): Promise<T> {
    const headers = { "Request-Id": command.request ?? randomUUID() };
    return this.#call("POST", pathOf(task, `/${name}`), { headers, body: content && encode(content) });
  }

  /** Reads a list page by page. */
  async *#pages<T>(path: string, query: Query = [], cursor = "cursor"): AsyncGenerator<T, void, void> {
    let page = await this.#call<{ items: T[]; next?: string }>("GET", path + textOfQuery(query));
    for (;;) {
      const read = page;
      let texts: string[] | undefined; // of the items, if somebody asks
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

/** The fields that are there, as a query. */
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
  // What is wrong with an empty definition is told like every other problem.
  return { body: text || "\n", headers: { "Content-Type": kind } };
}

async function allOf<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of pages) all.push(item);
  return all;
}
