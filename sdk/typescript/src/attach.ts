/**
 * A worker that dials a member and keeps one stream: jobs arrive as soon as they exist, and results
 * are sent back.
 */

import { hostname } from "node:os";

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { FromWorkerSchema, Outcome, Workers, type FromWorker, type Job as SentJob, type ToWorker, type Welcome } from "./attach_pb.js";
import { DeniedError } from "./errors.js";
import { Job, cut, failureOf, messageOf } from "./job.js";
import { standardLogger, type Logger } from "./log.js";
import { Outbox, type Result } from "./outbox.js";
import { Backoff, Change, sleep } from "./pauses.js";
import { sender } from "./streams.js";
import { addresses, Transport, type Servers } from "./transport.js";
import type { Handler, RunOptions } from "./worker.js";
import { textAs } from "./write.js";

export interface AttachedWorkerOptions {
  servers?: Servers;
  /** Authenticates the worker to the members; default TROUPE_TOKEN. */
  token?: string;
  /** Id of the worker. The default is derived from host, process and time. */
  id?: string;
  /** Capabilities such as "gpu": jobs that require labels go only to workers with all of them. */
  labels?: string[];
  /** Maximal number of concurrent handlers, and so of jobs held; default 64. */
  concurrency?: number;
  /** Time for running jobs to finish when the worker stops; default 10 s. */
  graceMs?: number;
  /** Receives errors, never the contents of jobs; default: warnings on the console. */
  logger?: Logger;
}

const protocol = 1;
const welcomeTime = 10_000; // time limit for a member to answer the hello
const silences = 3; // number of heartbeats that may be missed
const logPause = 500; // interval for sending the logs of jobs
const partingTime = 2_000; // time limit for the final messages
// minimal duration of a stream since the welcome after which the worker reconnects elsewhere
// without a pause, and resets its backoff
const minStay = 1_000;
const minPatience = 500; // minimal time for a member to answer the hello of a worker with jobs
const mostBrought = 10_000; // maximal number of jobs that a worker may bring along

/** A job held by this worker until its result is acknowledged. */
interface Held {
  job: Job;
  ticket: Uint8Array; // proof with which the worker may bring the job to another member; empty if it may not
  result?: Result;
  begun: boolean; // its handler was called
  canceled: boolean; // the job is no longer needed
}

/** One stream to a member. */
interface Line {
  address: string;
  out: Outbox;
  ending: AbortController;
  heardAt: number;
  heartbeatMs: number;
  welcomedAt: number | undefined; // undefined until welcomed
  leaves: boolean; // the member is leaving
}

/**
 * Carries out jobs of the services for which it has handlers. It can be run once.
 *
 * Promises:
 * - At most `concurrency` handlers run at once.
 * - When the stream breaks or the member ends, the jobs continue. If the worker reconnects in time,
 *   to the same or another member, it keeps them, and no job runs twice.
 * - A result is sent again until it is acknowledged, or until others have the job.
 * - A job's signal is aborted when the job is no longer needed.
 * - When the worker stops, it gets no more jobs. Running jobs may finish within `graceMs`; then
 *   they are returned.
 */
export class AttachedWorker {
  readonly id: string;
  readonly #addresses: string[];
  readonly #token: string | undefined;
  readonly #transport: Transport; // for the values of streams
  readonly #options: { labels: string[]; concurrency: number; graceMs: number };
  readonly #logger: Logger;
  readonly #handlers = new Map<string, Handler>();
  readonly #stopping = new AbortController();
  readonly #over = new AbortController(); // no more messages are sent
  readonly #changed = new Change(); // jobs were added or removed
  #held = new Map<bigint, Held>();
  readonly #waiting = new Map<bigint, () => void>(); // functions that start held jobs without a free slot, by number
  #atWork = 0; // includes jobs of ended sessions
  #line: Line | undefined;
  #session = "";
  #graceMs = 0; // grace period of the session after a broken stream
  #mostBytes = 1 << 20;
  #at = 0;
  #denied: DeniedError | undefined; // reason why no member accepts the worker

