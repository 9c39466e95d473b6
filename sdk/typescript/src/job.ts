/** A job as seen by its handler. */

import { format } from "node:util";

import { FailedError, FatalError, JobCanceledError } from "./errors.js";
import { Numbers } from "./numbers.js";
import { Printed } from "./printed.js";
import { membersOf } from "./raw.js";
import { Streams, StreamWriter, type sender } from "./streams.js";
import { RawJson, textAs } from "./write.js";

const mostLog = 256 << 10; // maximal bytes of a job's unsent log
const mostProgress = 256; // maximal bytes of a status text
const mostDetails = 64 << 10; // maximal bytes of an error's details

/** A job as sent by a member. */
export interface ToldJob {
  id: string;
  key: string;
  task: string;
  flow?: string;
  step?: string;
  unit?: number;
  units?: number;
  attempt?: number;
  labels?: string[];
  branch?: string;
  service: string;
  input: any;
  params?: any;
  params_key?: string;
  timeout_ms?: number;
  trace?: string;
  deliveries?: number;
  token: string;
  lease_ms?: number;
}

/** A job to carry out. It may be delivered more than once, and retried; its key stays the same. */
export class Job<I = any> {
  /** Id of the attempt; it differs for the next attempt. Use the key for effects outside. */
  readonly id: string;
  /**
   * Idempotency key for effects outside, such as a payment. It is the same for all attempts at a
   * unit of a visit, through redeliveries, take-overs and retries. A new visit, a rerun and a fork
   * have new keys.
   */
  readonly key: string;
  readonly service: string;
  readonly input: I;
  /** The node's settings merged over those of the task. */
  params: any;
  readonly task: string;
  /** Slug of the task's flow. */
  readonly flow: string;
  /** Name of the step; a path for a step of an inner flow. */
  readonly step: string;
  /** Name of the unit. */
  readonly branch: string;
  /** Index of the unit in the step, from 0. */
  readonly unit: number;
  readonly units: number;
  /** Attempt number, from 1. */
  readonly attempt: number;
  /** Labels that the job requires; its worker has all of them. */
  readonly labels: readonly string[];
  /** Number of earlier deliveries that were lost. */
  readonly deliveries: number;
  /** Time limit of the attempt; undefined if unlimited. */
  readonly timeoutMs: number | undefined;
  /**
   * The attempt's span as a W3C Trace Context traceparent header; use it as the parent of your
   * spans.
   */
  readonly trace: string;
  /** Aborted when the job is no longer needed. */
  readonly signal: AbortSignal;

  readonly #text: () => string;
  readonly #canceling = new AbortController();
  readonly #onProgress: (text: string) => void;
  #paramsText: string | undefined;
  /** @internal Logged lines that were not sent yet. */
  readonly printed = new Printed(mostLog);
  /** @internal */
  readonly numbers = new Numbers();
  /** @internal */
  readonly streams: Streams;

  /** @internal */
  constructor(told: ToldJob, text: () => string, onProgress: (text: string) => void, send?: ReturnType<typeof sender>) {
    this.id = told.id;
    this.key = told.key;
    this.service = told.service;
    this.input = told.input;
    this.params = told.params ?? {};
    this.task = told.task;
    this.flow = told.flow ?? "";
    this.step = told.step ?? "";
    this.branch = told.branch ?? "";
    this.unit = told.unit ?? 0;
    this.units = told.units ?? 1;
    this.attempt = told.attempt ?? 0;
    this.labels = told.labels ?? [];
    this.deliveries = told.deliveries ?? 0;
    this.timeoutMs = told.timeout_ms;
    this.trace = told.trace ?? "";
    this.signal = this.#canceling.signal;
    this.#text = text;
    this.#onProgress = onProgress;
    this.streams = new Streams(this.step, this.signal, send);
  }

  /** The JSON text of the input, if the result of JSON.parse is not precise enough. */
  get inputText(): string {
    return membersOf(this.#text()).get("input") ?? "null";
  }

  /** The JSON text of the params. */
  get paramsText(): string {
    return this.#paramsText ?? membersOf(this.#text()).get("params") ?? "{}";
  }

  /**
   * Reports the progress of the job in a few words. Of texts in quick succession only the last one
   * is sent.
   */
  progress(text: string): void {
    this.#onProgress(cut(text.replaceAll("\0", "\ufffd"), mostProgress));
  }

  /**
   * Adds a line to the job's log, formatted as by console.log; it can be read while the job runs.
   * Lines beyond the sending rate are dropped and counted.
   */
  log(...values: unknown[]): void {
    this.printed.add(cut(format(...values), mostLog));
  }

  /**
   * Adds to a metric of the job, such as the number of rows read. Values of the same name and
   * labels are added up and stored with the attempt, whether it succeeds or fails. At most 100
   * different ones are stored per job.
   */
  count(name: string, value = 1, labels: Record<string, string> = {}): void {
    this.numbers.add(name, value, labels);
  }

  /**
   * Returns a stream of the task: values that others can read while the job runs, such as the
   * tokens of a model: job.stream("answer").write(token).
   */
  stream(name: string): StreamWriter {
    return new StreamWriter(this.streams, name);
  }

  /** @internal Stores the last values of the job's streams. The log says which were lost. */
  async closeStreams(): Promise<void> {
    for (const error of await this.streams.close()) this.log(`values of streams were lost: ${error.message}`);
  }

  /** @internal Sets params that were not sent with the job. */
  complete(params: any, text: string): void {
    this.params = params;
    this.#paramsText = text;
  }

  /** @internal */
  cancel(): void {
    this.#canceling.abort(new JobCanceledError(`nobody waits for the job ${this.id} any longer`));
  }
}

/** Returns the beginning of a text, of at most the given number of bytes. */
export function cut(text: string, most: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= most ? text : new TextDecoder().decode(bytes.subarray(0, most), { stream: true });
}

/** The report of a job whose handler threw. */
export interface Failure {
  error: string;
  fatal: boolean;
  details?: RawJson;
}

/** Returns the report for a thrown value. The stack is added to the job's log. */
export function failureOf(job: Job, error: unknown): Failure {
  const fatal = error instanceof FatalError;
  if (!fatal) job.log(shown(error));
  const failure: Failure = { error: cut(messageOf(error), mostLog), fatal };
  const details = error instanceof FailedError && error.details !== undefined ? jsonOf(error.details) : "null";
  const size = Buffer.byteLength(details);
  if (size > mostDetails) failure.error += ` (its details have ${size} bytes, more than the ${mostDetails} that are kept)`;
  else if (details !== "null") failure.details = new RawJson(details);
  return failure;
}

/** Returns a value as JSON; other values are converted to text. */
function jsonOf(value: unknown): string {
  try {
    return textAs(value, "details");
  } catch {
    return JSON.stringify(cut(shown(value), mostDetails / 2));
  }
}

/**
 * Returns the message of a thrown value, which may be anything, and may itself throw when it is
 * read.
 */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message || error.name : error) || "failed";
  } catch {
    return "failed";
  }
}

/** Formats a value like console.log. */
function shown(value: unknown): string {
  try {
    return format(value);
  } catch {
    return messageOf(value);
  }
}
