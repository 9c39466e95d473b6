import assert from "node:assert/strict";
import { test } from "node:test";

import { AttachedWorker, DeniedError, Worker } from "@troupe-engine/sdk";

import { Member } from "./member.js";

test("a worker without a right token ends", async () => {
  const member = await Member.start("--token", "open sesame");
  const logger = { info: () => {}, warn: () => {} };
  try {
    const headers = { "Content-Type": "application/json", Authorization: "Bearer open sesame" };
    const made = await fetch(`${member.url}/v1/tokens`, { method: "POST", headers, body: '{"name": "v", "role": "viewer"}' });
    const { secret } = (await made.json()) as { secret: string };
    for (const [token, want] of [["", /a bearer token is needed/], ["open says me", /the bearer token is wrong/], [secret, /needs the role worker/]] as const) {
      for (const worker of [new Worker({ servers: member.url, token, logger }), new AttachedWorker({ servers: member.url, token, logger })]) {
        worker.handle("s", () => null);
        await assert.rejects(worker.run({ signals: false }), (e) => e instanceof DeniedError && want.test(e.message));
      }
    }
  } finally {
    await member.stop();
  }
});
