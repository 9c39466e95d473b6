/** The jobs in a worker's hands: prolonging their claims, telling notes, hearing what is canceled. */

import { Job, type ToldJob } from "./job.js";
import type { Logger } from "./log.js";
import { Backoff, Change } from "./pauses.js";
import type { LogLine } from "./printed.js";
import type { Transport } from "./transport.js";
import { encode } from "./write.js";

const mostClaims = 500; // that one request is about
const shortestBeat = 20;
const notePause = 250; // between two notes of a job
const logPause = 500; // between two looks at what jobs have logged
const mostLogged = 512 << 10; // bytes of logs in one request, about: a member takes no request that is too large
const defaultLease = 60_000;
const longestBeat = 30_000; // that a heartbeat may take, unless a claim would run out meanwhile

/** How long what is said at the end may take. */
export const partingTime = 2_000;

interface Held {
  job: string;
  token: string;
  note?: string;
  lines?: LogLine[];
  lines_from?: number;
}

/** A job that this worker holds until it is reported, given back or canceled. */
export class Claim {
  readonly job: Job;
  readonly token: string;
  readonly paramsKey: string | undefined;
  readonly patienceMs: number; // that a heartbeat may take: two more are to be in time
  readonly everyMs: number; // between heartbeats
  beatAt: number;
  note: string | undefined; // what is to be told
  noteAt = 0;
  toldAt = -Infinity;
  logAt = performance.now() + logPause; // when to look for what the job has logged
  begun = false; // its handler is called
  canceled = false;

  constructor(told: ToldJob, text: () => string, heartbeatMs: number, noted: (claim: Claim, text: string) => void) {
    this.job = new Job(told, text, (note) => noted(this, note));
    this.token = told.token;
    this.paramsKey = told.params_key;
    this.patienceMs = (told.lease_ms || defaultLease) / 3;
    this.everyMs = Math.max(Math.min(this.patienceMs, heartbeatMs), shortestBeat);
    this.beatAt = performance.now() + this.everyMs;
  }

  /** Says once that nobody waits for the job any longer. */
  cancel(): void {
    if (this.canceled) return;
    this.canceled = true;
    this.job.cancel();
  }

  held(note?: string): Held {
    return { job: this.job.id, token: this.token, ...(note === undefined ? {} : { note }) };
  }

  due(quietUntil: number): number {
    return Math.min(this.beatAt, Math.max(Math.min(this.logAt, this.note === undefined ? Infinity : this.noteAt), quietUntil));
  }
}

/** All claims of a worker. */
export class Claims {
  readonly #held = new Map<string, Claim>();
  readonly #changed = new Change();
  readonly #closing = new AbortController();
  #outage = false; // the last heartbeat had no answer, which was said
  #backoff = new Backoff(); // of what jobs tell: something on the way may refuse that alone
  #quietUntil = 0; // only heartbeats are sent before that

  constructor(
    readonly transport: Transport,
    readonly path: string,
    readonly heartbeatMs: number,
    readonly noteAfterMs: number,
    readonly logger: Logger,
  ) {}

  get size(): number {
    return this.#held.size;
  }

  /** Takes a job that was handed out. */
  add(told: ToldJob, text: () => string): Claim {
    const claim = new Claim(told, text, this.heartbeatMs, (c, note) => this.#note(c, note));
    [claim.note, claim.noteAt] = ["running", performance.now() + this.noteAfterMs];
    this.#held.get(claim.job.id)?.cancel(); // its claim is lost, else the job would not have come again
    this.#held.set(claim.job.id, claim);
    this.#changed.notify();
    return claim;
  }

  remove(claim: Claim): void {
    if (this.holds(claim)) this.#held.delete(claim.job.id);
  }

  /** It may have been handed out again meanwhile. */
  holds(claim: Claim): boolean {
    return this.#held.get(claim.job.id) === claim;
  }

  all(): Claim[] {
    return [...this.#held.values()];
  }

  /** Gives up the jobs that have not begun. */
  dropWaiting(): Claim[] {
    const waiting = this.all().filter((c) => !c.begun && !c.canceled);
    for (const claim of waiting) claim.cancel();
    return waiting;
  }

  #note(claim: Claim, text: string): void {
    [claim.note, claim.noteAt] = [text, Math.max(performance.now(), claim.toldAt + notePause)];
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

  /** What is to be said now. Who is nearly due is taken along. */
  #takeDue(): [Claim, Held][] {
    const now = performance.now();
    const talks = now >= this.#quietUntil;
    let room = mostLogged;
    const due: [Claim, Held][] = [];
    for (const claim of this.#held.values()) {
      const noted = talks && claim.note !== undefined && claim.noteAt <= now;
      const looked = talks && claim.logAt <= now && room > 0; // else the next request tells it
      const logged = looked && claim.begun && claim.job.printed.waits;
      if (looked) claim.logAt = now + logPause;
      if (!noted && !logged && claim.beatAt > now + claim.everyMs / 4) continue;
      const held = { ...claim.held(noted ? claim.note : undefined), ...(logged ? claim.job.printed.part() : {}) };
      for (const line of held.lines ?? []) room -= Buffer.byteLength(line.text) + 64;
      due.push([claim, held]);
      claim.beatAt = now + claim.everyMs;
      if (noted) [claim.note, claim.toldAt] = [undefined, now];
    }
    return due;
  }

  /**
   * Prolongs claims. A lost beat is made up for by the next one: a claim outlives two at least. What jobs tell waits longer and longer when it is not
   * taken, and the claims are prolonged without it at once.
   */
  async #beat(due: [Claim, Held][]): Promise<void> {
    const telling = due.some(([, { note, lines }]) => note !== undefined || lines !== undefined);
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

  /** Lets others have jobs at once. If that fails they get them when the claims have run out. */
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
