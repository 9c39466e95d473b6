import assert from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { Client, FailedError, FatalError, JobCanceledError, RawJson, textOf, Worker, type Handler, type Job, type Servers, type Task, type WorkerOptions } from "@troupe-engine/sdk";
import type { StreamValue } from "@troupe-engine/sdk";

import { all, Member, oddErrors, patience, refused, Relay, Told, until } from "./member.js";

let member: Member;
let client: Client;
let running: Running[] = [];
let service = ""; // each test has a flow and a service with this name
let tests = 0;

before(async () => {
  member = await Member.start();
  client = new Client({ servers: member.url });
});
after(() => member.stop());
afterEach(async () => {
  for (const worker of running) await worker.stop();
  running = [];
});

const silent = { info: () => {}, warn: () => {} };

/** A running worker. */
class Running {
  readonly ended: Promise<void>;
  constructor(readonly worker: Worker) {
    this.ended = worker.run({ signals: false });
    running.push(this);
  }
  stop(): Promise<void> {
    this.worker.stop();
    return this.ended;
  }
}

function work(handler: Handler, options: WorkerOptions = {}): Running {
  const servers: Servers = options.servers ?? member.url;
  return new Running(new Worker({ heartbeatMs: 200, logger: silent, ...options, servers }).handle(service, handler));
}

/** Publishes a flow with one step of the service. */
async function publish(more = ""): Promise<void> {
  service = `service-${++tests}`;
  const node = `exec_type: queue, service: ${service}, prep: {input_key: $params.it}, post: {output_key: out}${more}`;
  await client.publish(service, `start: a\nnodes:\n  a: {${node}}\nresult: out\n`);
}

async function start(it: unknown = null): Promise<string> {
  return (await client.start(service, { params: { it } })).id;
}

function ended(id: string): Promise<Task> {
  return client.wait(id, { timeoutMs: patience });
}

async function result(id: string): Promise<unknown> {
  return (await ended(id)).result;
}

