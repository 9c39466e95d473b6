/** Sends requests to members: several addresses, and the next one if one does not answer. */

import { isFinal, mayPass, ProblemError, refusal, TroupeError, UnreachableError } from "./errors.js";
import { longestTimer } from "./pauses.js";
import { remember } from "./raw.js";

/**
 * Addresses of members, as a list or separated by commas. The default is TROUPE_SERVER, or
 * http://127.0.0.1:8070.
 */
export type Servers = string | readonly string[];

const defaultServer = "http://127.0.0.1:8070";

/** Options of a request. */
export interface Request {
  body?: string | undefined;
  headers?: Record<string, string>;
  /** Requested wait at the member, in addition to the time limit of an answer. */
  waitMs?: number | undefined;
  timeoutMs?: number;
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
}

/** @internal Parses addresses and rejects invalid ones. */
export function addresses(servers: Servers | undefined): string[] {
  const given = servers ?? (process.env["TROUPE_SERVER"] || defaultServer);
  const found = (typeof given === "string" ? given.split(",") : given).map(address);
  if (found.length === 0) throw new TypeError("there is no address of a member: write http://host:port");
  return found;
}

function address(text: string): string {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    throw new TypeError(`${JSON.stringify(text)} is no address of a member: write http://host:port`);
  }
  return (url.origin + url.pathname).replace(/\/+$/, "").replace(/\/v1$/, "");
}

/**
 * Sends requests to the address that answered last, and to the next one if it does not answer any
 * longer. Every request may be retried: those with an effect carry a key or a token that makes it
 * happen once.
 */
export class Transport {
  readonly #addresses: string[];
  readonly #token: string | undefined;
  #at = 0;

  constructor(
    servers: Servers | undefined,
    token: string | undefined,
    readonly timeoutMs: number,
  ) {
    this.#addresses = addresses(servers);
    this.#token = token ?? process.env["TROUPE_TOKEN"];
  }

  /** Tries each address once until one accepts the request, and returns its answer. */
  async call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const errors: string[] = [];
    let busy: ProblemError | undefined;
    for (let i = 0; i < this.#addresses.length; i++) {
      const at = this.#at;
      try {
        return await this.#once<T>(this.#address(at), method, path, request);
      } catch (e) {
        if (isAborted(request.signal) || !mayPass(e)) throw e;
        if (e instanceof ProblemError) busy = e;
        else errors.push((e as UnreachableError).message);
      }
      this.#leave(at);
    }
    throw busy ?? new UnreachableError(`no member answers at ${errors.join(", ")}: is one running there?`);
  }

  /** Opens a streamed answer from one address. */
  async stream(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const at = this.#at;
    try {
      const response = await this.#send(this.#address(at), "GET", path, { headers }, signal);
      if (response.body === null) throw new UnreachableError("the stream broke off");
      return response.body;
    } catch (e) {
      if (!isFinal(e)) this.#leave(at);
      throw e;
    }
  }

  #address(at: number): string {
    return this.#addresses[at] as string;
  }

  /** Makes the next request use the next address, unless a concurrent one has already switched. */
  #leave(at: number): void {
    if (this.#at === at) this.#at = (at + 1) % this.#addresses.length;
  }

  async #once<T>(base: string, method: string, path: string, request: Request): Promise<T> {
    const ending = new AbortController();
    const end = (): void => ending.abort(request.signal?.reason);
    const limit = (request.timeoutMs ?? this.timeoutMs) + (request.waitMs ?? 0);
    const timer = setTimeout(() => ending.abort(new UnreachableError(`${base} (no answer within ${limit} ms)`)), Math.min(limit, longestTimer));
    request.signal?.addEventListener("abort", end);
    try {
      request.signal?.throwIfAborted();
      const response = await this.#send(base, method, path, request, ending.signal);
      return decode<T>(base, await readAll(base, response, ending.signal));
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", end);
    }
  }

  /** Returns a successful answer; any other is a ProblemError. */
  async #send(base: string, method: string, path: string, request: Request, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
    if (request.body !== undefined) headers["Content-Type"] ??= "application/json";
    if (this.#token) headers["Authorization"] = `Bearer ${this.#token}`;
    let response: Response;
    try {
      response = await fetch(`${base}/v1${path}`, { method, headers, body: request.body ?? null, signal, redirect: "manual" });
    } catch (e) {
      throw lost(base, e, signal);
    }
    if (response.status < 300) return response;
    throw refusal(response.status, await readAll(base, response, signal), response.headers.get("Retry-After"));
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted ?? false;
}

async function readAll(base: string, response: Response, signal: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (e) {
    throw lost(base, e, signal);
  }
}

/** Returns the error for a missing or broken answer. */
function lost(base: string, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return new UnreachableError(`${base} (${cause instanceof Error ? cause.message || cause.name : String(cause)})`, { cause: error });
}

function decode<T>(base: string, text: string): T {
  if (text === "") return undefined as T;
  try {
    return remember(JSON.parse(text) as T, () => text);
  } catch (e) {
    throw new TroupeError(`${base} does not answer as a member does: ${text.slice(0, 200)}`, { cause: e });
  }
}
