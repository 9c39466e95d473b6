/**
 * A worker that attaches, for nodes with `exec_type: remote`.
 *
 *     troupe dev &
 *     npm run build && npx tsc -p test
 *     TROUPE_SERVER=http://127.0.0.1:8070 node build/examples/attached.js
 */

import { AttachedWorker } from "@troupe-engine/sdk";

const worker = new AttachedWorker({ concurrency: 8 });

worker.handle<string>("shout", (job) => {
  job.progress("shouting");
  return job.input.toUpperCase();
});

await worker.run(); // until SIGTERM or Ctrl-C
