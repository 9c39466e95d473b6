import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { AttachedWorker, Client, FailedError, FatalError, RawJson, textOf, type AttachedWorkerOptions, type Handler, type Job, type Task } from "@troupe-engine/sdk";

import { all, Member, oddErrors, patience, refused, Relay, Told, until } from "./member.js";

let member: Member;
let client: Client;
let ends: (() => unknown)[] = [];
let service = ""; // each test has a flow and a service with this name
let tests = 0;

before(async () => {
  member = await Member.start("--resume-grace", "3s");
  client = new Client({ servers: member.url });
});
after(() => member.stop());
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  ends = [];
});

const silent = { info: () => {}, warn: () => {} };

/** Attaches a worker; the returned function stops it. */
function work(handler: Handler, options: AttachedWorkerOptions = {}): () => Promise<void> {
  const worker = new AttachedWorker({ servers: member.url, logger: silent, ...options }).handle(service, handler);
  const ended = worker.run({ signals: false });
  const stop = (): Promise<void> => {
    worker.stop();
    return ended;
  };
  ends.push(stop);
  return stop;
}

async function publish(more = ""): Promise<void> {
  service = `attached-${++tests}`;
  await client.publish(service, flow(more));
}

function flow(more = ""): string {
  const node = `exec_type: remote, service: ${service}, prep: {input_key: $params.it}, post: {output_key: out}${more}`;
  return `start: a\nnodes:\n  a: {${node}}\nresult: out\n`;
}

/** Starts a task when a worker is attached, because a job without any worker fails. */
async function start(it: unknown = null): Promise<string> {
  await until(async () => (await client.workers()).some((w) => w.services.includes(service)));
  return (await client.start(service, { params: { it } })).id;
}

function ended(id: string): Promise<Task> {
  return client.wait(id, { timeoutMs: patience });
}

