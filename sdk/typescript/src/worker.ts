/** A worker that polls a member for jobs, so it works behind any firewall. */

import { hostname } from "node:os";

import { Claims, partingTime, type Claim } from "./claims.js";
import { DeniedError, NotFoundError } from "./errors.js";
import type { Job, ToldJob } from "./job.js";
import { standardLogger, type Logger } from "./log.js";
import { LargeParams } from "./params.js";
import { Backoff, Change, sleep } from "./pauses.js";
import { itemsOf, textOf } from "./raw.js";
import { failureReport, outputReport, Reporter } from "./reports.js";
import { Transport, type Servers } from "./transport.js";
import { encode } from "./write.js";

export type { Logger } from "./log.js";

/**
 * Carries out a job. Its result becomes the job's output as JSON; a thrown error fails the attempt.
 */
export type Handler<I = any> = (job: Job<I>) => unknown;

export interface WorkerOptions {
  servers?: Servers;
  /** Authenticates the worker to the members; default TROUPE_TOKEN. */
  token?: string;
  /** Id of the worker. The default is derived from host, process and time. */
  id?: string;
  /** Capabilities such as "gpu": jobs that require labels go only to workers with all of them. */
  labels?: string[];
  /** Maximal number of concurrent handlers; default 64. */
  concurrency?: number;
  /**
   * Number of additional jobs to hold, so that one is available when a handler finishes; default 0.
   */
  prefetch?: number;
  /** Maximal wait of a poll at the member; default 20 s, at most 60. */
  waitMs?: number;
  /** Time for running jobs to finish when the worker stops; default 10 s. */
  graceMs?: number;
  /** Interval of heartbeats and of checks for canceled jobs; default 5 s. */
  heartbeatMs?: number;
  /**
   * Time after which a job is reported as running; default 250 ms. Shorter jobs save this message.
   */
  runningAfterMs?: number;
  /** Receives errors, never the contents of jobs; default: warnings on the console. */
  logger?: Logger;
}

export interface RunOptions {
  /** Stops run when it is aborted. */
  signal?: AbortSignal;
  /** Whether SIGTERM and SIGINT stop run; a second one has its usual effect. Default true. */
  signals?: boolean;
}

const mostJobs = 1_000; // maximal jobs in one answer
const emptyPause = 200; // pause between polls of a member that answers at once despite the requested wait
const registerPause = 2_000; // maximal pause between two tries to register
const leastBeatTime = 1_000; // minimal time limit of a heartbeat, so that the next one arrives before the worker counts as gone
const heedTime = 1_000; // time for canceled handlers to return at the end

/**
 * Carries out jobs of the services for which it has handlers. It can be run once.
 *
 * Promises:
 * - At most `concurrency` handlers run at once.
 * - A result is sent until a member has answered, so a job may run more than once but is never
 *   lost.
 * - A job's signal is aborted when the job is no longer needed.
 * - When the worker stops, it starts no new job and returns waiting jobs at once. Running jobs may
 *   finish within `graceMs`.
 */
export class Worker {
  readonly id: string;
  readonly #options: Required<Omit<WorkerOptions, "servers" | "token" | "id" | "logger">>;
  readonly #logger: Logger;
  readonly #transport: Transport;
  readonly #path: string;
  readonly #claims: Claims;
  readonly #reporter: Reporter;
  readonly #params: LargeParams;
  readonly #handlers = new Map<string, Handler>();
  readonly #changed = new Change(); // there is room, or fewer jobs are running
  readonly #stopping = new AbortController();
  readonly #waiting: Claim[] = []; // claimed jobs without a free slot
  #atWork = 0;
  #denied: DeniedError | undefined; // reason why no member accepts the worker

