/** Errors between a program and Troupe. */

import { STATUS_CODES } from "node:http";

import type { DefinitionProblem } from "./types.js";

/** The base class of all errors of this package. */
export class TroupeError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** No address answered: there is no listener, the connection broke, or it took too long. */
export class UnreachableError extends TroupeError {}

/** The awaited result did not arrive in time. */
export class TimeoutError extends TroupeError {}

/**
 * Thrown by a handler to fail the job with details, which are shown with the attempt beside the
 * message. Details may be any JSON of up to 64 KiB; other values are converted to text.
 */
export class FailedError extends TroupeError {
  readonly details: unknown;

  constructor(message?: string, options?: ErrorOptions & { details?: unknown }) {
    super(message, options);
    this.details = options?.details;
  }
}

/** Thrown by a handler to fail the job without retries. */
export class FatalError extends FailedError {}

/**
 * The reason of a job's aborted signal: the job is no longer needed. The result or error of its
 * handler is not reported.
 */
export class JobCanceledError extends TroupeError {}

/** One of several problems of a request. */
export interface FieldError {
  message: string;
  field?: string;
  hint?: string;
}

/** Error answer of a member. */
export interface Problem {
  status?: number;
  type?: string;
  code?: string;
  message?: string;
  field?: string;
  hint?: string;
  detail?: string;
  errors?: FieldError[];
  problems?: DefinitionProblem[];
  request_id?: string;
}

/**
 * A refusal. Its message and fields say what is wrong, where, and what to do. There is a subclass
 * for each code.
 */
export class ProblemError extends TroupeError {
  readonly code: string;
  /** The message alone, without the status, the field and the hint. */
  readonly reason: string;
  readonly field: string;
  readonly hint: string;
  readonly detail: string;
  readonly errors: FieldError[];
  readonly problems: DefinitionProblem[];
  /** Id of the request in the member's log. */
  readonly requestId: string;
  /** @internal The answer came from a proxy, not from a member. */
  readonly strange: boolean = false;

  constructor(
    readonly status: number,
    problem: Problem,
    readonly retryAfterMs = 0,
  ) {
    super(textOfProblem(status, problem));
    this.code = problem.code ?? codeOf(status);
    this.reason = problem.message ?? "";
    this.field = problem.field ?? "";
    this.hint = problem.hint ?? "";
    this.detail = problem.detail ?? "";
    this.errors = problem.errors ?? [];
    this.problems = problem.problems ?? [];
    this.requestId = problem.request_id ?? "";
  }

  /** The same request may succeed later, or at another member. */
  get temporary(): boolean {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** The request is malformed. */
export class InvalidError extends ProblemError {}
/** The named object does not exist. */
export class NotFoundError extends ProblemError {}
/**
 * The request conflicts with the current state: another task has the key, another worker has the
 * job.
 */
export class ConflictError extends ProblemError {}
/** The request exceeds a size limit of the member. */
export class LimitError extends ProblemError {}
/** The member is overloaded, leaving, or currently unable to write. Several retries were made. */
export class BusyError extends ProblemError {}
/** The token is missing or wrong. */
export class DeniedError extends ProblemError {}
/** A bug of the member. */
export class InternalError extends ProblemError {}

const byCode: Record<string, typeof ProblemError> = {
  invalid: InvalidError,
  not_found: NotFoundError,
  conflict: ConflictError,
  limit: LimitError,
  busy: BusyError,
  denied: DeniedError,
  internal: InternalError,
};

/** Returns the error for an answer. */
export function refusal(status: number, body: string, retryAfter: string | null): ProblemError {
  const document = documentIn(body);
  return Object.assign(ofProblem(status, document, millisecondsOf(retryAfter)), { strange: !("code" in document) });
}

export function ofProblem(status: number, problem: Problem, retryAfterMs = 0): ProblemError {
  return new (byCode[problem.code ?? codeOf(status)] ?? ProblemError)(status, problem, retryAfterMs);
}

/** Returns whether another address, or a later retry, may accept the request. */
export function mayPass(error: unknown): boolean {
  return error instanceof UnreachableError || (error instanceof ProblemError && error.temporary);
}

/** Returns whether a retry would be refused again. */
export function isFinal(error: unknown): boolean {
  return error instanceof ProblemError && !error.temporary && error.status < 500;
}

/** Returns whether the content of the request was refused. */
export function isUnfit(error: ProblemError): boolean {
  return [400, 413, 422].includes(error.status);
}

/**
 * Returns whether a worker's retry would be refused again. A proxy may temporarily redirect or fail
 * to route a request, so only its answer that a request is too large counts as final. Whether the
 * worker is accepted is determined by its registration.
 */
export function isHopeless(error: unknown): error is ProblemError {
  return isFinal(error) && error instanceof ProblemError && error.status >= 400 && ![401, 403].includes(error.status) && (!error.strange || error.status === 413);
}

/** Returns the problem in a body; a proxy may send anything. */
function documentIn(body: string): Problem {
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch {
    return { detail: body.slice(0, 200) };
  }
  if (typeof document !== "object" || document === null) return {};
  if (!("code" in document) && "error" in document && typeof document.error === "string") {
    return { message: document.error, detail: document.error };
  }
  return document;
}

function millisecondsOf(retryAfter: string | null): number {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Math.min(Number(retryAfter), 3600) * 1000 : 0;
}

function textOfProblem(status: number, problem: Problem): string {
  const lines = [`${status} ${STATUS_CODES[status] ?? ""}${problem.detail ? `: ${problem.detail}` : ""}`];
  for (const p of problem.problems ?? []) {
    lines.push(`  ${p.line ?? 0}:${p.column ?? 0}: ${p.severity}: ${p.path ?? ""}: ${p.message}`);
  }
  for (const f of problem.errors ?? []) lines.push(`  ${f.field ?? ""}: ${f.message}`);
  return lines.join("\n");
}

function codeOf(status: number): string {
  const byStatus: Record<number, string> = {
    401: "denied", 403: "denied", 404: "not_found", 409: "conflict", 413: "limit", 429: "busy", 502: "busy", 503: "busy", 504: "busy",
  };
  return byStatus[status] ?? (status < 500 ? "invalid" : "internal");
}
