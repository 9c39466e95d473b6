/** Workers against something that is no member, or none at times: a proxy, say, or another program at its address. */

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
const job = { id: "j", token: "t", task: "k", service: "s", input: 20, lease_ms: 300 };
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
});

/** Answers each kind of request in odd ways before it does as a member would. The first heartbeat of a claim may never be answered. */
class Odd {
  readonly asked = new Map<string, number>();
  readonly results: unknown[] = [];
  prolonged = 0;
  #given = false;
  readonly #server = createServer((request, response) => {
    let text = "";
    request.on("data", (part: Buffer) => (text += part.toString()));
    request.on("end", () => this.#answer(request.method ?? "", request.url ?? "", text, response));
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

  #answer(method: string, path: string, text: string, response: ServerResponse): void {
    const kind = method === "POST" ? path.slice(path.lastIndexOf("/") + 1) : method;
    const body = text === "" ? {} : JSON.parse(text);
    if (kind === "heartbeat" && body.claims !== undefined && ++this.prolonged === 1 && this.hangs) return;
    const n = this.asked.get(kind) ?? 0;
    this.asked.set(kind, n + 1);
    response.end(JSON.stringify(n < this.ways.length ? this.ways[n] : this.#proper(kind, body)));
  }

  #proper(kind: string, body: { reports?: { output: unknown }[] }): unknown {
    if (kind === "poll") {
      const jobs = this.#given ? [] : [job];
      this.#given = true;
      return { jobs };
    }
    for (const report of body.reports ?? []) this.results.push(report.output);
    return { registered: true, canceled: [], items: (body.reports ?? []).map(() => ({})) };
  }
}

/** Has a worker double the input of the job, once it may. */
function work(server: string, done: Promise<void>): void {
  const worker = new Worker({ servers: server, id: "w", heartbeatMs: 20, waitMs: 0, logger: { info: () => {}, warn: () => {} } });
  worker.handle<number>("s", async (j) => {
    await done;
    return j.input * 2;
  });
  const ended = worker.run({ signals: false });
  ends.push(() => ended, () => worker.stop());
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

test("a heartbeat that hangs holds up no other", async () => {
  const server = new Odd([], true);
  let finish = (): void => {};
  work(await server.start(), new Promise<void>((resolve) => (finish = resolve)));
  await until(() => server.prolonged > 1);
  finish();
  await until(() => server.results.length > 0);
});
