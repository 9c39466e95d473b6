import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Member } from "./member.js";

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
