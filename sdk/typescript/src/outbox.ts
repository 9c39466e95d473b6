/** Pending messages on the stream of an attached worker; they are combined into one message. */

import { create } from "@bufbuild/protobuf";

import { FromWorkerSchema, LineSchema, type FromWorker, type Line, type Outcome } from "./attach_pb.js";
import { Change } from "./pauses.js";
import type { LogLine } from "./printed.js";

const mostResults = 200; // maximal results in one message
const resultBytes = 256 << 10;
const statusPause = 250; // minimal interval between two status texts

/** Result of a job. */
export interface Result {
  outcome: Outcome;
  output?: Uint8Array;
  error?: string;
  details?: Uint8Array; // of the error, JSON
  metrics?: Uint8Array; // metrics of the job, JSON
  fatal?: boolean;
}

export class Outbox {
  readonly #results: { number: bigint; result: Result }[] = [];
  readonly #texts = new Map<bigint, string>(); // the last of those in quick succession
  readonly #logs: { number: bigint; lines: Line[] }[] = [];
  readonly #changed = new Change();
  #statusAt = -Infinity;
  #leaving = false;
  #closed: () => boolean = () => false;

  result(number: bigint, result: Result): void {
    this.#results.push({ number, result });
    this.#changed.notify();
  }

  progress(number: bigint, text: string): void {
    this.#texts.set(number, text);
    this.#changed.notify();
  }

  /** Adds logged lines of a job; they precede its result. */
  log(number: bigint, lines: LogLine[]): void {
    this.#logs.push({ number, lines: lines.map(({ text, at }) => create(LineSchema, { text, atMs: BigInt(Date.parse(at)) })) });
    this.#changed.notify();
  }

  /** Announces that the worker ends. */
  leave(): void {
    this.#leaving = true;
    this.#changed.notify();
  }

  /** Ends the stream once over returns true. */
  closeWhen(over: () => boolean): void {
    this.#closed = over;
  }

  close(): void {
    this.closeWhen(() => true);
    this.look();
  }

  /** Makes it check whether the stream is over. */
  look(): void {
    this.#changed.notify();
  }

  /**
   * Returns the next message, or an empty one after the heartbeat interval; undefined if the stream
   * is over.
   */
  async next(heartbeatMs: number): Promise<FromWorker | undefined> {
    for (const end = performance.now() + heartbeatMs; ; ) {
      const message = this.#take();
      if (message !== undefined) return message;
      if (this.#closed()) return undefined;
      const left = end - performance.now();
      if (left <= 0) return create(FromWorkerSchema);
      await this.#changed.wait(this.#texts.size > 0 ? Math.min(left, statusPause) : left);
    }
  }

  #take(): FromWorker | undefined {
    const progress: { number: bigint; statusText?: string; lines?: Line[] }[] = this.#logs.splice(0);
    if (performance.now() - this.#statusAt >= statusPause && this.#texts.size > 0) {
      for (const [number, statusText] of this.#texts) progress.push({ number, statusText });
      this.#texts.clear();
      this.#statusAt = performance.now();
    }
    let count = 0;
    for (let size = 0; count < this.#results.length && count < mostResults && size < resultBytes; count++) {
      const { output, details, metrics } = this.#results[count]?.result ?? {};
      size += (output?.length ?? 0) + (details?.length ?? 0) + (metrics?.length ?? 0);
    }
    const results = this.#results.splice(0, count).map(({ number, result }) => ({ number, ...result }));
    const leaving = this.#leaving;
    this.#leaving = false;
    if (progress.length === 0 && results.length === 0 && !leaving) return undefined;
    return create(FromWorkerSchema, { results, progress, leaving });
  }
}