/** Returns the bytes in use. */
function memory(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function result(id: string): Promise<unknown> {
  return (await ended(id)).result;
}

describe("an attached worker", () => {
  test("carries out jobs that tell where they come from", async () => {
    await publish(", params: {color: red}, labels: [gpu]");
    const told = new Told<Job>();
    work((job) => {
      told.put(job);
      return new RawJson(job.inputText);
    }, { labels: ["eu", "gpu"] });
    await ended(await start()); // so the worker is attached
    await told.take();
    const text = '{"z":12345678901234567890123}';
    const { id: task } = await client.start(service, { params: new RawJson(`{"it":${text}}`) });
    const first = await told.take();
    assert.match(first.trace, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.deepEqual([first.task, first.flow, first.service, first.step, first.unit, first.units, first.attempt], [task, service, service, "a", 0, 1, 1]);
    assert.deepEqual(first.labels, ["gpu"]);
    assert.equal(first.params.color, "red");
    assert.equal(textOf(await ended(task), "result"), text);
  });

  test("has no more jobs than it can carry out, and gets many", async () => {
    await publish(", kind: foreach, parallel_mode: concurrent");
    let [now, most] = [0, 0];
    work(async (job) => {
      most = Math.max(most, ++now);
      await pause(1);
      now--;
      return job.input * 2;
    }, { concurrency: 5 });
    const items = Array.from({ length: 200 }, (_, i) => i);
    assert.deepEqual(await result(await start(items)), items.map((i) => 2 * i));
    assert.ok(most <= 5, `${most} at once`);
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
    const worker = new AttachedWorker({ servers: member.url }).handle("mail", () => null);
    assert.throws(() => worker.handle("mail", () => null), /the service "mail" has a handler already/);
    assert.throws(() => worker.handle("post", "mail" as unknown as Handler), /the handler of the service "post" is no function/);
  });

  test("values of a stream are read while the handler goes on", async () => {
    await publish();
    let read = () => {};
    const wasRead = new Promise<void>((resolve) => (read = resolve));
    work(async (job) => {
      void job.stream("answer").write("one");
      await wasRead;
      await job.stream("answer").write("two");
      return "fine";
    });
    const task = await start(7);
    const values: string[] = [];
    for await (const { value } of client.stream(task, "answer", { follow: true })) if (values.push(value) === 1) read();
    assert.equal(await result(task), "fine");
    assert.deepEqual(values, ["one", "two"]);
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
  });

  test("tells errors, notes and what is logged", async () => {
    await publish(", retry: {max_attempts: 2}");
    work(async (job) => {
      if (job.attempt > 1) return "fine";
      job.log("trying", job.input);
      job.progress("half way");
      await until(async () => (await all(client.runs(job.task))).some((r) => r.status_text === "half way"));
      throw new Error("no luck");
    });
    const task = await start(7);
    assert.equal(await result(task), "fine");
    const failed = (await all(client.runs(task))).find((r) => r.error !== undefined);
    assert.equal(failed?.error, "no luck");
    await until(async () => /^trying 7\nError: no luck\n +at /.test(await client.log(failed?.job as string)));
  });

  test("outlasts errors that do not behave", async () => {
    await publish(", on_error: fail");
    work((job) => {
      throw oddErrors[job.input]?.[0];
    });
    for (const [name, [, told]] of Object.entries(oddErrors)) assert.ok(((await ended(await start(name))).error as string).includes(told), name);
  });

  test("is not asked again after a fatal error", async () => {
    await publish(", retry: {max_attempts: 6}, on_error: fail");
    let calls = 0;
    work(() => {
      calls++;
      throw new FatalError("never");
    });
    assert.match((await ended(await start())).error as string, /never/);
    assert.equal(calls, 1);
  });

  test("tells numbers of a job, whatever becomes of it", async () => {
    await publish(", retry: {max_attempts: 2}, on_error: fail");
    work((job) => {
      job.count("rows", 3, { table: "orders" });
      job.count("rows", 4, { table: "orders" });
      if (job.attempt === 1) throw new Error("no luck");
      return "fine";
    });
    const task = await start();
    assert.equal(await result(task), "fine");
    const attempts = (await all(client.runs(task))).filter((r) => r.kind === "attempt");
    const want = [{ name: "rows", labels: { table: "orders" }, count: 2, sum: 7, last: 4 }];
    assert.deepEqual(attempts.map((r) => r.metrics), [want, want]);
  });

  test("tells details of a failure", async () => {
    await publish(", on_error: fail");
    work(() => {
      throw new FailedError("no such customer", { details: { customer: 7 } });
    });
    const task = await start();
    assert.match((await ended(task)).error as string, /no such customer/);
    assert.deepEqual((await all(client.runs(task))).find((r) => r.error !== undefined)?.details, { customer: 7 });
  });

  test("hears that nobody waits any longer", async () => {
    await publish();
    const told = new Told<Job>();
    work(async (job) => {
      told.put(job);
      await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
    });
    const task = await start();
    const job = await told.take();
    await client.cancel(task);
    await until(() => job.signal.aborted);
    assert.equal((await ended(task)).state, "canceled");
  });

  test("goes on when its stream breaks, and no job runs twice", async () => {
    await publish(", kind: foreach, parallel_mode: concurrent");
    const relay = await Relay.start(member.port);
    ends.push(() => relay.close());
    const calls: number[] = [];
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => (finish = resolve));
    work(async (job) => {
      calls.push(job.input);
      if (job.input > 0) await gate;
      return job.input;
    }, { servers: relay.url });
    const task = await start([0, 1, 2]);
    await until(() => calls.length === 3);
    relay.cut();
    finish(); // so results arrive while there is no stream
    assert.deepEqual(await result(task), [0, 1, 2]);
    assert.equal(calls.length, 3);
    assert.ok(relay.connections >= 2);
  });

  test("goes on when its stream is silent", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    ends.push(() => relay.close());
    work((job) => job.input, { servers: [relay.url, member.url] });
    assert.equal(await result(await start(1)), 1);
    relay.hold();
    await until(async () => (await result(await start(2))) === 2);
  });

  test("stops what others have when it comes back too late", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    const told = new Told<Job>();
    let calls = 0;
    const handler: Handler = async (job) => {
      told.put(job);
      if (++calls === 1) await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
      return "by another";
    };
    work(handler, { servers: relay.url, id: "late" });
    const task = await start();
    const job = await told.take();
    relay.close();
    work(handler, { id: "other" });
    assert.equal(await result(task), "by another");
    const again = await Relay.start(member.port, { listen: relay.port });
    ends.push(() => again.close());
    await until(() => job.signal.aborted);
  });

  test("begins no more than it can carry out after a session that is over", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    const told = new Told<Job>();
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => (finish = resolve));
    let calls = 0;
    let atWork = 0;
    let most = 0;
    const handler: Handler = async (job) => {
      most = Math.max(most, ++atWork);
      told.put(job);
      if (++calls === 1) await gate; // it ignores the cancellation
      atWork--;
      return calls;
    };
    work(handler, { servers: relay.url, concurrency: 1 });
    const first = await start();
    const job = await told.take();
    relay.close();
    await client.cancel(first);
    await until(async () => !(await client.workers()).some((w) => w.services.includes(service)));
    const again = await Relay.start(member.port, { listen: relay.port });
    ends.push(() => again.close());
    await until(() => job.signal.aborted);
    const second = await start();
    await until(async () => (await client.task(second)).state === "running");
    finish();
    assert.equal(await result(second), 2);
    assert.equal(most, 1);
  });

  test("keeps nothing of canceled jobs that no place came free for", async () => {
    await publish();
    const relay = await Relay.start(member.port);
    const told = new Told<Job>();
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => (finish = resolve));
    work(async (job) => {
      told.put(job);
      await gate; // it ignores the cancellation
    }, { servers: relay.url, concurrency: 1 });
    await start();
    await told.take();
    relay.close();
    const other = await Member.start(); // it does not know the session
    ends.unshift(() => other.stop());
    const its = new Client({ servers: other.url });
    await its.publish(service, flow());
    const again = await Relay.start(other.port, { listen: relay.port });
    ends.push(() => again.close());
    await until(async () => (await its.workers()).length > 0);
    const waitAndCancel = async (): Promise<void> => {
      const { id: task } = await its.start(service, { params: { it: "x".repeat(500_000) } });
      await pause(100); // until the worker has it
      await its.cancel(task);
      await its.wait(task, { timeoutMs: patience });
    };
    await waitAndCancel();
    const before = memory();
    for (let i = 0; i < 20; i++) await waitAndCancel();
    await pause(1_000); // buffers are freed a little later
    memory();
    const more = memory() - before;
    finish();
    assert.ok(more < 10_000_000, `${more} bytes`);
  });

  /**
   * Returns the warnings of an attached worker when that many streams break right after the
   * welcome.
   */
  async function breaking(streams: number, lagMs: number): Promise<unknown[][]> {
    await publish();
    const relay = await Relay.start(member.port);
    ends.push(() => relay.close());
    relay.lagMs = lagMs;
    let attached = 0;
    const warned: unknown[][] = [];
    const info = (what: unknown): void => {
      if (String(what).startsWith("attached") && ++attached <= streams) relay.cut();
    };
    work(() => null, { servers: relay.url, logger: { info, warn: (...what) => void warned.push(what) } });
    await until(() => attached === streams + 1);
    return warned;
  }

  test("tells streams that break at once only once", async () => {
    const warned = await breaking(6, 0);
    assert.equal(warned.length, 1, String(warned));
  });

  test("tells streams that break at once only once, however slow the line is", async () => {
    const warned = await breaking(2, 1_100); // the time until the welcome does not count as duration of the stream
    assert.equal(warned.length, 1, String(warned));
  });

  test("finishes what it has when it is to stop", async () => {
    await publish();
    const told = new Told<Job>();
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => (finish = resolve));
    const stop = work(async (job) => {
      told.put(job);
      await gate;
      return "done";
    });
    const task = await start();
    await told.take();
    const stopped = stop();
    finish();
    await stopped;
    assert.equal((await client.task(task)).state, "completed");
  });

  test("gives back what it does not finish", async () => {
    await publish();
    const told = new Told<Job>();
    const stop = work(async (job) => {
      told.put(job);
      await new Promise<void>(() => {});
    }, { graceMs: 50 });
    const task = await start();
    await told.take();
    work(() => "by another");
    await until(async () => (await client.workers()).filter((w) => w.services.includes(service)).length === 2);
    await stop();
    assert.equal(await result(task), "by another");
  });

  test("works on for longer than a timer can wait", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const worker = new AttachedWorker({ servers: await refused(), logger: silent }).handle("s", () => null);
    let over = false;
    const ended = worker.run({ signals: false }).then(() => (over = true));
    for (let i = 0; i < 3; i++) {
      t.mock.timers.tick(2 ** 31);
      for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate);
    }
    assert.equal(over, false);
    t.mock.timers.reset();
    worker.stop();
    await ended;
  });

  test("looks for another member", async () => {
    await publish();
    work((job) => job.input, { servers: [await refused(), member.url] });
    assert.equal(await result(await start(5)), 5);
  });
});
