/** A program that carries out jobs: it asks a member for them, so it works behind any firewall. */

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

/** Carries out a job. What it returns becomes the job's output as JSON; what it throws fails the attempt. */
export type Handler<I = any> = (job: Job<I>) => unknown;

export interface WorkerOptions {
  servers?: Servers;
  /** Proves the worker to the members; by default TROUPE_TOKEN. */
  token?: string;
  /** Tells workers apart. One is made up from host, process and time. */
  id?: string;
  /** What it has, such as "gpu": jobs that ask for labels go to workers that have them all. */
  labels?: string[];
  /** How many handlers run at once; 64. */
  concurrency?: number;
  /** How many jobs it may hold beyond those, so that one is at hand when a handler has finished; 0. */
  prefetch?: number;
  /** How long a request for jobs may stay with the member; 20 s, at most 60. */
  waitMs?: number;
  /** How long jobs may go on when the worker is to stop; 10 s. */
  graceMs?: number;
  /** Between signs of life, and between questions whether its jobs are still wanted; 5 s. */
  heartbeatMs?: number;
  /** After how long a job is said to be running; 250 ms. Short jobs are spared the message. */
  noteAfterMs?: number;
  /** Hears what goes wrong, never what jobs are about; by default warnings go to the console. */
  logger?: Logger;
}

export interface RunOptions {
  /** Has run end when it is aborted. */
  signal?: AbortSignal;
  /** Whether SIGTERM and SIGINT have run end; a second one has its usual effect. By default they do. */
  signals?: boolean;
}

const mostJobs = 1_000; // that a member gives at once
const emptyPause = 200; // between polls of a member that answers at once although it was asked to wait
const registerPause = 2_000; // at most between two tries to register
const leastBeatTime = 1_000; // that a sign of life may take at least: the next one is to come before the worker counts as gone
const heedTime = 1_000; // that handlers have to notice that they are canceled at the end

