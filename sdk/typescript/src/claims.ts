/**
 * The jobs held by a worker: renewing their claims, sending status texts, receiving cancellations.
 */

import { Job, type ToldJob } from "./job.js";
import type { Logger } from "./log.js";
import { Backoff, Change } from "./pauses.js";
import type { LogLine } from "./printed.js";
import { sender } from "./streams.js";
import type { Transport } from "./transport.js";
import { encode } from "./write.js";

const mostClaims = 500; // maximal number of claims in one request
const shortestBeat = 20;
const statusPause = 250; // minimal interval between two status texts of a job
const logPause = 500; // interval for sending the logs of jobs
const mostLogged = 512 << 10; // approximate maximal bytes of logs in one request, because members reject requests that are too large
const defaultLease = 60_000;
const longestBeat = 30_000; // time limit for a heartbeat, unless a claim would expire earlier

/** Time limit for the final messages. */
export const partingTime = 2_000;

interface Held {
  job: string;
  token: string;
  status_text?: string;
  lines?: LogLine[];
  lines_from?: number;
}

/** A job held by this worker until it is reported, returned or canceled. */
export class Claim {
  readonly job: Job;
  readonly token: string;
  readonly paramsKey: string | undefined;
  readonly patienceMs: number; // time limit for a heartbeat, so that two more are in time
  readonly everyMs: number; // interval of heartbeats
  beatAt: number;
  statusText: string | undefined; // to be sent
  statusAt = 0;
  toldAt = -Infinity;
  logAt = performance.now() + logPause; // time to send the job's log next
  begun = false; // its handler was called
  canceled = false;

  constructor(told: ToldJob, text: () => string, heartbeatMs: number, reports: (claim: Claim, text: string) => void, transport: Transport) {
    this.job = new Job(told, text, (text) => reports(this, text), sender(transport, told.id, told.token));
    this.token = told.token;
    this.paramsKey = told.params_key;
    this.patienceMs = (told.lease_ms || defaultLease) / 3;
    this.everyMs = Math.max(Math.min(this.patienceMs, heartbeatMs), shortestBeat);
    this.beatAt = performance.now() + this.everyMs;
  }

  /** Notifies the handler once that the job is no longer needed. */
  cancel(): void {
    if (this.canceled) return;
    this.canceled = true;
    this.job.cancel();
  }

  held(text?: string): Held {
    return { job: this.job.id, token: this.token, ...(text === undefined ? {} : { status_text: text }) };
  }

  due(quietUntil: number): number {
    return Math.min(this.beatAt, Math.max(Math.min(this.logAt, this.statusText === undefined ? Infinity : this.statusAt), quietUntil));
  }
}

/** All claims of a worker. */
export class Claims {
  readonly #held = new Map<string, Claim>();
  readonly #changed = new Change();
  readonly #closing = new AbortController();
  #outage = false; // the last heartbeat had no answer, and this was logged
  #backoff = new Backoff(); // for logs and status texts, because a proxy may reject only those
  #quietUntil = 0; // until then only heartbeats are sent

  constructor(
    readonly transport: Transport,
    readonly path: string,
    readonly heartbeatMs: number,
    readonly runningAfterMs: number,
    readonly logger: Logger,
  ) {}

  get size(): number {
    return this.#held.size;
  }

