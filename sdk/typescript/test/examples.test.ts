import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Client } from "@troupe-engine/sdk";

import { Member, until } from "./member.js";

const example = (name: string): string => fileURLToPath(new URL(`../examples/${name}.js`, import.meta.url));

test("the examples, as their readers run them", async () => {
  const member = await Member.start();
  const env = { ...process.env, TROUPE_SERVER: member.url };
  const worker = spawn(process.execPath, [example("worker")], { env, stdio: "ignore" });
  try {
    const client = async (...size: string[]): Promise<string> => (await promisify(execFile)(process.execPath, [example("client"), ...size], { env })).stdout;
    assert.equal(await client("800", "600"), "resize completed\ndescribe completed\ncompleted: 200 by 150 pixels\n");
    assert.match(await client("0", "600"), /failed: .*at least one pixel/);
  } finally {
    worker.kill("SIGTERM");
    assert.deepEqual(await once(worker, "exit"), [0, null]);
    await member.stop();
  }
});

test("the example of a worker that attaches", async () => {
  const member = await Member.start();
  const worker = spawn(process.execPath, [example("attached")], { env: { ...process.env, TROUPE_SERVER: member.url }, stdio: "ignore" });
  try {
    const client = new Client({ servers: member.url });
    await client.publish("shouts", "start: a\nnodes:\n  a: {exec_type: remote, service: shout, prep: {input_key: $params.text}, post: {output_key: out}}\nresult: out\n");
    await until(async () => (await client.workers()).some((w) => w.type === "attached"));
    const { id } = await client.start("shouts", { params: { text: "hello" } });
    assert.equal((await client.wait(id)).result, "HELLO");
  } finally {
    worker.kill("SIGTERM");
    assert.deepEqual(await once(worker, "exit"), [0, null]);
    await member.stop();
  }
});
