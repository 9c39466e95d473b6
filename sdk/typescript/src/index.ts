/**
 * Workers and a client for Troupe, the durable workflow engine.
 *
 * @example
 * const worker = new Worker({ servers: "http://127.0.0.1:8070" });
 * worker.handle<{ width: number }>("resize", (job) => ({ width: job.input.width / 2 }));
 * await worker.run();
 *
 * @module
 */

export { AttachedWorker, type AttachedWorkerOptions } from "./attach.js";
export * from "./client.js";
export * from "./errors.js";
export type { Job } from "./job.js";
export { textOf } from "./raw.js";
export type { StreamWriter } from "./streams.js";
export type { Servers } from "./transport.js";
export type * from "./types.js";
export * from "./worker.js";
export { RawJson } from "./write.js";
