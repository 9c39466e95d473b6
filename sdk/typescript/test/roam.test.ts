import assert from "node:assert/strict";
import { afterEach, before, beforeEach, describe, test } from "node:test";

import { AttachedWorker, Client } from "@troupe-engine/sdk";

import { all, Member, patience, Relay, until } from "./member.js";

const store = process.env["TROUPE_TEST_STORE"];
const flow = `start: a
nodes:
  a: {kind: foreach, parallel_mode: concurrent, exec_type: remote, service: roams, prep: {input_key: $params.it}, post: {output_key: out}}
result: out
`;

let one: Member; // the worker uses it first
let two: Member;
let client: Client;
let relay: Relay; // between the worker and the first member

before(() => assert.ok(store, "TROUPE_TEST_STORE names no PostgreSQL database: run the tests by 'go test ./sdk', or set it"));
beforeEach(async () => {
  [one, two] = await Promise.all(["one", "two"].map((name) => Member.startOn(store, "--name", name, "--resume-grace", "20s"))) as [Member, Member];
  client = new Client({ servers: [two.url, one.url] });
  relay = await Relay.start(one.port);
});
afterEach(async () => {
  relay.close();
  await Promise.all([one.stop(), two.stop()]);
});

/** A worker with handlers that wait until they are released. */
class Roamer {
  readonly calls: number[] = [];
  readonly said: string[] = [];
  finish = (): void => {};
  readonly #worker: AttachedWorker;
  readonly #ended: Promise<void>;

  constructor() {
    const gate = new Promise<void>((resolve) => (this.finish = resolve));
    const note = (...text: unknown[]): void => void this.said.push(text.join(" "));
    this.#worker = new AttachedWorker({ servers: [relay.url, two.url], id: "roamer", logger: { info: note, warn: note } }).handle("roams", async (job) => {
      this.calls.push(job.input);
      await gate;
      return job.input;
    });
    this.#ended = this.#worker.run({ signals: false });
  }

  stop(): Promise<void> {
    this.finish();
    this.#worker.stop();
    return this.#ended;
  }
}

describe("an attached worker goes to another member with its jobs, and none runs twice", () => {
  const ways: Record<string, () => unknown> = {
    "when the stream breaks": () => relay.close(),
    "when the stream is silent": () => relay.hold(),
    "when its member is killed": () => one.end("SIGKILL"),
    "when its member leaves": () => one.end("SIGTERM"),
  };
  for (const [when, end] of Object.entries(ways)) {
    test(when, async () => {
      await client.publish("roams", flow);
      const worker = new Roamer();
      try {
        await until(async () => (await client.workers()).some((w) => w.id === "roamer"));
        const task = (await client.start("roams", { params: { it: [0, 1, 2] } })).id;
        await until(() => worker.calls.length === 3);
        const ended = end();
        await until(() => worker.said.some((line) => line.startsWith(`attached to ${two.url}`) && line.endsWith("the session goes on")));
        worker.finish();
        assert.deepEqual((await client.wait(task, { timeoutMs: patience })).result, [0, 1, 2]);
        await ended;
        assert.deepEqual([...worker.calls].sort(), [0, 1, 2]);
        assert.equal((await all(client.runs(task))).filter((run) => run.kind === "attempt").length, 3);
      } finally {
        await worker.stop();
      }
    });
  }
});