  /** Adds a claimed job. */
  add(told: ToldJob, text: () => string): Claim {
    const claim = new Claim(told, text, this.heartbeatMs, (c, text) => this.#setStatus(c, text), this.transport);
    [claim.statusText, claim.statusAt] = ["running", performance.now() + this.runningAfterMs];
    this.#held.get(claim.job.id)?.cancel(); // its claim is lost, otherwise the job would not have been delivered again
    this.#held.set(claim.job.id, claim);
    this.#changed.notify();
    return claim;
  }

  remove(claim: Claim): void {
    if (this.holds(claim)) this.#held.delete(claim.job.id);
  }

  /** Returns whether the claim is current; the job may have been delivered again. */
  holds(claim: Claim): boolean {
    return this.#held.get(claim.job.id) === claim;
  }

  all(): Claim[] {
    return [...this.#held.values()];
  }

  /** Removes and returns the jobs that have not started. */
  dropWaiting(): Claim[] {
    const waiting = this.all().filter((c) => !c.begun && !c.canceled);
    for (const claim of waiting) claim.cancel();
    return waiting;
  }

  #setStatus(claim: Claim, text: string): void {
    [claim.statusText, claim.statusAt] = [text, Math.max(performance.now(), claim.toldAt + statusPause)];
    this.#changed.notify();
  }

  close(): void {
    this.#closing.abort();
    this.#changed.notify();
  }

  /** Works until it is closed. */
  async keep(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const next = Math.min(...this.all().map((c) => c.due(this.#quietUntil)));
      const pause = next - performance.now();
      if (pause > 0) {
        await this.#changed.wait(pause);
        continue;
      }
      const due = this.#takeDue();
      for (let i = 0; i < due.length; i += mostClaims) await this.#beat(due.slice(i, i + mostClaims));
    }
  }

  /** Returns the claims to renew now, including those that are nearly due. */
  #takeDue(): [Claim, Held][] {
    const now = performance.now();
    const talks = now >= this.#quietUntil;
    let room = mostLogged;
    const due: [Claim, Held][] = [];
    for (const claim of this.#held.values()) {
      const reports = talks && claim.statusText !== undefined && claim.statusAt <= now;
      const looked = talks && claim.logAt <= now && room > 0; // otherwise the next request sends it
      const logged = looked && claim.begun && claim.job.printed.waits;
      if (looked) claim.logAt = now + logPause;
      if (!reports && !logged && claim.beatAt > now + claim.everyMs / 4) continue;
      const held = { ...claim.held(reports ? claim.statusText : undefined), ...(logged ? claim.job.printed.part() : {}) };
      for (const line of held.lines ?? []) room -= Buffer.byteLength(line.text) + 64;
      due.push([claim, held]);
      claim.beatAt = now + claim.everyMs;
      if (reports) [claim.statusText, claim.toldAt] = [undefined, now];
    }
    return due;
  }

  /**
   * Renews claims. The next heartbeat makes up for a lost one, because a claim lasts for at least
   * two. If logs and status texts are rejected, they are retried with backoff, and the claims are
   * renewed without them at once.
   */
  async #beat(due: [Claim, Held][]): Promise<void> {
    const telling = due.some(([, { status_text, lines }]) => status_text !== undefined || lines !== undefined);
    const body = encode({ load: this.size, claims: due.map(([, held]) => held) });
    const timeoutMs = Math.min(longestBeat, ...due.map(([claim]) => claim.patienceMs));
    try {
      const answer = await this.transport.call<{ canceled: string[] }>("POST", `${this.path}/heartbeat`, { body, timeoutMs, signal: this.#closing.signal });
      const canceled = new Set(answer.canceled);
      this.#outage = false;
      if (telling) [this.#backoff, this.#quietUntil] = [new Backoff(), 0];
      for (const [claim, held] of due) {
        if (held.lines !== undefined) claim.job.printed.arrived();
        if (canceled.has(held.job)) claim.cancel();
      }
    } catch (e) {
      const closing = this.#closing.signal.aborted;
      if (!this.#outage && (this.#backoff.fresh || !telling) && !closing) {
        this.logger.warn(`the claims of ${due.length} jobs could not be prolonged, trying on:`, e);
        this.#outage = true;
      }
      if (!telling) return;
      this.#quietUntil = performance.now() + this.#backoff.pause(e);
      const plain = due.filter(([claim]) => this.holds(claim)).map(([claim]): [Claim, Held] => [claim, claim.held()]);
      if (plain.length > 0 && !closing) await this.#beat(plain);
    }
  }

  /**
   * Returns jobs so that others get them at once. If this fails, others get them when the claims
   * expire.
   */
  async giveBack(claims: Claim[]): Promise<void> {
    for (let i = 0; i < claims.length; i += mostClaims) {
      const group = claims.slice(i, i + mostClaims);
      const body = encode({ claims: group.map((c) => c.held()) });
      try {
        await this.transport.call("POST", `${this.path}/release`, { body, timeoutMs: partingTime });
      } catch (e) {
        this.logger.warn(`${group.length} jobs could not be given back, others get them when the claims run out:`, e);
      }
    }
  }
}
