/** What can go wrong between a program and Troupe. */

import { STATUS_CODES } from "node:http";

import type { DefinitionProblem } from "./types.js";

/** The parent of all errors of this package. */
export class TroupeError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** No address answered: nobody listens there, the connection broke off or took too long. */
export class UnreachableError extends TroupeError {}

/** What was waited for did not come in time. */
export class TimeoutError extends TroupeError {}

/**
 * Thrown by a handler: the job has failed, and whoever looks at the attempt finds the details beside the message. They may be anything that
 * is JSON, of up to 64 KiB; what is not is told as a text.
 */
export class FailedError extends TroupeError {
  readonly details: unknown;

  constructor(message?: string, options?: ErrorOptions & { details?: unknown }) {
    super(message, options);
    this.details = options?.details;
  }
}

/** Thrown by a handler: the job has failed, and trying it again would be of no use. */
export class FatalError extends FailedError {}

/** Why a job's signal is aborted: nobody waits for it any longer. What its handler returns or throws is not reported. */
export class JobCanceledError extends TroupeError {}

/** One of several things that are wrong with a request. */
export interface Fault {
  what: string;
  where?: string;
  hint?: string;
}

/** Every answer of a member that is no success. */
export interface Problem {
  status?: number;
  kind?: string;
  what?: string;
  where?: string;
  hint?: string;
  detail?: string;
  faults?: Fault[];
  problems?: DefinitionProblem[];
  request?: string;
}

/**
 * A refusal. Its message says what is wrong, where, and what to do; so do its fields. There is a subclass for each kind.
 */
export class ProblemError extends TroupeError {
  readonly kind: string;
  readonly what: string;
  readonly where: string;
  readonly hint: string;
  readonly detail: string;
  readonly faults: Fault[];
  readonly problems: DefinitionProblem[];
  /** Id of the request in the member's log. */
  readonly request: string;
  /** @internal No member has said so, but something on the way to it. */
  readonly strange: boolean = false;

  constructor(
    readonly status: number,
    problem: Problem,
    readonly retryAfterMs = 0,
  ) {
    super(textOfProblem(status, problem));
    this.kind = problem.kind ?? kindOf(status);
    this.what = problem.what ?? "";
    this.where = problem.where ?? "";
    this.hint = problem.hint ?? "";
    this.detail = problem.detail ?? "";
    this.faults = problem.faults ?? [];
    this.problems = problem.problems ?? [];
    this.request = problem.request ?? "";
  }

  /** The same request may be taken later, or by another member. */
  get temporary(): boolean {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** The request is not as it has to be. */
export class InvalidError extends ProblemError {}
/** What the request names is not there. */
export class NotFoundError extends ProblemError {}
/** It does not fit to what there is: another task has the key, another worker the job. */
export class ConflictError extends ProblemError {}
/** It is larger, deeper or longer than a limit of the member allows. */
export class LimitError extends ProblemError {}
/** The member is full, leaves, or cannot write at the moment. It was asked several times. */
export class BusyError extends ProblemError {}
/** The token is missing or wrong. */
export class DeniedError extends ProblemError {}
/** A bug of the member. */
export class InternalError extends ProblemError {}

const byKind: Record<string, typeof ProblemError> = {
  invalid: InvalidError,
  not_found: NotFoundError,
  conflict: ConflictError,
  limit: LimitError,
  busy: BusyError,
  denied: DeniedError,
  internal: InternalError,
};

/** The error that an answer stands for. */
export function refusal(status: number, body: string, retryAfter: string | null): ProblemError {
  const document = documentIn(body);
  return Object.assign(ofProblem(status, document, millisecondsOf(retryAfter)), { strange: !("kind" in document) });
}

export function ofProblem(status: number, problem: Problem, retryAfterMs = 0): ProblemError {
  return new (byKind[problem.kind ?? kindOf(status)] ?? ProblemError)(status, problem, retryAfterMs);
}

/** Says whether another address, or the same one later, may take the request. */
export function mayPass(error: unknown): boolean {
  return error instanceof UnreachableError || (error instanceof ProblemError && error.temporary);
}

/** Says whether the same request would be refused again. */
export function isFinal(error: unknown): boolean {
  return error instanceof ProblemError && !error.temporary && error.status < 500;
}

/** Says whether it is what was sent which is not taken. */
export function isUnfit(error: ProblemError): boolean {
  return [400, 413, 422].includes(error.status);
}

/**
 * Says whether the same of a worker would be refused again. Something on the way to the member may send it elsewhere for a while, or not know the way; it is
 * believed only that what is sent is too large. Whether the worker is let in is found out by what it says of itself.
 */
export function isHopeless(error: unknown): error is ProblemError {
  return isFinal(error) && error instanceof ProblemError && error.status >= 400 && ![401, 403].includes(error.status) && (!error.strange || error.status === 413);
}

/** The problem in a body. A proxy may answer with anything. */
function documentIn(body: string): Problem {
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch {
    return { detail: body.slice(0, 200) };
  }
  if (typeof document !== "object" || document === null) return {};
  if (!("kind" in document) && "error" in document && typeof document.error === "string") {
    return { what: document.error, detail: document.error };
  }
  return document;
}

function millisecondsOf(retryAfter: string | null): number {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Math.min(Number(retryAfter), 3600) * 1000 : 0;
}

function textOfProblem(status: number, problem: Problem): string {
  const lines = [`${status} ${STATUS_CODES[status] ?? ""}${problem.detail ? `: ${problem.detail}` : ""}`];
  for (const p of problem.problems ?? []) {
    lines.push(`  ${p.line ?? 0}:${p.column ?? 0}: ${p.severity}: ${p.path ?? ""}: ${p.msg}`);
  }
  for (const f of problem.faults ?? []) lines.push(`  ${f.where ?? ""}: ${f.what}`);
  return lines.join("\n");
}

function kindOf(status: number): string {
  const byStatus: Record<number, string> = {
    401: "denied", 403: "denied", 404: "not_found", 409: "conflict", 413: "limit", 429: "busy", 502: "busy", 503: "busy", 504: "busy",
  };
  return byStatus[status] ?? (status < 500 ? "invalid" : "internal");
}
