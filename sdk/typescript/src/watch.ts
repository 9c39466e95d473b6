/** Following a task: server-sent events, resumed after broken connections. */

import { isFinal, ProblemError, UnreachableError } from "./errors.js";
import { Backoff, longestTimer, sleep } from "./pauses.js";
import { remember } from "./raw.js";
import type { Transport } from "./transport.js";
import type { Event } from "./types.js";

interface Message {
  kind: string;
  data: string;
}

/** Yields the events of a task until it ends. */
export function watch(transport: Transport, task: string, after: string, silenceMs: number, signal?: AbortSignal): AsyncGenerator<Event, void, void> {
  return follow<Event>(transport, `/tasks/${encodeURIComponent(task)}/stream`, after, silenceMs, signal, (event) => event.id);
}

/**
 * Yields the messages of a stream until it ends, without gaps and duplicates, however often the
 * connection breaks.
 *
 * @param idOf returns the id from which to continue after a message
 */
export async function* follow<T>(
  transport: Transport, path: string, after: string, silenceMs: number, signal: AbortSignal | undefined, idOf: (told: T) => string,
): AsyncGenerator<T, void, void> {
  let backoff = new Backoff();
  for (;;) {
    try {
      for await (const message of messages(transport, path, after, silenceMs, signal)) {
        if (message.kind === "end") return;
        if (message.kind !== "" || message.data === "") continue; // a newer member may have other kinds
        const told = remember(JSON.parse(message.data) as T, () => message.data);
        after = idOf(told);
        backoff = new Backoff();
        yield told;
      }
    } catch (e) {
      signal?.throwIfAborted();
      if (isFinal(e) || !(e instanceof ProblemError || e instanceof UnreachableError)) throw e;
      await sleep(backoff.pause(e), signal);
      signal?.throwIfAborted();
    }
  }
}

/** Yields the messages of one connection. It ends only with an error. */
async function* messages(transport: Transport, path: string, after: string, silenceMs: number, signal?: AbortSignal): AsyncGenerator<Message, void, void> {
  const ending = new AbortController();
  const end = (): void => ending.abort(signal?.reason);
  signal?.addEventListener("abort", end);
  const silent = setTimeout(() => ending.abort(new UnreachableError("the stream is silent")), Math.min(silenceMs, longestTimer));
  try {
    signal?.throwIfAborted();
    const headers: Record<string, string> = { Accept: "text/event-stream", ...(after ? { "Last-Event-ID": after } : {}) };
    const body = await transport.stream(path, headers, ending.signal);
    let message: Message = { kind: "", data: "" };
    for await (const line of lines(body, ending.signal, () => silent.refresh())) {
      if (line === "") {
        yield message;
        message = { kind: "", data: "" };
      } else {
        hear(message, line);
      }
    }
  } finally {
    clearTimeout(silent);
    signal?.removeEventListener("abort", end);
    ending.abort();
  }
}

function hear(message: Message, line: string): void {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "event") message.kind = value;
  if (name === "data") message.data += message.data === "" ? value : `\n${value}`;
}

/**
 * Yields the lines of a stream without line breaks. It ends only with an error, because a stream
 * that stops was interrupted.
 */
async function* lines(body: ReadableStream<Uint8Array>, signal: AbortSignal, alive: () => void): AsyncGenerator<string, never, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let begun: string[] = [];
  for (;;) {
    const chunk = await read(reader, signal);
    alive();
    const parts = decoder.decode(chunk, { stream: true }).split("\n");
    const rest = parts.pop() as string;
    for (const part of parts) {
      yield [...begun, part].join("").replace(/\r$/, "");
      begun = [];
    }
    begun.push(rest);
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal): Promise<Uint8Array> {
  let chunk: ReadableStreamReadResult<Uint8Array>;
  try {
    chunk = await reader.read();
  } catch (e) {
    throw signal.aborted ? signal.reason : new UnreachableError("the stream broke off", { cause: e });
  }
  if (chunk.done) throw new UnreachableError("the stream broke off");
  return chunk.value;
}
