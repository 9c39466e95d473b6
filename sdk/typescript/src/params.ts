/** Params that are too large to be sent with each job. The jobs of one step request them once. */

import type { Claim } from "./claims.js";
import { isHopeless, TroupeError } from "./errors.js";
import { Backoff, sleep } from "./pauses.js";
import { textOf } from "./raw.js";
import type { Transport } from "./transport.js";

const mostRemembered = 16; // maximal number of steps

interface Params {
  value: any;
  text: string;
}

export class LargeParams {
  readonly #known = new Map<string, Promise<Params | undefined>>();

  constructor(readonly transport: Transport) {}

  /**
   * Sets the params of a job. Returns false if they are not available, or the job is no longer
   * needed.
   */
  async fetch(claim: Claim): Promise<boolean> {
    const key = claim.paramsKey;
    while (key !== undefined && !claim.canceled) {
      const asked = this.#known.get(key);
      const params = await (asked ?? this.#ask(key, claim));
      if (params !== undefined) {
        claim.job.complete(params.value, params.text);
        break;
      }
      if (asked === undefined) return false; // it was this job's own request
    }
    return !claim.canceled;
  }

  #ask(key: string, claim: Claim): Promise<Params | undefined> {
    const asked = this.#read(claim);
    this.#known.set(key, asked);
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostRemembered && oldest !== undefined) this.#known.delete(oldest);
    void asked.then((params) => {
      if (params === undefined && this.#known.get(key) === asked) this.#known.delete(key);
    });
    return asked;
  }

  async #read(claim: Claim): Promise<Params | undefined> {
    const path = `/jobs/${encodeURIComponent(claim.job.id)}/params?token=${encodeURIComponent(claim.token)}`;
    const backoff = new Backoff();
    for (;;) {
      try {
        const answer = await this.transport.call<{ params?: any }>("GET", path, { signal: claim.job.signal });
        if (typeof answer.params !== "object" || answer.params === null) throw new TroupeError("a member has not told the params");
        return { value: answer.params, text: textOf(answer, "params") ?? "{}" };
      } catch (e) {
        if (isHopeless(e) || !(await sleep(backoff.pause(e), claim.job.signal))) return undefined;
      }
    }
  }
}
