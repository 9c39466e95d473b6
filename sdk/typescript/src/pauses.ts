/** Waiting: for a time, for a change, between tries. */

import { ProblemError } from "./errors.js";

const firstPause = 100;
const longestPause = 5_000;
const longestAsked = 60_000;

/** Maximal delay of a timer, 24 days; a longer one fires at once. */
export const longestTimer = 2 ** 31 - 1;

/** Pauses between tries: increasing, with jitter, and not shorter than requested by the member. */
export class Backoff {
  #next = 0;

  get fresh(): boolean {
    return this.#next === 0;
  }

  /** Limits the next pause, unless the member requests a longer one. */
  atMost(ms: number): void {
    this.#next = Math.min(this.#next, ms / 2);
  }

  pause(error?: unknown): number {
    this.#next = Math.min(Math.max(2 * this.#next, firstPause), longestPause);
    const asked = error instanceof ProblemError ? error.retryAfterMs : 0;
    return Math.max(this.#next * (0.5 + Math.random() / 2), Math.min(asked, longestAsked));
  }
}

/** Sleeps until the time is over or the signal is aborted. Returns false if it was aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const end = (slept: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
      resolve(slept);
    };
    const aborted = (): void => end(false);
    const timer = setTimeout(end, Math.min(ms, longestTimer), true);
    signal?.addEventListener("abort", aborted);
  });
}

/** Wakes the waiter for a change. A change without a waiter is noticed by the next one. */
export class Change {
  #changed = false;
  #wake: (() => void)[] = [];

  notify(): void {
    this.#changed = true;
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Waits for a change, or a time; Infinity means no limit. There may be one waiter at a time. */
  async wait(ms = Infinity): Promise<void> {
    if (!this.#changed && ms > 0) {
      await new Promise<void>((resolve) => {
        const timer = ms === Infinity ? undefined : setTimeout(resolve, Math.min(ms, longestTimer));
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    this.#changed = false;
  }
}
