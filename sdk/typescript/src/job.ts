/** A job as its handler sees it. */

import { format } from "node:util";

import { FailedError, FatalError, JobCanceledError } from "./errors.js";
import { Numbers } from "./numbers.js";
import { Printed } from "./printed.js";
import { membersOf } from "./raw.js";
import { RawJson, textAs } from "./write.js";

const mostLog = 256 << 10; // bytes of what a job logs that wait to be sent
const mostNote = 256; // bytes of a note
const mostDetails = 64 << 10; // bytes of what is told of an error beside its text

/** A job as a member tells it. */
export interface ToldJob {
  id: string;
  key: string;
  task: string;
  flow?: string;
  step?: string;
  unit?: number;
  units?: number;
  attempt?: number;
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

/** Something to be carried out. It may be handed out more than once, and tried again: its key stays the same. */
export class Job<I = any> {
  /** Names the attempt: another one for the next attempt. Effects outside take the key. */
  readonly id: string;
  /**
   * The idempotency key for effects outside, such as a payment: the same for all attempts at a unit of a visit, however often it is delivered, taken
   * over or retried. A new visit, a rerun and a fork have new ones.
   */
  readonly key: string;
  readonly service: string;
  readonly input: I;
  /** The settings of the node over those of the task. */
  params: any;
  readonly task: string;
  /** Slug of the task's flow. */
  readonly flow: string;
  /** Name of the step; a path, in a flow inside another. */
  readonly step: string;
  /** The unit's name. */
  readonly branch: string;
  /** Which of the step's units it is, from 0. */
  readonly unit: number;
  readonly units: number;
  /** Which try it is, from 1. */
  readonly attempt: number;
  /** How often it was handed out before and lost. */
  readonly deliveries: number;
  /** How long the attempt may take; undefined = any time. */
  readonly timeoutMs: number | undefined;
  /** The attempt's span, as the header traceparent of W3C Trace Context: what is traced of the job belongs below it. */
  readonly trace: string;
  /** Is aborted when nobody waits for the job any longer. */
  readonly signal: AbortSignal;

  readonly #text: () => string;
  readonly #canceling = new AbortController();
  readonly #noted: (text: string) => void;
  #paramsText: string | undefined;
  /** @internal What it has logged and the member does not have yet. */
  readonly printed = new Printed(mostLog);
  /** @internal */
  readonly numbers = new Numbers();

  /** @internal */
  constructor(told: ToldJob, text: () => string, noted: (text: string) => void) {
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
    this.deliveries = told.deliveries ?? 0;
    this.timeoutMs = told.timeout_ms;
    this.trace = told.trace ?? "";
    this.signal = this.#canceling.signal;
    this.#text = text;
    this.#noted = noted;
  }

  /** The JSON text of the input, where what JSON.parse makes of it is not enough. */
  get inputText(): string {
    return membersOf(this.#text()).get("input") ?? "null";
  }

  /** The JSON text of the params. */
  get paramsText(): string {
    return this.#paramsText ?? membersOf(this.#text()).get("params") ?? "{}";
  }

  /** Tells whoever watches how far the job is, in a few words. Of notes in quick succession only the last one is told. */
  note(text: string): void {
    this.#noted(cut(text.replaceAll("\0", "\ufffd"), mostNote));
  }

  /** Keeps a line with the job, written as console.log does, to be read while it goes on. What comes faster than it is sent is counted and told. */
  log(...values: unknown[]): void {
    this.printed.add(cut(format(...values), mostLog));
  }

  /**
   * Tells a number of the job, such as how many rows it has read. All of a name and the same labels are added up, and are kept with the attempt, whatever
   * becomes of it. Of a job up to 100 different ones are kept.
   */
  count(name: string, value = 1, labels: Record<string, string> = {}): void {
    this.numbers.add(name, value, labels);
  }

  /** @internal Params that did not come along. */
  complete(params: any, text: string): void {
    this.params = params;
    this.#paramsText = text;
  }

  /** @internal */
  cancel(): void {
    this.#canceling.abort(new JobCanceledError(`nobody waits for the job ${this.id} any longer`));
  }
}

/** The beginning of a text, of so many bytes. */
export function cut(text: string, most: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= most ? text : new TextDecoder().decode(bytes.subarray(0, most), { stream: true });
}

/** What is reported of a job whose handler threw. */
export interface Failure {
  error: string;
  fatal: boolean;
  details?: RawJson;
}

/** Tells what a handler threw. Where it did so is kept in the job's log. */
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

/** A value as JSON; what is none is told as a text. */
function jsonOf(value: unknown): string {
  try {
    return textAs(value, "details");
  } catch {
    return JSON.stringify(cut(shown(value), mostDetails / 2));
  }
}

/** The text of something that was thrown, which may be anything, and may itself throw when it is read. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message || error.name : error) || "failed";
  } catch {
    return "failed";
  }
}

/** A value as console.log shows it. */
function shown(value: unknown): string {
  try {
    return format(value);
  } catch {
    return messageOf(value);
  }
}