  constructor(options: WorkerOptions = {}) {
    this.id = options.id ?? `${hostname()}-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e6)}`;
    this.#options = {
      labels: options.labels ?? [], concurrency: Math.max(options.concurrency ?? 64, 1), prefetch: Math.max(options.prefetch ?? 0, 0),
      waitMs: Math.min(Math.max(options.waitMs ?? 20_000, 0), 60_000), graceMs: Math.max(options.graceMs ?? 10_000, 0),
      heartbeatMs: Math.max(options.heartbeatMs ?? 5_000, 10), runningAfterMs: options.runningAfterMs ?? 250,
    };
    this.#logger = options.logger ?? standardLogger;
    this.#transport = new Transport(options.servers, options.token, 30_000);
    this.#path = `/workers/${encodeURIComponent(this.id)}`;
    this.#claims = new Claims(this.#transport, this.#path, this.#options.heartbeatMs, this.#options.runningAfterMs, this.#logger);
    const wanted = (max: number): object | undefined => (this.#stopping.signal.aborted ? undefined : this.#wanted(max));
    this.#reporter = new Reporter(this.#transport, this.#path, wanted, (answer) => this.#take(answer), this.#logger);
    this.#params = new LargeParams(this.#transport);
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
    const forget = this.#heed(options);
    const polling = new AbortController();
    const announcer = this.#announce();
    const poller = this.#pollLoop(polling.signal);
    const keeper = this.#claims.keep();
    try {
      await aborted(this.#stopping.signal);
      forget();
      this.#changed.notify();
      await announcer;
      if (this.#denied === undefined) await this.#sayGoodbye(); // otherwise it would not be accepted
      polling.abort();
      await poller; // so that no more jobs are claimed
      await this.#drain();
    } finally {
      this.#claims.close();
      this.#reporter.close();
      await keeper;
    }
    if (this.#denied !== undefined) throw this.#denied;
  }

  /** Stops run if no member accepts the token or its role, because retries would not help. */
  #deny(error: unknown): boolean {
    if (!(error instanceof DeniedError) || ![401, 403].includes(error.status)) return false;
    this.#denied = error;
    this.stop();
    return true;
  }

  /** Stops on a signal, and returns a function that removes the listeners. */
  #heed(options: RunOptions): () => void {
    const stop = (): void => this.stop();
    const names = options.signals === false ? [] : (["SIGTERM", "SIGINT"] as const);
    for (const name of names) process.on(name, stop);
    options.signal?.addEventListener("abort", stop);
    if (options.signal?.aborted) stop();
    return () => {
      for (const name of names) process.off(name, stop);
      options.signal?.removeEventListener("abort", stop);
    };
  }

  /**
   * Returns waiting jobs, lets the running ones finish within the grace period, then returns those,
   * too.
   */
  async #drain(): Promise<void> {
    await this.#claims.giveBack(this.#claims.dropWaiting());
    for (const claim of this.#waiting.splice(0)) this.#claims.remove(claim);
    if (await this.#finished(this.#options.graceMs)) return;
    const left = this.#claims.all();
    this.#logger.warn(`${left.length} jobs are left unfinished, the member will give them to others`);
    for (const claim of left) claim.cancel();
    await this.#finished(heedTime); // handlers that react to the signal return at once
    await this.#claims.giveBack(left.filter((c) => !this.#claims.holds(c)));
  }

  async #finished(ms: number): Promise<boolean> {
    for (const end = performance.now() + ms; this.#atWork > 0; ) {
      const left = end - performance.now();
      if (left <= 0) return false;
      await this.#changed.wait(left);
    }
    return true;
  }

  // Registration.

  /**
   * Registers the worker and sends heartbeats. It registers again with a member that does not know
   * it (any longer).
   */
  async #announce(): Promise<void> {
    let registered = await this.#register();
    let failing = false;
    while (registered && (await sleep(this.#options.heartbeatMs, this.#stopping.signal))) {
      try {
        const body = encode({ load: this.#claims.size });
        const timeoutMs = Math.max(this.#options.heartbeatMs, leastBeatTime);
        const answer = await this.#transport.call<{ registered: boolean }>("POST", `${this.#path}/heartbeat`, { body, timeoutMs, signal: this.#stopping.signal });
        if (!answer.registered) registered = await this.#register();
        failing = false;
      } catch (e) {
        if (this.#deny(e)) return;
        if (!failing && !this.#stopping.signal.aborted) this.#logger.warn("no member hears from this worker, trying on:", e);
        failing = true;
      }
    }
  }

  async #register(): Promise<boolean> {
    const body = encode({ services: this.#services(), labels: this.#options.labels });
    for (let failing = false; !this.#stopping.signal.aborted; failing = true) {
      try {
        await this.#transport.call("PUT", this.#path, { body, signal: this.#stopping.signal });
        this.#logger.info(`registered as ${this.id} for ${this.#services().join(", ")}`);
        return true;
      } catch (e) {
        if (this.#deny(e)) return false;
        if (!failing && !this.#stopping.signal.aborted) this.#logger.warn("the worker is not registered yet, trying on:", e);
        await sleep(Math.min(registerPause, this.#options.heartbeatMs), this.#stopping.signal);
      }
    }
    return false;
  }

  #services(): string[] {
    return [...this.#handlers.keys()].sort();
  }

  async #sayGoodbye(): Promise<void> {
    try {
      await this.#transport.call("DELETE", this.#path, { timeoutMs: partingTime });
    } catch (e) {
      if (e instanceof NotFoundError) return;
      this.#logger.warn("no member was told that this worker ends, it will be noticed by its silence:", e);
    }
  }

  // Receiving jobs.

  async #pollLoop(signal: AbortSignal): Promise<void> {
    let backoff = new Backoff();
    for (let room = await this.#room(); room > 0; room = await this.#room()) {
      const begun = performance.now();
      try {
        const count = await this.#poll(Math.min(room, mostJobs), signal);
        backoff = new Backoff();
        if (count === 0 && performance.now() - begun < Math.min(emptyPause, this.#options.waitMs)) await sleep(emptyPause, this.#stopping.signal);
      } catch (e) {
        if (signal.aborted || this.#deny(e)) return;
        if (backoff.fresh) this.#logger.warn("no member gives jobs, trying on:", e);
        await sleep(backoff.pause(e), this.#stopping.signal);
      }
    }
  }

  /** Waits until there is room for jobs and returns how much; 0 if the worker stops. */
  async #room(): Promise<number> {
    for (;;) {
      const room = this.#options.concurrency + this.#options.prefetch - this.#atWork - this.#waiting.length;
      if (this.#stopping.signal.aborted) return 0;
      if (room > 0) return room;
      await this.#changed.wait();
    }
  }

  /** Polls for jobs, starts those with a free slot, and returns how many arrived. */
  async #poll(max: number, signal: AbortSignal): Promise<number> {
    const { waitMs } = this.#options;
    const body = encode({ ...this.#wanted(max), wait_ms: waitMs });
    const answer = await this.#transport.call<{ jobs: ToldJob[] }>("POST", `${this.#path}/poll`, { body, waitMs, signal });
    await this.#take(answer);
    return answer.jobs.length;
  }

  #wanted(max: number): { services: string[]; labels: string[]; max: number } {
    return { services: this.#services(), labels: this.#options.labels, max };
  }

  /** Starts jobs when there is a free slot. If the worker is stopping, it returns them. */
  async #take(answer: { jobs?: ToldJob[] }): Promise<void> {
    let texts: string[] | undefined; // of the jobs, parsed on demand
    const claims = (answer.jobs ?? []).map((told, i) => this.#claims.add(told, () => (texts ??= itemsOf(textOf(answer, "jobs") as string))[i] as string));
    if (this.#stopping.signal.aborted) {
      for (const claim of claims) this.#claims.remove(claim);
      await this.#claims.giveBack(claims);
      return;
    }
    this.#waiting.push(...claims);
    this.#beginWaiting();
  }

  /** Starts the oldest jobs for which there is a slot. */
  #beginWaiting(): void {
    while (!this.#stopping.signal.aborted && this.#atWork < this.#options.concurrency) {
      const claim = this.#waiting.shift();
      if (claim === undefined) return;
      this.#atWork++;
      void this.#carryOut(claim, this.#handlers.get(claim.job.service) as Handler);
    }
  }

  // Ending jobs.

  async #carryOut(claim: Claim, handler: Handler): Promise<void> {
    if (!(await this.#params.fetch(claim)) || claim.canceled) {
      this.#leave(claim);
      return;
    }
    claim.begun = true;
    let report;
    try {
      const output = await handler(claim.job);
      await claim.job.closeStreams();
      report = outputReport(claim, output);
    } catch (e) {
      await claim.job.closeStreams();
      report = failureReport(claim, e);
    }
    // A canceled job, or one given up at the end of the grace period, is not reported as failed.
    if (claim.canceled) this.#leave(claim);
    else this.#reporter.deliver(report, () => this.#leave(claim));
  }

  /** Removes a job and frees its slot. */
  #leave(claim: Claim): void {
    this.#claims.remove(claim);
    this.#atWork--;
    this.#changed.notify();
    this.#beginWaiting();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