describe("jobs", () => {
  test("a flow of queue nodes is carried out", async () => {
    await client.publish("words", `
start: split
nodes:
  split: {exec_type: queue, service: split, prep: {input_key: $params.text}, post: {output_key: words}}
  measure: {kind: foreach, exec_type: queue, service: measure, parallel_mode: concurrent, prep: {input_key: words}, post: {output_key: sizes}}
  add: {exec_type: queue, service: add, prep: {input_key: sizes}, post: {output_key: total}}
edges:
  - {from: split, action: default, to: measure}
  - {from: measure, action: default, to: add}
result: total
`);
    const worker = new Worker({ servers: member.url });
    worker.handle<string>("split", (job) => job.input.split(" "));
    worker.handle<string>("measure", async (job) => job.input.length);
    worker.handle<number[]>("add", (job) => job.input.reduce((a, b) => a + b));
    new Running(worker);
    const words = Array.from({ length: 100 }, (_, i) => "word".repeat(i + 1));
    const started = await Promise.all([1, 2, 3].map(() => client.start("words", { params: { text: words.join(" ") } })));
    for (const { id } of started) assert.equal(await result(id), words.join("").length);
  });

  test("a job tells where it comes from", async () => {
    await publish(", params: {color: red}");
    const told = new Told<Job>();
    work((job) => told.put(job));
    const task = await start({ z: 1 });
    const job = await told.take();
    assert.match(job.trace, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.deepEqual([job.task, job.flow, job.service, job.step, job.unit, job.units, job.attempt, job.deliveries], [task, service, service, "a", 0, 1, 1, 0]);
    assert.deepEqual(job.input, { z: 1 });
    assert.equal(job.params.color, "red");
    await ended(task);
  });

  test("values can be read and returned as they are written", async () => {
    await publish();
    const text = '{"z":12345678901234567890123,"2":1.10,"1":[null]}';
    const told = new Told<Job>();
    work((job) => {
      told.put(job);
      return new RawJson(job.inputText);
    });
    const { id } = await client.start(service, { params: new RawJson(`{"it":${text}}`) });
    const job = await told.take();
    assert.equal(job.inputText, text);
    assert.equal(JSON.parse(job.paramsText).it["2"], 1.1);
    assert.equal(textOf(await ended(id), "result"), text);
  });

  test("three attempts have one key and three ids", async () => {
    await publish(", timeout_ms: 60000, retry: {max_attempts: 3}, on_error: fail");
    const jobs: Job[] = [];
    work(async (job) => {
      jobs.push(job);
      throw new Error("no luck");
    });
    const task = await start();
    assert.match((await ended(task)).error ?? "", /no luck/);
    assert.deepEqual(jobs.map((job) => job.attempt), [1, 2, 3]);
    assert.deepEqual([new Set(jobs.map((job) => job.key)).size, new Set(jobs.map((job) => job.id)).size], [1, 3]);
    assert.ok(jobs[0]?.key.startsWith(`${task}.`));
  });

  test("a second handler and what is no handler are refused", () => {
    const worker = new Worker({ servers: member.url }).handle("mail", () => null);
    assert.throws(() => worker.handle("mail", () => null), /the service "mail" has a handler already/);
    assert.throws(() => worker.handle("post", "mail" as unknown as Handler), /the handler of the service "post" is no function/);
  });

  test("values of a stream are read while the handler goes on", async () => {
    await publish(", retry: {max_attempts: 2}");
    let read = () => {};
    const wasRead = new Promise<void>((resolve) => (read = resolve));
    work(async (job) => {
      const answer = job.stream("answer");
      for (const token of ["it", { is: "é" }, null]) void answer.write(token);
      if (job.attempt === 1) {
        await wasRead;
        throw new Error("cut off");
      }
      await answer.close();
      return "fine";
    });
    const task = await start(7);
    const values: StreamValue[] = [];
    for await (const value of client.stream(task, "answer", { follow: true })) if (values.push(value) === 3) read();
    assert.equal(await result(task), "fine");
    assert.deepEqual(values.map((v) => v.value), ["it", { is: "é" }, null, "it", { is: "é" }, null]);
    assert.deepEqual(values.map((v) => [v.offset, v.step, v.attempt]), values.map((_, n) => [n, "a", n < 3 ? 1 : 2]));
    for (const follow of [false, true]) assert.deepEqual(await all(client.stream(task, "answer", { from: 4, follow })), values.slice(4));
    assert.deepEqual((await client.streams(task)).map((s) => [s.name, s.length, s.ended]), [["answer", 6, true]]);
  });

  test("all values of a stream are stored before a job ends", async () => {
    await publish("");
    work((job) => {
      for (let n = 0; n < 1000; n++) void job.stream("rows").write({ n });
      assert.throws(() => job.stream("a/b"));
      assert.throws(() => job.stream("a").write(() => {}));
      assert.throws(() => job.stream("a").write("x".repeat(256 << 10)));
      return 1000;
    });
    const task = await start(7);
    assert.equal(await result(task), 1000);
    assert.deepEqual((await all(client.stream(task, "rows"))).map((v) => v.value.n), Array.from({ length: 1000 }, (_, n) => n));
  });

  test("what a handler logs is read while it goes on", async () => {
    await publish("");
    let leave = () => {};
    let id = "";
    work(async (job) => {
      job.log("half", "way");
      id = job.id;
      await new Promise<void>((resolve) => (leave = resolve));
      job.log("done");
      return "fine";
    });
    const task = await start(7);
    const logged = () => client.log(id).catch(() => "");
    await until(async () => (await logged()) === "half way\n");
    leave();
    assert.equal(await result(task), "fine");
    await until(async () => (await logged()) === "half way\ndone\n");
    for (const follow of [false, true]) {
      assert.deepEqual((await all(client.logs(task, { unit: 0, attempt: 1, follow }))).map((l) => l.text), ["half way", "done"]);
    }
    assert.deepEqual(await all(client.logs(task, { stream: "stdout" })), []);
  });

  test("a handler that throws fails the attempt with its message", async () => {
    await publish(", retry: {max_attempts: 2}");
    work(async (job) => {
      if (job.attempt > 1) return "fine";
      job.log("trying", job.input);
      throw new Error("no luck");
    });
    const task = await start(7);
    assert.equal(await result(task), "fine");
    const failed = (await all(client.runs(task))).find((r) => r.error !== undefined);
    assert.deepEqual([failed?.state, failed?.error], ["error", "no luck"]);
    assert.match(await client.log(failed?.job as string), /^trying 7\nError: no luck\n +at /);
  });

  test("what has no message is named", async () => {
    await publish(", on_error: fail");
    const errors: Record<string, unknown> = { nothing: new RangeError(), text: "a text", undefined: undefined };
    work((job) => {
      throw errors[job.input];
    });
    for (const [name, text] of [["nothing", /RangeError/], ["text", /a text/], ["undefined", /undefined/]] as const) {
      assert.match((await ended(await start(name))).error as string, text);
    }
  });

  test("an error that does not behave fails the attempt and nothing else", async () => {
    await publish(", on_error: fail");
    work((job) => {
      throw oddErrors[job.input]?.[0];
    });
    for (const [name, [, told]] of Object.entries(oddErrors)) assert.ok(((await ended(await start(name))).error as string).includes(told), name);
  });

  test("a fatal error is not retried", async () => {
    await publish(", retry: {max_attempts: 6}, on_error: fail");
    const attempts: number[] = [];
    work((job) => {
      attempts.push(job.attempt);
      throw new FatalError("never");
    });
    const { state, error } = await ended(await start());
    assert.equal(state, "failed");
    assert.match(error as string, /never/);
    assert.deepEqual(attempts, [1]);
  });

  test("numbers that a job tells are kept with its attempt, whatever becomes of it", async () => {
    await publish(", retry: {max_attempts: 2}, on_error: fail");
    work((job) => {
      for (const rows of [3, 4.5, NaN]) job.count("rows", rows, { table: "orders" });
      job.count("files");
      job.count("");
      if (job.attempt === 1) throw new Error("no luck");
    });
    const task = await start();
    assert.equal((await ended(task)).state, "completed");
    const attempts = (await all(client.runs(task))).filter((r) => r.kind === "attempt");
    const want = [{ name: "rows", labels: { table: "orders" }, count: 2, sum: 7.5, last: 4.5 }, { name: "files", count: 1, sum: 1, last: 1 }];
    assert.deepEqual(attempts.map((r) => r.metrics), [want, want]);
  });

  test("what is more numbers than a member takes is left out", async () => {
    await publish();
    work((job) => {
      for (let i = 0; i < 150; i++) job.count(`n${i}`);
      job.count("n0", 1e308);
      job.count("n0", 1e308);
    });
    const task = await start();
    await ended(task);
    const numbers = (await all(client.runs(task))).find((r) => r.kind === "attempt")?.metrics;
    assert.equal(numbers?.length, 100);
    assert.deepEqual(numbers?.[0], { name: "n0", count: 2, sum: 1e308, last: 1e308 });
  });

  test("details of a failure are kept with its attempt", async () => {
    await publish(", retry: {max_attempts: 2}, on_error: fail");
    const details = { customer: 7, tried: ["a", "é"] };
    work((job) => {
      throw job.attempt === 1 ? new FailedError("no such customer", { details }) : new FatalError("never", { details: NaN });
    });
    const task = await start();
    assert.match((await ended(task)).error as string, /never/);
    const attempts = (await all(client.runs(task))).filter((r) => r.kind === "attempt");
    assert.deepEqual(attempts.map((r) => r.error), ["no such customer", "never"]);
    assert.deepEqual(attempts.map((r) => r.details), [details, "NaN"], "what is no JSON is told as a text");
  });

  test("details that are too large leave the error", async () => {
    await publish(", on_error: fail");
    work(() => {
      throw new FailedError("no such customer", { details: "x".repeat(4 << 20) });
    });
    assert.match((await ended(await start())).error as string, /no such customer \(its details have 4194306 bytes, more than the 65536 that are kept\)/);
  });

  test("a result that is no JSON fails for good", async () => {
    await publish(", retry: {max_attempts: 6}, on_error: fail");
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const results: Record<string, [result: unknown, error: RegExp]> = {
      circle: [circle, /cannot be sent: output\.self contains itself/],
      number: [{ rows: [1, NaN] }, /cannot be sent: output\.rows\[1\] is NaN, which JSON does not have/],
      promise: [{ later: Promise.resolve(1) }, /output\.later is a Promise, which JSON does not have: await it/],
    };
    let attempts = 0;
    work((job) => (attempts++, results[job.input]?.[0]));
    for (const [name, [, error]] of Object.entries(results)) assert.match((await ended(await start(name))).error as string, error);
    assert.equal(attempts, 3);
  });

  test("a result that is refused fails for good and keeps no other", async () => {
    await publish(", retry: {max_attempts: 6}, on_error: fail");
    work((job) => "x".repeat(job.input));
    const tasks: string[] = [];
    for (const size of [3 << 20, 1, 9 << 20, 2]) tasks.push(await start(size));
    const [large, one, huge, two] = await Promise.all(tasks.map(ended));
    assert.deepEqual([one?.result, two?.result], ["x", "xx"]);
    for (const task of [large, huge]) {
      assert.equal(task?.state, "failed");
      assert.equal((await all(client.runs(task?.id as string))).filter((r) => r.kind === "attempt").length, 1);
    }
  });

  test("large params are fetched", async () => {
    await publish();
    work((job) => [job.params.it.length, job.paramsText.length > 100_000]);
    for (const task of await Promise.all([1, 2, 3].map(() => start("x".repeat(100_000))))) assert.deepEqual(await result(task), [100_000, true]);
  });

  test("notes are told to whoever watches", async () => {
    await publish();
    const noted = new Told<void>();
    work(
      async (job) => {
        job.progress(`rendering\0 ${"ü".repeat(500)}`);
        await noted.take();
        job.progress("almost done");
        await once(job.signal, "abort");
      },
      { runningAfterMs: patience },
    );
    const task = await start();
    const notes: string[] = [];
    for await (const event of client.watch(task)) {
      if (event.type !== "attempt_status_changed") continue;
      notes.push(event.status_text as string);
      noted.put();
      if (notes.length === 2) await client.cancel(task);
    }
    assert.match(notes[0] as string, /^rendering\ufffd üüü/);
    assert.ok(Buffer.byteLength(notes[0] as string) <= 256);
    assert.equal(notes[1], "almost done");
  });

  test("labels decide who gets a job", async () => {
    await publish(", labels: [gpu]");
    work(() => "plain");
    work((job) => job.labels, { labels: ["gpu", "eu"] });
    assert.deepEqual(await result(await start()), ["gpu"]);
  });

  test("no more than concurrency jobs are at work", async () => {
    await publish();
    const tasks = await Promise.all(Array.from({ length: 20 }, () => start()));
    let [now, most] = [0, 0];
    work(
      async () => {
        most = Math.max(most, ++now);
        await pause(50);
        now--;
      },
      { concurrency: 2, prefetch: 3 },
    );
    for (const task of tasks) assert.equal((await ended(task)).state, "completed");
    assert.equal(most, 2);
  });
});

describe("claims", () => {
  test("a long job keeps its claim", async () => {
    await publish(", visibility_ms: 4000");
    let begun = 0;
    const handler: Handler = async (job) => {
      begun++;
      await pause(9_000, undefined, { signal: job.signal });
      return "done";
    };
    work(handler);
    work(handler);
    assert.equal(await result(await start()), "done");
    assert.equal(begun, 1);
  });

  test("a canceled job reaches its handler", async () => {
    await publish();
    const begun = new Told<void>();
    const heard = new Told<unknown>();
    work(async (job) => {
      begun.put();
      await once(job.signal, "abort");
      heard.put(job.signal.reason);
      throw job.signal.reason;
    });
    const task = await start();
    await begun.take();
    await client.cancel(task);
    assert.ok((await heard.take()) instanceof JobCanceledError);
    assert.equal((await client.task(task)).state, "canceled");
  });

  test("a worker that is killed loses its job to another", async () => {
    await publish(", visibility_ms: 3000");
    const { process: doomed, lines } = other("doomed");
    const task = await start();
    const { value: id } = await lines.next();
    doomed.kill("SIGKILL");
    await once(doomed, "exit");
    const told = new Told<Job>();
    work((job) => told.put(job));
    const job = await told.take();
    assert.deepEqual([job.id, job.deliveries], [id, 1]);
    assert.equal((await ended(task)).state, "completed");
  });
});

interface Other {
  process: ChildProcessByStdio<Writable, Readable, null>;
  lines: AsyncIterator<string>;
}

/** A worker in a process of its own. */
function other(id: string): Other {
  const program = fileURLToPath(new URL("doomed.js", import.meta.url));
  const child = spawn(process.execPath, [program, member.url, service, id], { stdio: ["pipe", "pipe", "inherit"] });
  return { process: child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
}

describe("the end", () => {
  test("what has not begun is given back, and what has may finish", async () => {
    await publish();
    const tasks = await Promise.all([1, 2, 3].map(start));
    const begun = new Told<Job>();
    const leave = new Told<void>();
    const first = work(
      async (job) => {
        begun.put(job);
        await leave.take();
        return "first";
      },
      { concurrency: 1, prefetch: 2 },
    );
    const job = await begun.take();
    await until(async () => (await all(client.jobs([service]))).every((j) => j.state === "claimed"));
    first.worker.stop();
    work(() => "second"); // gets them at once, not when the claims expire after a minute
    const others = tasks.filter((task) => task !== job.task);
    assert.deepEqual(await Promise.all(others.map(result)), ["second", "second"]);
    leave.put();
    assert.equal(await result(job.task), "first");
    await first.ended;
    assert.equal(begun.size, 0);
    assert.ok((await client.workers()).every((w) => w.id !== first.worker.id));
  });

  test("jobs that do not finish in time are given back", async () => {
    await publish();
    const begun = new Told<void>();
    const first = work(
      async (job) => {
        begun.put();
        await once(job.signal, "abort");
      },
      { graceMs: 50 },
    );
    const task = await start();
    await begun.take();
    await first.stop();
    work((job) => job.attempt);
    assert.equal(await result(task), 1); // it is not a failed attempt
  });

  test("SIGTERM drains", async () => {
    await publish();
    const { process: termed, lines } = other("termed");
    const task = await start();
    await lines.next(); // it has begun
    termed.kill("SIGTERM");
    await until(async () => (await client.workers()).every((w) => w.id !== "termed"));
    termed.stdin.write("go on\n");
    assert.deepEqual(await lines.next(), { value: "drained", done: false });
    assert.deepEqual(await once(termed, "exit"), [0, null]);
    assert.equal(await result(task), "finished");
  });

  test("a worker ends in time although no member answers", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    const begun = new Told<void>();
    const lonely = work((job) => (begun.put(), once(job.signal, "abort")), { servers: relay.url, graceMs: 0 });
    await start();
    await begun.take();
    relay.hold();
    await until(() => relay.held > 1); // a heartbeat of the worker and one of the job are in flight
    const stopped = performance.now();
    await lonely.stop();
    assert.ok(performance.now() - stopped < 15_000);
    relay.close();
  });

  test("a worker that waits for jobs ends at once", async () => {
    await publish();
    const idle = work(() => null, { waitMs: 60_000, graceMs: 0 });
    await until(async () => (await client.workers()).some((w) => w.id === idle.worker.id));
    await idle.stop();
  });

  test("a signal ends it, too", async () => {
    await publish();
    await new Worker({ servers: member.url }).handle(service, () => null).run({ signal: AbortSignal.abort() });
  });
});

describe("addresses of a worker", () => {
  test("the second one is used when the first refuses", async () => {
    await publish();
    work((job) => job.input + 1, { servers: [await refused(), member.url] });
    assert.equal(await result(await start(1)), 2);
  });

  test("one that stops answering is left, and nothing is lost", async () => {
    await publish();
    const [first, second] = [await Relay.start(member.port), await Relay.start(member.port)];
    const begun = new Told<string>();
    const leave = new Promise<void>((resolve) => void until(() => begun.size === 10).then(() => (first.close(), resolve())));
    work(
      async (job) => {
        begun.put(job.id);
        await leave;
        return job.input;
      },
      { servers: [first.url, second.url] },
    );
    const numbers = Array.from({ length: 10 }, (_, i) => i);
    const tasks = await Promise.all(numbers.map(start));
    assert.deepEqual(await Promise.all(tasks.map(result)), numbers);
    assert.equal(begun.size, 10);
    await running[0]?.stop();
    second.close();
  });

  test("a worker outlasts the absence of all members", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    const outlasting = work((job) => job.input, { servers: relay.url });
    assert.equal(await result(await start(1)), 1);
    relay.close();
    const task = await start(2);
    const back = await Relay.start(member.port, { listen: relay.port });
    assert.equal(await result(task), 2);
    await outlasting.stop();
    back.close();
  });

  test("a worker without handlers is refused", async () => {
    await assert.rejects(new Worker({ servers: member.url }).run(), TypeError);
    assert.throws(() => new Worker({ servers: member.url }).handle("", () => null), TypeError);
  });
});
