/** Reports the end of jobs, in batches when many end, and receives the next jobs in the answer. */

import type { Claim } from "./claims.js";
import { isHopeless, isUnfit, ofProblem, ProblemError, TroupeError, type Problem } from "./errors.js";
import { failureOf, messageOf, type ToldJob } from "./job.js";
import type { Logger } from "./log.js";
import { Backoff, sleep } from "./pauses.js";
import type { Transport } from "./transport.js";
import { encode } from "./write.js";

const mostReports = 200; // maximal reports in one request
const reportBytes = 1 << 20;
const senders = 2; // concurrent requests; further reports wait for the next one

/** A report, with the action to take when it is delivered. */
interface Delivery {
  job: string;
  token: string;
  body: string;
  failed: boolean;
  done: () => void;
  alone?: Backoff; // set after a refusal: it is sent alone
}

type Report = Omit<Delivery, "done" | "alone">;

/** A member's answer to reports. */
export interface ReportedJobs {
  items: { problem?: Problem & { status: number } }[];
  jobs?: ToldJob[];
}

/** Returns the report for a handler's result. */
export function outputReport({ job, token }: Claim, output: unknown): Report {
  const said = { metrics: job.numbers.told, ...job.printed.rest() };
  try {
    return { job: job.id, token, failed: false, body: encode({ job: job.id, token, output: output ?? null, ...said }) };
  } catch (e) {
    const error = `the handler's result cannot be sent: ${messageOf(e)}`;
    return { job: job.id, token, failed: true, body: encode({ job: job.id, token, error, fatal: true, ...said }) };
  }
}

/** Returns the report for an error thrown by a handler. */
export function failureReport({ job, token }: Claim, error: unknown): Report {
  const failure = failureOf(job, error);
  return { job: job.id, token, failed: true, body: encode({ job: job.id, token, ...failure, metrics: job.numbers.told, ...job.printed.rest() }) };
}

/**
 * Delivers reports until the member has answered or it is closed. It requests as many jobs as it
 * reports.
 */
export class Reporter {
  #ended: Delivery[] = [];
  #sending = 0;
  readonly #closing = new AbortController();

  constructor(
    readonly transport: Transport,
    readonly path: string,
    /** Returns the request for new jobs; undefined if no more are wanted. */
    readonly wanted: (max: number) => object | undefined,
    /** Takes the new jobs before the reported ones are marked as over. */
    readonly take: (answer: ReportedJobs) => Promise<void>,
    readonly logger: Logger,
  ) {}

  deliver(report: Report, done: () => void): void {
    this.#enqueue({ ...report, done });
  }

  #enqueue(delivery: Delivery): void {
    this.#ended.push(delivery);
    if (this.#sending < senders) void this.#send();
  }

  close(): void {
    this.#closing.abort();
  }

  /** Works until all ended jobs are reported. */
  async #send(): Promise<void> {
    this.#sending++;
    while (this.#ended.length > 0 && !this.#closing.signal.aborted) {
      await Promise.resolve(); // include jobs that end at this moment
      await this.#deliver(this.#gather());
    }
    this.#sending--;
  }

  #gather(): Delivery[] {
    let count = 0;
    for (let size = 0; count < this.#ended.length && count < mostReports && size < reportBytes; count++) {
      const { body, alone } = this.#ended[count] as Delivery;
      if (alone !== undefined && count > 0) break;
      size += alone === undefined ? Buffer.byteLength(body) : reportBytes;
    }
    return this.#ended.splice(0, count);
  }

  /** Sends it again later, and others meanwhile. */
  async #putAside(delivery: Delivery, error: ProblemError): Promise<void> {
    delivery.alone ??= new Backoff();
    if (delivery.alone.fresh) this.logger.warn(`the result of job ${delivery.job} is not delivered yet, trying on:`, error);
    if (await sleep(delivery.alone.pause(error), this.#closing.signal)) this.#enqueue(delivery);
  }

  async #deliver(batch: Delivery[]): Promise<void> {
    const backoff = new Backoff();
    while (batch.length > 0 && !this.#closing.signal.aborted) {
      let error: unknown;
      try {
        [batch, error] = await this.#try(batch);
      } catch (e) {
        if (this.#closing.signal.aborted) return;
        const unfit = e instanceof ProblemError && isUnfit(e);
        if (batch.length > 1 && (unfit || isHopeless(e))) {
          for (const delivery of batch) await this.#deliver([delivery]); // an invalid report must not block the others
          return;
        }
        if (isHopeless(e)) batch = batch.filter((d) => this.#again(d, e));
        if (unfit) {
          for (const delivery of batch) void this.#putAside(delivery, e);
          return;
        }
        error = e;
      }
      if (batch.length > 0 && error !== undefined) {
        if (backoff.fresh) this.logger.warn(`${batch.length} results are not delivered yet, trying on:`, error);
        await sleep(backoff.pause(error), this.#closing.signal);
      }
    }
  }

  /** Sends a batch and returns the reports to send again. */
  async #try(batch: Delivery[]): Promise<[Delivery[], unknown]> {
    const next = this.wanted(batch.length);
    const body = `{"reports":[${batch.map((d) => d.body).join(",")}]${next === undefined ? "" : `,"next":${JSON.stringify(next)}`}}`;
    const answer = await this.transport.call<ReportedJobs>("POST", `${this.path}/reports`, { body, signal: this.#closing.signal });
    if (answer.items.length !== batch.length) throw new TroupeError(`a member has answered ${answer.items.length} reports of ${batch.length}`);
    await this.take(answer);
    let last: unknown;
    const again = batch.filter((delivery, i) => {
      const problem = answer.items[i]?.problem;
      if (problem === undefined) {
        delivery.done();
        return false;
      }
      const error = ofProblem(problem.status, problem);
      if (!this.#again(delivery, error)) return false;
      last = error;
      return true;
    });
    return [again, last];
  }

  /** Returns whether a refused report is to be sent again (possibly as a failure). */
  #again(delivery: Delivery, error: ProblemError): boolean {
    if (!isHopeless(error)) return true;
    if (isUnfit(error) && !delivery.failed) {
      // Otherwise the member would repeat the job without success.
      delivery.failed = true;
      delivery.body = encode({ job: delivery.job, token: delivery.token, error: `the result was rejected: ${error.message}`, fatal: true });
      return true;
    }
    if (error.strange) return true;
    this.logger.warn(`the result of job ${delivery.job} was rejected:`, error);
    delivery.done();
    return false;
  }
}
