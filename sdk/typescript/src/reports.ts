/** Telling the member how jobs ended, many at once when many end, and getting the next ones by its answer. */

import type { Claim } from "./claims.js";
import { isHopeless, isUnfit, ofProblem, ProblemError, TroupeError, type Problem } from "./errors.js";
import { failureOf, messageOf, type ToldJob } from "./job.js";
import type { Logger } from "./log.js";
import { Backoff, sleep } from "./pauses.js";
import type { Transport } from "./transport.js";
import { encode } from "./write.js";

const mostReports = 200; // in one request, unless one alone has more bytes
const reportBytes = 1 << 20;
const senders = 2; // requests under way at once; what comes meanwhile gathers for the next one

/** A report, and what is to be done when it is over with it. */
interface Delivery {
  job: string;
  token: string;
  body: string;
  failed: boolean;
  done: () => void;
  alone?: Backoff; // since it was refused so: it is sent with no other
}

type Report = Omit<Delivery, "done" | "alone">;

/** What a member answers to reports. */
export interface ReportedJobs {
  items: { problem?: Problem & { status: number } }[];
  jobs?: ToldJob[];
}

/** The report of what a handler returned. */
export function outputReport({ job, token }: Claim, output: unknown): Report {
  const said = { metrics: job.numbers.told, ...job.printed.rest() };
  try {
    return { job: job.id, token, failed: false, body: encode({ job: job.id, token, output: output ?? null, ...said }) };
  } catch (e) {
    const error = `the handler's result cannot be sent: ${messageOf(e)}`;
    return { job: job.id, token, failed: true, body: encode({ job: job.id, token, error, fatal: true, ...said }) };
  }
}

/** The report of what a handler threw. */
export function failureReport({ job, token }: Claim, error: unknown): Report {
  const failure = failureOf(job, error);
  return { job: job.id, token, failed: true, body: encode({ job: job.id, token, ...failure, metrics: job.numbers.told, ...job.printed.rest() }) };
}

/** Delivers reports until the member has answered or it is closed. It asks for as many jobs as it reports. */
export class Reporter {
  #ended: Delivery[] = [];
  #sending = 0;
  readonly #closing = new AbortController();

  constructor(
    readonly transport: Transport,
    readonly path: string,
    /** What to ask for so many jobs; undefined = no more are wanted. */
    readonly wanted: (max: number) => object | undefined,
    /** Gets them before anybody hears that the others are over. */
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

  /** Works until all that has ended is reported. */
  async #send(): Promise<void> {
    this.#sending++;
    while (this.#ended.length > 0 && !this.#closing.signal.aborted) {
      await Promise.resolve(); // what ends at this very moment goes along
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

  /** Has it sent again later, and others meanwhile. */
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
          for (const delivery of batch) await this.#deliver([delivery]); // what is wrong with one must not keep the others
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

  /** Sends a batch and gives what of it has to be sent again. */
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

  /** Says whether a report that was refused is to be sent (as a failure, perhaps) again. */
  #again(delivery: Delivery, error: ProblemError): boolean {
    if (!isHopeless(error)) return true;
    if (isUnfit(error) && !delivery.failed) {
      // Unless told so the member would have the same done again in vain.
      delivery.failed = true;
      delivery.body = encode({ job: delivery.job, token: delivery.token, error: `the result was refused: ${error.message}`, fatal: true });
      return true;
    }
    if (error.strange) return true;
    this.logger.warn(`the result of job ${delivery.job} was refused:`, error);
    delivery.done();
    return false;
  }
}