/**
 * Carries out jobs of the services it has handlers for, and is run once.
 *
 * Promises: no more than `concurrency` handlers run at once; a result is delivered again and again until a member has answered, so a job may be carried
 * out more than once but is never lost; a job's signal is aborted when nobody waits for it any longer; when the worker is to stop no new job is begun,
 * what it has not begun is given back at once, and those at work may finish within `graceMs`.
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
  readonly #changed = new Change(); // there is room, or less at work
  readonly #stopping = new AbortController();
  readonly #waiting: Claim[] = []; // claimed, but there is no place for them yet
  #atWork = 0;
  #denied: DeniedError | undefined; // why no member lets it in

  constructor(options: WorkerOptions = {}) {
    this.id = options.id ?? `${hostname()}-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e6)}`;
    this.#options = {
      labels: options.labels ?? [], concurrency: Math.max(options.concurrency ?? 64, 1), prefetch: Math.max(options.prefetch ?? 0, 0),
      waitMs: Math.min(Math.max(options.waitMs ?? 20_000, 0), 60_000), graceMs: Math.max(options.graceMs ?? 10_000, 0),
      heartbeatMs: Math.max(options.heartbeatMs ?? 5_000, 10), noteAfterMs: options.noteAfterMs ?? 250,
    };
    this.#logger = options.logger ?? standardLogger;
    this.#transport = new Transport(options.servers, options.token, 30_000);
    this.#path = `/workers/${encodeURIComponent(this.id)}`;
    this.#claims = new Claims(this.#transport, this.#path, this.#options.heartbeatMs, this.#options.noteAfterMs, this.#logger);
    const wanted = (max: number): object | undefined => (this.#stopping.signal.aborted ? undefined : this.#wanted(max));
    this.#reporter = new Reporter(this.#transport, this.#path, wanted, (answer) => this.#take(answer), this.#logger);
    this.#params = new LargeParams(this.#transport);
  }

  /** Registers the handler of a service, before run. It throws when the service has one already, or when the handler is no function. */
  handle<I = any>(service: string, handler: Handler<I>): this {
    if (service === "" || service.includes("\0")) throw new TypeError(`${JSON.stringify(service)} is no name of a service`);
    if (typeof handler !== "function") throw new TypeError(`the handler of the service ${JSON.stringify(service)} is no function`);
    if (this.#handlers.has(service)) throw new TypeError(`the service ${JSON.stringify(service)} has a handler already: register one for each service`);
    this.#handlers.set(service, handler);
    return this;
  }

  /** Has run end. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Works until stop is called, the signal is aborted, or SIGTERM or SIGINT comes, and then until the jobs at work have ended. A token that is missing,
   * wrong or of another role is a DeniedError.
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
      if (this.#denied === undefined) await this.#sayGoodbye(); // else nobody would hear it
      polling.abort();
      await poller; // so that everything is claimed that ever will be
      await this.#drain();
    } finally {
      this.#claims.close();
      this.#reporter.close();
      await keeper;
    }
    if (this.#denied !== undefined) throw this.#denied;
  }

  /** Has run end when no member takes the token, or it has another role: trying on would be of no use. */
  #deny(error: unknown): boolean {
    if (!(error instanceof DeniedError) || ![401, 403].includes(error.status)) return false;
    this.#denied = error;
    this.stop();
    return true;
  }

  /** Stops for a signal, and gives a function that forgets about that. */
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

  /** Gives back what has not begun, lets the jobs at work finish within the grace, then gives those back, too. */
  async #drain(): Promise<void> {
    await this.#claims.giveBack(this.#claims.dropWaiting());
    for (const claim of this.#waiting.splice(0)) this.#claims.remove(claim);
    if (await this.#finished(this.#options.graceMs)) return;
    const left = this.#claims.all();
    this.#logger.warn(`${left.length} jobs are left unfinished, the member will give them to others`);
    for (const claim of left) claim.cancel();
    await this.#finished(heedTime); // handlers that heed it come back at once
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

  // What it says of itself.

  /** Registers the worker and gives signs of life. A member that does not know it (any longer) is told again. */
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

  // How it gets jobs.

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

  /** Waits until there is room for jobs, and tells how much; 0 = the worker stops. */
  async #room(): Promise<number> {
    for (;;) {
      const room = this.#options.concurrency + this.#options.prefetch - this.#atWork - this.#waiting.length;
      if (this.#stopping.signal.aborted) return 0;
      if (room > 0) return room;
      await this.#changed.wait();
    }
  }

  /** Asks for jobs, begins those there is a place for, and tells how many came. */
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

  /** Begins jobs when there is a place for them. When the worker is to stop, others get them. */
  async #take(answer: { jobs?: ToldJob[] }): Promise<void> {
    let texts: string[] | undefined; // of the jobs, if somebody asks
    const claims = (answer.jobs ?? []).map((told, i) => this.#claims.add(told, () => (texts ??= itemsOf(textOf(answer, "jobs") as string))[i] as string));
    if (this.#stopping.signal.aborted) {
      for (const claim of claims) this.#claims.remove(claim);
      await this.#claims.giveBack(claims);
      return;
    }
    this.#waiting.push(...claims);
    this.#beginWaiting();
  }

  /** Begins the oldest jobs there is a place for. */
  #beginWaiting(): void {
    while (!this.#stopping.signal.aborted && this.#atWork < this.#options.concurrency) {
      const claim = this.#waiting.shift();
      if (claim === undefined) return;
      this.#atWork++;
      void this.#carryOut(claim, this.#handlers.get(claim.job.service) as Handler);
    }
  }

  // How jobs end.

  async #carryOut(claim: Claim, handler: Handler): Promise<void> {
    if (!(await this.#params.fetch(claim)) || claim.canceled) {
      this.#leave(claim);
      return;
    }
    claim.begun = true;
    let report;
    try {
      report = outputReport(claim, await handler(claim.job));
    } catch (e) {
      report = failureReport(claim, e);
    }
    // What was canceled, or is given up at the end of the grace, is not ours to fail.
    if (claim.canceled) this.#leave(claim);
    else this.#reporter.deliver(report, () => this.#leave(claim));
  }

  /** Lets go of a job; its place is free. */
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
