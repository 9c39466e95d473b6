/** Values that a job writes to streams of its task: sent a moment later, several at once. */

import { randomUUID } from "node:crypto";

import { isHopeless, ofProblem, type Problem } from "./errors.js";
import { Backoff, Change, sleep } from "./pauses.js";
import type { Transport } from "./transport.js";
import { encode, RawJson, textAs } from "./write.js";

const mostWaiting = 1 << 20; // bytes of unsent values above which write waits
const batchBytes = 256 << 10; // approximate maximal bytes of one request
const mostValue = 256 << 10; // maximal bytes of a value
const perValue = 32; // cost of a value in bytes besides its JSON
const gatherTime = 50; // time that a value waits for others
const nameOf = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

interface Value {
  stream: string;
  text: string; // JSON; empty if it only ends the stream
  bytes: number;
  number: number;
  at: string;
}

/** A group of values of one stream, in the format of /v1. */
interface Write {
  stream: string;
  writer: string;
  number: number;
  at: string;
  step: string;
  values: RawJson[];
  ends: boolean;
}

interface Answer {
  items: { problem?: Problem & { status: number } }[];
}

/** Sends writes, and returns why they were refused. */
type Send = (writes: Write[]) => Promise<(Error | undefined)[]>;

/** @internal The streams of one delivery of a job. */
export class Streams {
  readonly #writer = randomUUID();
  readonly #numbers = new Map<string, number>();
  readonly #refused = new Map<string, Error>();
  #waiting: Value[] = [];
  #bytes = 0; // cost of the values that are not stored
  #added = 0;
  #stored = 0;
  #sending = false;
  #closed = false;
  readonly #hurry = new Change();
  #wake: (() => void)[] = [];

  /** Without send, values are dropped. An aborted signal ends the tries to send them. */
  constructor(
    readonly step: string,
    readonly signal: AbortSignal,
    readonly send: Send | undefined,
  ) {}

  async write(stream: string, text: string): Promise<void> {
    if (this.send === undefined) return;
    this.#check(stream);
    const number = (this.#numbers.get(stream) ?? 0) + (text === "" ? 0 : 1);
    this.#numbers.set(stream, number);
    const bytes = Buffer.byteLength(text) + perValue;
    this.#waiting.push({ stream, text, bytes, number, at: new Date().toISOString() });
    this.#bytes += bytes;
    this.#added++;
    if (!this.#sending) void this.#sendAll();
    if (this.#bytes >= batchBytes) this.#hurry.notify();
    while (this.#bytes >= mostWaiting && !this.#refused.has(stream)) await this.#change();
  }

  #check(stream: string): void {
    const refused = this.#refused.get(stream);
    if (refused !== undefined) throw refused;
    if (this.#closed) throw new Error(`the job that writes to the stream ${stream} has ended`);
  }

  #change(): Promise<void> {
    this.#hurry.notify();
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  /** Waits until all values are stored. */
  async flush(stream: string): Promise<void> {
    await this.#flushed();
    const refused = this.#refused.get(stream);
    if (refused !== undefined) throw refused;
  }

  async #flushed(): Promise<void> {
    for (const goal = this.#added; this.#stored < goal; ) await this.#change();
  }

  /** Stores the last values, and returns why streams have lost values. */
  async close(): Promise<Error[]> {
    this.#closed = true;
    await this.#flushed();
    return [...this.#refused.values()];
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    for (;;) {
      await this.#hurry.wait(gatherTime);
      const batch = this.#take();
      if (batch.length === 0) break;
      await this.#deliver(batch.filter((value) => !this.#refused.has(value.stream)));
      for (const value of batch) this.#bytes -= value.bytes;
      this.#stored += batch.length;
      for (const wake of this.#wake.splice(0)) wake();
    }
    this.#sending = false;
  }

  #take(): Value[] {
    let size = 0;
    let n = 0;
    for (; n < this.#waiting.length; n++) {
      size += (this.#waiting[n] as Value).bytes;
      if (n > 0 && size > batchBytes) break;
    }
    return this.#waiting.splice(0, n);
  }

  /** Sends values until they are stored or refused, or the job must stop. */
  async #deliver(batch: Value[]): Promise<void> {
    if (batch.length === 0) return;
    const writes = this.#grouped(batch);
    const backoff = new Backoff();
    for (;;) {
      try {
        const errors = await (this.send as Send)(writes);
        writes.forEach(({ stream }, i) => this.#refuse(stream, errors[i]));
        return;
      } catch (e) {
        if (this.signal.aborted || isHopeless(e)) {
          for (const { stream } of writes) this.#refuse(stream, e as Error);
          return;
        }
        await sleep(backoff.pause(e), this.signal);
      }
    }
  }

  #refuse(stream: string, error: Error | undefined): void {
    if (error !== undefined && !this.#refused.has(stream)) this.#refused.set(stream, error);
  }

  /** Groups values by stream, in order. The end of a stream ends its group. */
  #grouped(batch: Value[]): Write[] {
    const writes: Write[] = [];
    const newest = new Map<string, Write>();
    for (const { stream, text, number, at } of batch) {
      let write = newest.get(stream);
      if (write === undefined || write.ends) {
        write = { stream, writer: this.#writer, number, at, step: this.step, values: [], ends: false };
        newest.set(stream, write);
        writes.push(write);
      }
      write.number = number;
      if (text === "") write.ends = true;
      else write.values.push(new RawJson(text));
    }
    return writes;
  }
}

/**
 * A stream of the task of a job: values that others can read while the job runs, such as the tokens
 * of a model.
 *
 * A job that runs again writes its values again, behind the earlier ones. Each value has the step
 * and the attempt that wrote it.
 */
export class StreamWriter {
  readonly #streams: Streams;
  readonly #name: string;

  /** @internal */
  constructor(streams: Streams, name: string) {
    if (!nameOf.test(name)) {
      const allowed = "write up to 100 letters, digits, dots, hyphens and underscores";
      throw new TypeError(`a stream cannot have the name ${JSON.stringify(name)}: ${allowed}`);
    }
    this.#streams = streams;
    this.#name = name;
  }

  /**
   * Appends a value, as JSON. It is stored a moment later, and before the job ends. It throws for a
   * value that is no JSON. The promise waits while more than 1 MiB is not stored. It is rejected
   * if an earlier value of the stream was refused, for example because the streams of the task are
   * full. A rejection that nothing awaits is ignored.
   */
  write(value: unknown): Promise<void> {
    const text = textAs(value, "value");
    const bytes = Buffer.byteLength(text);
    if (bytes > mostValue) throw new TypeError(`a value of the stream ${this.#name} has ${bytes} bytes, more than ${mostValue}`);
    return this.#send(text);
  }

  #send(text: string): Promise<void> {
    const written = this.#streams.write(this.#name, text);
    written.catch(() => {});
    return written;
  }

  /** Waits until all values are stored. */
  flush(): Promise<void> {
    return this.#streams.flush(this.#name);
  }

  /**
   * Ends the stream, so that its readers need not wait for the end of the task. A value that is
   * written later opens it again.
   */
  close(): Promise<void> {
    return this.#send("");
  }
}

/** @internal Returns the function that sends the values of a job. An attached one has no token. */
export function sender(transport: Transport, job: string, token: string): Send {
  return async (writes) => {
    const body = encode({ token, writes });
    const answer = await transport.call<Answer>("POST", `/jobs/${encodeURIComponent(job)}/streams`, { body });
    return answer.items.map(({ problem }) => problem && ofProblem(problem.status, problem));
  };
}
