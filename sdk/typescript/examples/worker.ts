/**
 * A worker for the services "resize", "describe" and "pay".
 *
 *     troupe dev &
 *     npm run build && npx tsc -p test
 *     TROUPE_SERVER=http://127.0.0.1:8070 node build/examples/worker.js
 */

import { setTimeout } from "node:timers/promises";

import { FatalError, Worker } from "@troupe-engine/sdk";

const longest = 200; // pixels

interface Size {
  width: number;
  height: number;
}

const worker = new Worker();

worker.handle<Size>("resize", (job) => {
  const { width, height } = job.input;
  if (width <= 0 || height <= 0) throw new FatalError("an image has at least one pixel"); // retries would not help
  const scale = longest / Math.max(width, height);
  job.log("scaled by", scale);
  return { width: Math.floor(width * scale), height: Math.floor(height * scale) };
});

worker.handle<Size>("describe", async (job) => {
  job.progress("looking for words");
  await setTimeout(10, undefined, { signal: job.signal }); // ends when the job is no longer needed
  return `${job.input.width} by ${job.input.height} pixels`;
});

// Requests a payment from a bank. The bank recognizes a repetition by the key, which is the same
// for all attempts; job.id is not.
worker.handle<{ amount: number }>("pay", (job) => ({ charged: job.input.amount, idempotencyKey: job.key }));

await worker.run(); // until SIGTERM or Ctrl-C