  constructor(options: AttachedWorkerOptions = {}) {
    this.id = options.id ?? `${hostname()}-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e6)}`;
    this.#addresses = addresses(options.servers);
    this.#token = options.token ?? process.env["TROUPE_TOKEN"];
    this.#transport = new Transport(options.servers, options.token, 30_000);
    this.#options = {
      labels: options.labels ?? [], concurrency: Math.min(Math.max(options.concurrency ?? 64, 1), 10_000), graceMs: Math.max(options.graceMs ?? 10_000, 0),
    };
    this.#logger = options.logger ?? standardLogger;
  }

  /**
   * Registers the handler of a service; call it before run. It throws if the service already has
   * one, or if the handler is no function.
   */
  handle<I = any>(service: string, handler: Handler<I>): this {
    if (service === "" || service.includes("\0")) throw new TypeError(`${JSON.stringify(service)} is no name of a service`);
    if (typeof handler !== "function") throw new TypeError(`the handler of the service ${JSON.stringify(service)} is no function`);
    if (this.#handlers.has(service)) throw new TypeError(`the service ${JSON.stringify(service)} has a handler already: register one for each service`);
    this.#handlers.set(service, handler);
    return this;
  }

  /** Stops run. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Works until stop is called, the signal is aborted, or SIGTERM or SIGINT arrives, and then until
   * the running jobs have ended. It throws a DeniedError if the token is missing, wrong or of
   * another role.
   */
  async run(options: RunOptions = {}): Promise<void> {
    if (this.#handlers.size === 0) throw new TypeError("there is no handler, so there is nothing to offer");
    const stop = (): void => this.stop();
    const names = options.signals === false ? [] : (["SIGTERM", "SIGINT"] as const);
    for (const name of names) process.on(name, stop);
    options.signal?.addEventListener("abort", stop);
    if (options.signal?.aborted) stop();
    const attached = this.#stayAttached();
    try {
      while (await sleep(Infinity, this.#stopping.signal));
    } finally {
      for (const name of names) process.off(name, stop);
      options.signal?.removeEventListener("abort", stop);
    }
    await this.#drain();
    this.#line?.out.close();
    await Promise.race([attached, sleep(partingTime)]);
    this.#over.abort();
    this.#line?.ending.abort();
    await attached;
    if (this.#denied !== undefined) throw this.#denied;
  }

  /** Stops run if no member accepts the token or its role, because retries would not help. */
  #deny(error: unknown): boolean {
    if (!(error instanceof ConnectError) || ![Code.Unauthenticated, Code.PermissionDenied].includes(error.code)) return false;
    const [status, what] = error.code === Code.PermissionDenied ? [403, "the member does not let this worker in: the token needs the role worker"]
      : [401, this.#token ? "the bearer token is wrong" : "a bearer token is needed"];
    this.#denied = new DeniedError(status, { code: "denied", message: what, detail: what });
    this.stop();
    return true;
  }

  /** Lets the running jobs finish within the grace period, then returns them. */
  async #drain(): Promise<void> {
    this.#line?.out.leave();
    this.#waiting.clear();
    for (const [number, held] of this.#held) if (!held.begun) this.#deliver(number, held, { outcome: Outcome.RETURNED });
    if (await this.#empty(this.#options.graceMs)) return;
    const left = [...this.#held].filter(([, held]) => held.result === undefined);
    this.#logger.warn(`${left.length} jobs are left unfinished, the member will give them to others`);
    for (const [number, held] of left) {
      this.#deliver(number, held, { outcome: Outcome.RETURNED });
      held.job.cancel();
    }
    await this.#empty(partingTime);
  }

  /** Waits until every result is acknowledged. */
  async #empty(ms: number): Promise<boolean> {
    for (const end = performance.now() + ms; this.#held.size > 0; ) {
      const left = end - performance.now();
      if (left <= 0) return false;
      await this.#changed.wait(left);
    }
    return true;
  }

  // The stream.

  /**
   * Attaches repeatedly. With jobs it tries the next address at once when the stream breaks,
   * because they belong to it only for a limited time.
   */
  async #stayAttached(): Promise<void> {
    let backoff = new Backoff();
    while (!this.#over.signal.aborted && !(this.#stopping.signal.aborted && this.#held.size === 0)) {
      let error: unknown;
      try {
        await this.#attach(this.#addresses[this.#at] as string);
      } catch (e) {
        error = e;
      }
      const { welcomedAt, leaves } = this.#line ?? { welcomedAt: undefined, leaves: false };
      this.#line = undefined;
      if (this.#over.signal.aborted || this.#deny(error)) return;
      const welcomed = welcomedAt !== undefined;
      const stayed = welcomed && performance.now() - welcomedAt >= minStay;
      if (stayed) backoff = new Backoff();
      else if (welcomed) backoff.atMost(minStay); // the member is up, and after a long absence others get the jobs
      if (error !== undefined && backoff.fresh && !leaves) this.#logger.warn("the worker is not attached, trying on:", error);
      const brings = this.#brings();
      if (leaves || !welcomed || brings) this.#at = (this.#at + 1) % this.#addresses.length;
      const atOnce = stayed && (error === undefined || brings);
      await sleep(atOnce ? 0 : backoff.pause(), this.#over.signal);
    }
  }

  /** Returns whether the worker has jobs that it may bring to another address. */
  #brings(): boolean {
    return this.#addresses.length > 1 && [...this.#held.values()].some((held) => held.ticket.length > 0);
  }

  /**
   * Returns the jobs to show to a member that does not know them, as many as fit into a message.
   */
  #brought(): { number: bigint; id: string; ticket: Uint8Array }[] {
    const all = [];
    let bytes = 0;
    for (const [number, { job, ticket }] of this.#held) {
      bytes += job.id.length + ticket.length + 64;
      if (all.length === mostBrought || bytes > this.#mostBytes / 2) break;
      if (ticket.length > 0) all.push({ number, id: job.id, ticket });
    }
    return all;
  }

  /** Keeps one stream until it ends. */
  async #attach(address: string): Promise<void> {
    const line: Line = { address, out: new Outbox(), ending: new AbortController(), heardAt: performance.now(), heartbeatMs: this.#patience() / silences, welcomedAt: undefined, leaves: false };
    this.#line = line;
    const sessions = new Http2SessionManager(address);
    const client = createClient(Workers, createConnectTransport({ baseUrl: address, httpVersion: "2", useBinaryFormat: true, sessionManager: sessions }));
    const headers: Record<string, string> = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    const watch = setInterval(() => {
      if (performance.now() - line.heardAt > silences * line.heartbeatMs) line.ending.abort(new Error(`${address} is silent`));
    }, 100);
    const printing = setInterval(() => {
      if (line.welcomedAt !== undefined) for (const [number, held] of this.#held) this.#print(number, held);
    }, logPause);
    try {
      for await (const message of client.attach(this.#say(line), { signal: line.ending.signal, headers })) {
        line.heardAt = performance.now();
        if (message.welcome !== undefined && line.welcomedAt === undefined) this.#enter(line, message.welcome);
        this.#hear(line, message);
      }
    } finally {
      clearInterval(watch);
      clearInterval(printing);
      line.out.close();
      sessions.abort();
    }
  }

  /**
   * Returns the time limit for a member's answer. If a worker with jobs waits too long, others get
   * them.
   */
  #patience(): number {
    return this.#brings() ? Math.min(Math.max(this.#graceMs / 4, minPatience), welcomeTime) : welcomeTime;
  }

  /**
   * Yields the messages of a stream: the hello, then pending messages, or a heartbeat if there are
   * none.
   */
  async *#say(line: Line): AsyncGenerator<FromWorker> {
    const held = [...this.#held].filter(([, h]) => h.result === undefined).map(([number]) => number);
    const finished = [...this.#held].filter(([, h]) => h.result !== undefined).map(([number]) => number);
    yield create(FromWorkerSchema, { hello: {
      protocol, worker: this.id, services: [...this.#handlers.keys()].sort(), labels: this.#options.labels, credits: this.#options.concurrency,
      session: this.#session, held, finished, brought: this.#brought(),
    } });
    for (let message = await line.out.next(line.heartbeatMs); message !== undefined; message = await line.out.next(line.heartbeatMs)) yield message;
  }

  /** Starts or resumes a session. */
  #enter(line: Line, welcome: Welcome): void {
    const { resumed } = welcome;
    if (!resumed) this.#forgetAll(); // others have the jobs
    [line.welcomedAt, line.heartbeatMs] = [performance.now(), welcome.heartbeatMs || line.heartbeatMs];
    [this.#session, this.#graceMs, this.#mostBytes] = [welcome.session, welcome.graceMs, Number(welcome.mostBytes) || this.#mostBytes];
    for (const [number, held] of this.#held) if (held.result !== undefined) line.out.result(number, held.result);
    if (this.#stopping.signal.aborted) line.out.leave();
    this.#logger.info(`attached to ${line.address} as ${this.id}${resumed ? ", the session goes on" : ""}`);
  }

  #forgetAll(): void {
    const held = this.#held;
    this.#held = new Map();
    this.#waiting.clear();
    for (const { job } of held.values()) job.cancel();
    this.#changed.notify();
  }

  #hear(line: Line, message: ToWorker): void {
    for (const job of message.jobs) this.#take(job);
    for (const number of message.acknowledged) this.#held.delete(number);
    for (const number of message.canceled) this.#cancel(number);
    if (message.leaving) {
      line.leaves = true;
      if (this.#brings()) line.ending.abort(new Error(`${line.address} leaves`));
      else line.out.closeWhen(() => this.#held.size === 0);
    }
    if (message.acknowledged.length > 0) this.#changed.notify();
    line.out.look();
  }

  // The jobs.

  #take(sent: SentJob): void {
    if (this.#held.has(sent.number)) return;
    const text = (bytes: Uint8Array, or: string): string => (bytes.length === 0 ? or : Buffer.from(bytes).toString());
    const [input, params] = [text(sent.input, "null"), text(sent.params, "{}")];
    const told = {
      id: sent.id, key: sent.key, task: sent.task, flow: sent.flow, step: sent.step, unit: sent.unit,
      units: sent.units, attempt: sent.attempt, labels: sent.labels, service: sent.service, trace: sent.trace,
      input: JSON.parse(input), params: JSON.parse(params), token: "", ...(sent.timeoutMs > 0n ? { timeout_ms: Number(sent.timeoutMs) } : {}),
    };
    const job = new Job(told, () => `{"input":${input},"params":${params}}`, (text) => {
      if (this.#held.get(sent.number) === held) this.#line?.out.progress(sent.number, text); // otherwise another job has the number by now
    }, sender(this.#transport, sent.id, ""));
    const held: Held = { job, ticket: sent.ticket, begun: false, canceled: false };
    this.#held.set(sent.number, held);
    const handler = this.#handlers.get(sent.service);
    if (this.#stopping.signal.aborted || handler === undefined) this.#deliver(sent.number, held, { outcome: Outcome.RETURNED });
    else {
      this.#waiting.set(sent.number, () => this.#begin(sent.number, held, handler));
      this.#beginWaiting();
    }
  }

  /**
   * Starts the oldest jobs for which there is a slot. Handlers of an ended session may still occupy
   * slots.
   */
  #beginWaiting(): void {
    for (const [number, begin] of this.#waiting) {
      if (this.#atWork >= this.#options.concurrency) return;
      this.#waiting.delete(number);
      begin();
    }
  }

  #begin(number: bigint, held: Held, handler: Handler): void {
    held.begun = true;
    this.#atWork++;
    void this.#carryOut(number, held, handler).finally(() => {
      this.#atWork--;
      this.#beginWaiting();
    });
  }

  async #carryOut(number: bigint, held: Held, handler: Handler): Promise<void> {
    let result: Result;
    try {
      result = this.#completed(await handler(held.job), held.job);
    } catch (e) {
      const { error, fatal, details } = failureOf(held.job, e);
      result = { outcome: Outcome.FAILED, error, fatal, ...(details && { details: Buffer.from(details.text) }) };
    }
    await held.job.closeStreams();
    if (held.canceled) result = { outcome: Outcome.CANCELED };
    const numbers = numbersOf(held.job);
    if (numbers.length > 0) result.metrics = numbers;
    this.#print(number, held);
    this.#deliver(number, held, result);
  }

  /** Sends the log of a job. */
  #print(number: bigint, held: Held): void {
    const line = this.#line;
    if (line === undefined || this.#held.get(number) !== held) return;
    while (held.job.printed.waits) {
      line.out.log(number, held.job.printed.part().lines);
      held.job.printed.arrived();
    }
  }

  #completed(output: unknown, job: Job): Result {
    try {
      const bytes = Buffer.from(textAs(output, "output"));
      if (bytes.length + numbersOf(job).length + 1024 <= this.#mostBytes) return { outcome: Outcome.COMPLETED, output: bytes };
      return { outcome: Outcome.FAILED, error: `the handler's result has ${bytes.length} bytes, more than a message may have (${this.#mostBytes})`, fatal: true };
    } catch (e) {
      return { outcome: Outcome.FAILED, error: cut(`the handler's result cannot be sent: ${messageOf(e)}`, 4096), fatal: true };
    }
  }

  /** Sends a result, unless others have the job by now, or it was returned. */
  #deliver(number: bigint, held: Held, result: Result): void {
    if (this.#held.get(number) !== held || held.result !== undefined) return;
    held.result = result;
    if (this.#line?.welcomedAt !== undefined) this.#line.out.result(number, result);
  }

  #cancel(number: bigint): void {
    const held = this.#held.get(number);
    if (held === undefined || held.canceled) return;
    held.canceled = true;
    held.job.cancel();
    if (this.#waiting.delete(number)) this.#deliver(number, held, { outcome: Outcome.CANCELED });
  }
}

/** Returns the metrics of a job as JSON; empty if none. */
function numbersOf(job: Job): Uint8Array {
  const told = job.numbers.told;
  return Buffer.from(told === undefined ? "" : JSON.stringify(told));
}
