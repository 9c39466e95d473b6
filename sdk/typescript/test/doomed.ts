/** A worker in a process of its own: the tests kill it, or ask it to end. */

import { createInterface } from "node:readline";

import { Worker } from "@troupe-engine/sdk";

const [server, service, id] = process.argv.slice(2) as [string, string, string];
const lines = createInterface(process.stdin);
const worker = new Worker({ servers: server, id, heartbeatMs: 200 });
worker.handle(service, async (job) => {
  console.log(job.id);
  await new Promise((resolve) => lines.once("line", resolve));
  return "finished";
});
await worker.run();
console.log("drained");
lines.close();
