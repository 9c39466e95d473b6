/**
 * Workers at a server that is not, or not always, a member: a proxy, or another program at its
 * address.
 */

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { Worker } from "@troupe-engine/sdk";

import { until } from "./member.js";

const odd: unknown[] = [
  null,
  { items: [], jobs: 1, canceled: 7, registered: "yes" },
  { items: [7, 8], jobs: [null], canceled: [{}] },
];
const job = { id: "j", key: "k", token: "t", task: "k", service: "s", input: 20, lease_ms: 300 };
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
});

/**
 * Answers each kind of request in unusual ways before it answers like a member. The first heartbeat
 * of a claim may never be answered.
 */
class Odd {
  readonly asked = new Map<string, number>();
  readonly results: unknown[] = [];
  pages: number[] = []; // status codes of the first answers to reports, as from a proxy
  dislikes: unknown = "bad"; // a result with which every request is rejected
  filtered = 0; // number of requests with it
  job: object = job;
  signs = 0; // number of heartbeats
  deaf = false; // the first heartbeat is not answered
  busy = false; // claims are not renewed
  mute = false; // requests with lines do not renew claims either
  readonly beats: boolean[] = []; // whether each request to renew claims had lines
  largest = 0; // characters of a heartbeat
  readonly lines = new Map<string, number>(); // number of logged lines per job
  again: object[] = []; // jobs for later polls
  params: string[] = []; // answers to requests for large params
  prolonged = 0;
  next: unknown[] = []; // jobs to return with the answer to reports that request some
  before = (): Promise<void> => Promise.resolve(); // called before it answers those
  readonly released: unknown[] = [];
  #given = false;
  readonly #server = createServer((request, response) => {
    let text = "";
    request.on("data", (part: Buffer) => (text += part.toString()));
    request.on("end", () => void this.#answer(request.method ?? "", request.url ?? "", text, response));
  });

  constructor(
    readonly ways: unknown[],
    readonly hangs: boolean,
  ) {}

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    ends.push(() => {
      this.#server.closeAllConnections();
      this.#server.close();
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(method: string, path: string, text: string, response: ServerResponse): Promise<void> {
    const kind = method === "POST" ? path.slice(path.lastIndexOf("/") + 1) : method;
    const body = text === "" ? {} : JSON.parse(text);
    if (kind === "heartbeat" && body.claims === undefined && ++this.signs === 1 && this.deaf) return;
    if (kind === "heartbeat" && body.claims !== undefined && ++this.prolonged === 1 && this.hangs) return;
    if (method === "GET") {
      response.end(this.params.shift() ?? '{"params":{"by":3}}');
      return;
    }
    if (kind === "heartbeat") this.largest = Math.max(this.largest, text.length);
    for (const { job, lines = [], lines_from = 0 } of this.busy || this.mute ? [] : (body.claims ?? [])) {
      this.lines.set(job, Math.max(this.lines.get(job) ?? 0, lines_from + lines.length));
    }
    const page = kind === "reports" ? this.pages.pop() : kind === "heartbeat" && body.claims !== undefined && this.busy ? 503 : undefined;
    if (page !== undefined) {
      response.writeHead(page, { Location: "/login" }).end("<html>");
      return;
    }
    if (kind === "heartbeat" && body.claims !== undefined && this.mute) {
      const lines = body.claims.some((claim: object) => "lines" in claim);
      this.beats.push(lines);
      if (lines) response.writeHead(413).end("<html>");
      else response.end('{"canceled":[]}');
      return;
    }
    if (kind === "reports" && body.reports.some((report: { output: unknown }) => report.output === this.dislikes)) {
      this.filtered++;
      response.writeHead(400).end("<html>");
      return;
    }
    const n = this.asked.get(kind) ?? 0;
    this.asked.set(kind, n + 1);
    response.end(JSON.stringify(n < this.ways.length ? this.ways[n] : await this.#proper(kind, body)));
  }

  async #proper(kind: string, body: { reports?: { output: unknown }[]; next?: object; claims?: object[] }): Promise<object> {
    if (kind === "poll") {
      const jobs = this.#given ? this.again.splice(0) : [this.job];
      this.#given = true;
      return { jobs };
    }
    if (kind === "release") this.released.push(...(body.claims ?? []));
    for (const report of body.reports ?? []) this.results.push(report.output);
    const jobs = body.next === undefined ? [] : this.next.splice(0);
    if (jobs.length > 0) await this.before();
    return { registered: true, canceled: [], items: (body.reports ?? []).map(() => ({})), jobs };
  }
}

/** Runs a worker that doubles the input of the job once it may. */
function work(server: string, done: Promise<void>): Worker {
  const worker = new Worker({ servers: server, id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn: () => {} } });
  worker.handle<number>("s", async (j) => {
    await done;
    return j.input * (j.params.by ?? 2);
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  return worker;
}

test("a worker outlasts odd answers", async () => {
  const server = new Odd(odd, false);
  let finish = (): void => {};
  work(await server.start(), new Promise<void>((resolve) => (finish = resolve)));
  await until(() => (server.asked.get("heartbeat") ?? 0) > 2 * odd.length && server.prolonged > 1);
  finish();
  await until(() => server.results.length > 0);
  assert.deepEqual(server.results, [40]);
});

test("a result outlasts answers that are no member's", async () => {
  for (const status of [301, 302, 400, 401, 403, 404, 405, 502]) {
    const server = new Odd([], false);
    server.pages = [status];
    work(await server.start(), Promise.resolve());
    await until(() => server.results.length > 0);
    assert.deepEqual(server.results, [40], String(status));
  }
});

test("results that something on the way refuses keep no others", async () => {
  const server = new Odd([], false);
  const jobs = Array.from({ length: 40 }, (_, i) => ({ ...job, id: `j${i}`, input: i }));
  [server.job, server.again] = [jobs[0] as object, jobs.slice(1)];
  const worker = new Worker({ servers: await server.start(), id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn: () => {} } });
  let begun = 0;
  let finish = (): void => {};
  const done = new Promise<void>((resolve) => (finish = resolve));
  worker.handle<number>("s", async (j) => {
    begun++;
    await done;
    return j.input % 10 === 0 ? "bad" : j.input;
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  await until(() => begun === jobs.length);
  finish();
  const good = jobs.map(({ input }) => input).filter((input) => input % 10 !== 0);
  await until(() => server.results.length >= good.length && server.filtered > 12);
  assert.deepEqual([...server.results].sort((a, b) => Number(a) - Number(b)), good);
  server.dislikes = "nothing";
  await until(() => server.results.length === jobs.length);
});

test("large params outlast answers that are no member's", async () => {
  const server = new Odd([], false);
  server.job = { ...job, params_key: "k" };
  server.params = ["", "null", "{}", "[1", '{"params":null}', "<html>"];
  work(await server.start(), Promise.resolve());
  await until(() => server.results.length > 0);
  assert.deepEqual(server.results, [60]);
});

test("a job that comes again ends what was begun of it", async () => {
  const server = new Odd([], false);
  const worker = new Worker({ servers: await server.start(), id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn: () => {} } });
  let begun = false;
  let canceled = false;
  worker.handle<number>("s", async (j) => {
    begun = true;
    if (j.deliveries === 0) await new Promise<void>((resolve) => j.signal.addEventListener("abort", () => resolve()));
    canceled ||= j.signal.aborted;
    return j.deliveries;
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  await until(() => begun);
  server.again = [{ ...job, token: "newer", deliveries: 1 }]; // the claim expired while worker and server were disconnected
  await until(() => canceled && server.results.length > 0);
  assert.deepEqual(server.results, [1]);
});

test("jobs that log while no member answers do not flood it", async () => {
  const server = new Odd([], false);
  server.busy = true;
  const said: string[] = [];
  const warn = (...what: unknown[]): void => void said.push(String(what[0]));
  const worker = new Worker({ servers: await server.start(), id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn } });
  let over = false;
  worker.handle("s", async (j) => {
    for (; !over; await new Promise((resolve) => setTimeout(resolve, 10))) j.log("on and on");
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  await until(() => server.prolonged > 50);
  assert.equal(said.filter((text) => text.includes("could not be prolonged")).length, 1, said.join("\n"));
  server.busy = false;
  await until(() => (server.lines.get("j") ?? 0) > 50);
  over = true;
  await until(() => server.results.length > 0);
});

test("claims are prolonged while something on the way refuses what jobs log", async () => {
  const server = new Odd([], false);
  server.mute = true;
  server.job = { ...job, lease_ms: 60_000 };
  const said: string[] = [];
  const warn = (...what: unknown[]): void => void said.push(String(what[0]));
  const worker = new Worker({ servers: await server.start(), id: "w", heartbeatMs: 5_000, waitMs: 0, logger: { info: () => {}, warn } });
  let over = false;
  worker.handle("s", async (j) => {
    for (; !over; await new Promise((resolve) => setTimeout(resolve, 10))) j.log("on and on");
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  await until(() => server.beats.filter((lines) => lines).length > 3);
  const beats = [...server.beats];
  server.mute = false;
  await until(() => (server.lines.get("j") ?? 0) > 50);
  over = true;
  await until(() => server.results.length > 0);
  assert.ok(!beats.some((lines, i) => lines && beats[i + 1] === true), `each is followed by one without lines: ${beats}`);
  assert.equal(said.filter((text) => text.includes("could not be prolonged")).length, 1, said.join("\n"));
});

test("what many jobs log does not make a request too large", async () => {
  const server = new Odd([], false);
  const jobs = Array.from({ length: 40 }, (_, i) => ({ ...job, id: `j${i}`, lease_ms: 60_000 }));
  [server.job, server.again] = [jobs[0] as object, jobs.slice(1)];
  const worker = new Worker({ servers: await server.start(), id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn: () => {} } });
  let finish = (): void => {};
  const done = new Promise<void>((resolve) => (finish = resolve));
  worker.handle("s", async (j) => {
    for (let i = 0; i < 200; i++) j.log("x".repeat(1000));
    await done;
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
  await until(() => jobs.every(({ id }) => server.lines.get(id) === 200));
  finish();
  assert.ok(server.largest < 2 << 20, String(server.largest));
});

test("jobs come with the answer to a report", async () => {
  const server = new Odd([], false);
  server.next = [{ ...job, id: "next", input: 21 }];
  work(await server.start(), Promise.resolve());
  await until(() => server.results.length === 2);
  assert.deepEqual(server.results, [40, 42]);
});

test("jobs that come when the worker is to stop are given back", async () => {
  const server = new Odd([], false);
  server.next = [{ ...job, id: "next" }];
  let finish = (): void => {};
  const worker = work(await server.start(), new Promise<void>((resolve) => (finish = resolve)));
  server.before = () => {
    worker.stop();
    return until(() => server.asked.has("DELETE"));
  };
  finish();
  await until(() => server.released.length > 0);
  assert.deepEqual(server.released, [{ job: "next", token: "t" }]);
  assert.deepEqual(server.results, [40]);
});

test("a sign of life that is not answered holds up no other", async () => {
  const server = new Odd([], false);
  server.deaf = true;
  const begun = performance.now();
  work(await server.start(), Promise.resolve());
  await until(() => server.signs > 1);
  assert.ok(performance.now() - begun < 20_000);
});

test("a heartbeat that hangs holds up no other", async () => {
  const server = new Odd([], true);
  let finish = (): void => {};
  work(await server.start(), new Promise<void>((resolve) => (finish = resolve)));
  await until(() => server.prolonged > 1);
  finish();
  await until(() => server.results.length > 0);
});
