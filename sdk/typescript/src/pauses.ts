/** Waiting: for a time, for a word, between tries. */

import { ProblemError } from "./errors.js";

const firstPause = 100;
const longestPause = 5_000;
const longestAsked = 60_000;

/** What a timer can wait for at most, 24 days: one for longer is over at once. */
export const longestTimer = 2 ** 31 - 1;

/** Pauses between tries: longer each time, never the same for all, and not shorter than the member asks for. */
export class Backoff {
  #next = 0;

  get fresh(): boolean {
    return this.#next === 0;
  }

  /** Has the next pause be no longer than that, but for what a member asks for. */
  atMost(ms: number): void {
    this.#next = Math.min(this.#next, ms / 2);
  }

  pause(error?: unknown): number {
    this.#next = Math.min(Math.max(2 * this.#next, firstPause), longestPause);
    const asked = error instanceof ProblemError ? error.retryAfterMs : 0;
    return Math.max(this.#next * (0.5 + Math.random() / 2), Math.min(asked, longestAsked));
  }
}

/** Sleeps, but not longer than a signal lets it. False when it was aborted. */
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

/** Wakes whoever waits for a change. A change that nobody waited for is noticed by the next one who does. */
export class Change {
  #changed = false;
  #wake: (() => void)[] = [];

  notify(): void {
    this.#changed = true;
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Waits for a change, or a time; Infinity = however long it takes. One waits at a time. */
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
