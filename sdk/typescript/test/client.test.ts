import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import {
  Client, ConflictError, DeniedError, InvalidError, NotFoundError, ProblemError, RawJson, textOf, TimeoutError, TroupeError,
  UnreachableError, type Event,
} from "@troupe-engine/sdk";

import { all, Member, patience, refused, Relay, until } from "./member.js";

const eventFlow = `
start: ask
nodes:
  ask: {kind: wait_event, params: {signal_key: answer}, post: {output_key: said}}
`;

const twoFlow = `${eventFlow}
  more: {kind: timer, params: {delay_ms: 1}}
edges:
  - {from: ask, action: default, to: more}
`;

const afterFlow = `
start: begin
nodes:
  begin: {kind: timer, params: {delay_ms: 1}}
  ask: {kind: wait_event, params: {signal_key: answer}}
edges:
  - {from: begin, action: default, to: ask}
`;

// Some steps, so that there are many events.
const loopFlow = `
start: n0
nodes:
${Array.from({ length: 12 }, (_, i) => `  n${i}: {kind: timer, params: {delay_ms: 1}}\n`).join("")}edges:
${Array.from({ length: 11 }, (_, i) => `  - {from: n${i}, action: default, to: n${i + 1}}\n`).join("")}`;

let member: Member;
let client: Client;

before(async () => {
  member = await Member.start();
  client = new Client({ servers: member.url });
});
after(() => member.stop());

describe("a client", () => {
  test("publishes, reads and lists flows", async () => {
    assert.equal((await client.publish("published", eventFlow)).created, true);
    assert.equal((await client.publish("published", eventFlow)).created, false);
    assert.equal((await client.flow("published")).slug, "published");
    assert.ok((await all(client.flows())).some((f) => f.slug === "published"));
    assert.deepEqual((await all(client.versions("published"))).map((v) => v.number), [1]);
    const { definition } = await client.version("published");
    assert.equal(definition?.["start"], "ask");
    assert.equal((await client.publish("published", definition as object)).created, false);
  });

  test("starts one task with a key", async () => {
    await client.publish("keyed", eventFlow);
    const request = { params: { n: 1 }, key: "k", labels: { customer: "7" } };
    const first = await client.start("keyed", request);
    assert.equal(first.created, true);
    assert.deepEqual(await client.start("keyed", request), { id: first.id, created: false });
    await assert.rejects(client.start("keyed", { ...request, params: { n: 2 } }), ConflictError);
    assert.notEqual((await client.start("keyed")).id, first.id);
    const found = await all(client.tasks({ flow: "keyed", labels: { customer: "7" }, states: ["running"] }));
    assert.deepEqual(found.map((t) => t.id), [first.id]);
  });

  test("reads lists to their end", async () => {
    await client.publish("many", eventFlow);
    const started = new Set<string>();
    for (let i = 0; i < 60; i++) started.add((await client.start("many")).id); // a page has 50
    const listed = await all(client.tasks({ flow: "many" }));
    assert.deepEqual(new Set(listed.map((t) => t.id)), started);
    assert.equal(JSON.parse(textOf(listed[59] as object) as string).id, listed[59]?.id);
  });

  test("signals a task and waits for it", async () => {
    await client.publish("signaled", eventFlow);
    const { id } = await client.start("signaled");
    assert.equal((await client.waiting(id)).waits[0]?.kind, "signal");
    await assert.rejects(client.wait(id, { timeoutMs: 50 }), TimeoutError);
    await assert.rejects(client.wait(id, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await client.signal(id, "answer", { yes: [1, null, "ü"] });
    const ended = await client.wait(id, { timeoutMs: patience });
    assert.equal(ended.state, "completed");
    assert.deepEqual(ended.shared["said"], { yes: [1, null, "ü"] });
  });

  test("may wait for the end of what it starts", async () => {
    await client.publish("awaited", loopFlow);
    assert.equal((await client.start("awaited", { waitMs: patience })).task?.state, "completed");
  });

  test("waits for a step", async () => {
    await client.publish("stepwise", afterFlow);
    const { id, step, task } = await client.start("stepwise", { waitMs: patience, waitUntil: "begin" });
    assert.deepEqual([step?.state, task?.state], ["completed", "running"]);
    assert.equal((await client.waitForStep(id, "begin")).node, "begin");
    for (const timeoutMs of [50, 0, -1]) {
      await assert.rejects(client.waitForStep(id, "ask", { timeoutMs }), (e: unknown) => {
        return e instanceof TimeoutError && e.message.startsWith(`step ask of task ${id} has not ended after`);
      });
    }
    await assert.rejects(client.waitForStep(id, "ask", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await client.signal(id, "answer", new RawJson(`["yes", 1.10]`));
    const asked = await client.waitForStep(id, "ask#1", { timeoutMs: patience });
    assert.deepEqual([asked.output, textOf(asked, "output")], [["yes", 1.1], `["yes", 1.10]`]);
    await assert.rejects(client.waitForStep(id, "ask#2"), (e: unknown) => {
      return e instanceof TroupeError && e.message === `task ${id} is completed, and its step ask#2 has not ended`;
    });
    await assert.rejects(client.waitForStep(id, "asc"), (e: unknown) => e instanceof InvalidError && e.hint === "did you mean ask?");
    await assert.rejects(client.start("stepwise", { waitUntil: "begin" }), InvalidError); // and how long?
  });

  test("pauses, resumes and cancels", async () => {
    await client.publish("steered", eventFlow);
    const { id } = await client.start("steered");
    assert.equal((await client.pause(id)).paused, true);
    assert.equal((await client.resume(id)).paused, false);
    assert.equal((await all(client.steps(id)))[0]?.state, "started");
    assert.equal((await client.cancel(id, { requestId: "r" })).state, "canceled");
    assert.equal((await client.cancel(id, { requestId: "r" })).state, "canceled");
  });

  test("goes on in a new task from one that has ended", async () => {
    await client.publish("forked", twoFlow);
    const { id } = await client.start("forked", { params: { n: 1 } });
    await client.signal(id, "answer", "yes");
    await client.wait(id, { timeoutMs: patience });
    const plan = await client.fork(id, { from: "more", dryRun: true });
    assert.deepEqual([plan.kept_steps.map((s) => s.node), plan.rerun_steps.map((s) => [s.node, s.reason])],
      [["ask"], [["more", "requested"]]]);
    assert.equal(plan.id, undefined);
    const request = { from: "more", params: { n: 2 }, key: "k" };
    const forked = await client.fork(id, request);
    assert.deepEqual([forked.created, forked.forked_from, forked.version], [true, id, 1]);
    assert.equal((await client.fork(id, request)).id, forked.id);
    const ended = await client.wait(forked.id as string, { timeoutMs: patience });
    assert.deepEqual([ended.state, ended.params, ended.shared["said"]], ["completed", { n: 2 }, "yes"]);
    await assert.rejects(client.fork(id, { from: "nowhere" }), InvalidError);
    await assert.rejects(client.fork(id, { latest: true }), ConflictError);
  });

  test("passes values on as they are written, where that is asked for", async () => {
    await client.publish("raw", eventFlow);
    const text = '{"z":12345678901234567890123,"2":1.10,"1":[{"a":"\\"]}"}]}';
    const { id } = await client.start("raw");
    await client.signal(id, "answer", new RawJson(text));
    const ended = await client.wait(id, { timeoutMs: patience });
    assert.equal(textOf(ended, "shared", "said"), text);
    assert.equal(textOf(ended, "shared", "said", "z"), "12345678901234567890123");
    assert.equal(textOf(ended, "shared", "said", "1", 0, "a"), '"\\"]}"');
    assert.equal(textOf(ended, "shared", "nothing"), undefined);
    // The result of JSON.parse for the same text:
    assert.equal(ended.shared["said"].z, 12345678901234567000000);
    assert.deepEqual(Object.keys(ended.shared["said"]), ["1", "2", "z"]);
    const signaled = (await all(client.events(id))).find((e) => e.key === "answer") as Event;
    assert.equal(textOf(signaled, "output"), text);
    assert.throws(() => new RawJson("{"), SyntaxError);
    await assert.rejects(async () => client.signal(id, "answer", { part: Infinity }), /value\.part is Infinity, which JSON does not have/);
  });

  test("has errors of its own for refusals", async () => {
    await assert.rejects(client.task("nobody"), (e: unknown) => {
      assert.ok(e instanceof NotFoundError);
      assert.deepEqual([e.name, e.status, e.code, e.field], ["NotFoundError", 404, "not_found", "path.task"]);
      assert.match(e.message, /check the id/);
      return true;
    });
    await assert.rejects(client.publish("invalid", "start: a\nnodes:\n  a: {kind: nothing}\n"), (e: unknown) => {
      assert.ok(e instanceof InvalidError);
      assert.equal(e.problems[0]?.line, 3);
      assert.match(e.message, /\n  3:/);
      return true;
    });
    assert.equal((await client.validate("start: a")).valid, false);
    await assert.rejects(client.publish("invalid", ""), ProblemError);
  });

  test("answers warnings, and refuses them when it is strict", async () => {
    const warned = eventFlow + "dalay: 1\n";
    assert.equal((await client.validate(warned, { strict: true })).valid, false);
    await assert.rejects(client.publish("warned", warned, { strict: true }), (e: unknown) => {
      assert.ok(e instanceof InvalidError);
      assert.equal(e.problems[0]?.path, "dalay");
      return true;
    });
    const published = await client.publish("warned", warned);
    assert.equal(published.created, true);
    assert.deepEqual(published.warnings?.map((w) => [w.path, w.severity]), [["dalay", "warning"]]);
  });

  test("is denied with a wrong token", async () => {
    const guarded = await Member.start("--token", "secret");
    try {
      await assert.rejects(new Client({ servers: guarded.url, token: "wrong" }).info(), DeniedError);
      assert.equal((await new Client({ servers: guarded.url, token: "secret" }).info()).store, "sqlite");
    } finally {
      await guarded.stop();
    }
  });

  test("waits for longer than a timer can", async () => {
    await client.publish("patient", eventFlow);
    const patient = new Client({ servers: member.url, timeoutMs: Infinity, silenceMs: 2 ** 40, retries: 0 });
    const { id } = await patient.start("patient");
    const told = patient.watch(id);
    assert.equal((await told.next()).value?.type, "task_created");
    await patient.signal(id, "answer", 1);
    assert.equal((await patient.wait(id, { timeoutMs: patience })).state, "completed");
    await told.return();
  });

  test("refuses at once what is no address", () => {
    for (const servers of ["bogus", "localhost:8070", "ftp://localhost", "http://", "http://a,", []]) {
      assert.throws(() => new Client({ servers }), TypeError);
    }
  });
});

describe("several addresses", () => {
  test("the second one is used when the first refuses", async () => {
    for (const servers of [[await refused(), member.url], `${await refused()}, ${member.url}`]) {
      assert.equal((await new Client({ servers, retries: 0 }).info()).store, "sqlite");
    }
  });

  test("one that stops answering is left", async () => {
    const [first, second] = [await Relay.start(member.port), await Relay.start(member.port)];
    const failing = new Client({ servers: [first.url, second.url], retries: 0 });
    await failing.publish("left", eventFlow);
    const { id } = await failing.start("left");
    first.close();
    await failing.signal(id, "answer", 1);
    assert.equal((await failing.wait(id, { timeoutMs: patience })).state, "completed");
    assert.ok(second.connections > 0);
    second.close();
  });

  test("an answer that broke off is asked for again, and the task is started once", async () => {
    const relay = await Relay.start(member.port, { cutAfter: [20] });
    await client.publish("broken", eventFlow);
    await new Client({ servers: relay.url }).start("broken");
    assert.equal((await all(client.tasks({ flow: "broken" }))).length, 1);
    relay.close();
  });

  test("nobody answers", async () => {
    const servers = [await refused(), await refused()];
    await assert.rejects(new Client({ servers, retries: 1 }).info(), (e: unknown) => {
      assert.ok(e instanceof UnreachableError);
      for (const server of servers) assert.ok(e.message.includes(server), e.message);
      return true;
    });
  });
});

describe("watching", () => {
  test("tells events as they happen", async () => {
    await client.publish("watched", eventFlow);
    const { id } = await client.start("watched");
    const types: string[] = [];
    for await (const event of client.watch(id)) {
      types.push(event.type);
      if (event.type === "step_entered") await client.signal(id, "answer", "yes");
    }
    assert.equal(types[0], "task_created");
    assert.equal(types.at(-1), "task_ended");
    assert.deepEqual(await all(client.watch(id)), await all(client.events(id)));
  });

  test("goes on behind an event", async () => {
    await client.publish("behind", loopFlow);
    const { id } = await client.start("behind", { waitMs: patience });
    const events = await all(client.events(id));
    assert.deepEqual(await all(client.watch(id, { after: events[4]?.id as string })), events.slice(5));
  });

  test("neither misses nor repeats events when connections break", async () => {
    await client.publish("cut", loopFlow);
    const relay = await Relay.start(member.port, { cutAfter: [10, 700, 1100, 300, 1500, 1000] });
    const { id } = await client.start("cut");
    const seen = await all(new Client({ servers: relay.url }).watch(id));
    assert.deepEqual(seen, await all(client.events(id)));
    assert.ok(relay.connections > 5);
    relay.close();
  });

  test("goes on at the second address", async () => {
    await client.publish("moved", eventFlow);
    const { id } = await client.start("moved");
    const [first, second] = [await Relay.start(member.port), await Relay.start(member.port)];
    const seen: Event[] = [];
    for await (const event of new Client({ servers: [first.url, second.url] }).watch(id)) {
      seen.push(event);
      if (event.type === "step_entered") {
        first.close();
        await client.signal(id, "answer", "yes");
      }
    }
    assert.deepEqual(seen, await all(client.events(id)));
    second.close();
  });

  test("replaces a silent connection", async () => {
    await client.publish("silent", eventFlow);
    const { id } = await client.start("silent");
    const relay = await Relay.start(member.port);
    const watched = all(new Client({ servers: relay.url, silenceMs: 200 }).watch(id));
    await until(() => relay.connections >= 3);
    await client.signal(id, "answer", "yes");
    assert.deepEqual(await watched, await all(client.events(id)));
    relay.close();
  });

  test("ends when it is aborted, and for a task that is not there", async () => {
    await client.publish("aborted", eventFlow);
    const { id } = await client.start("aborted");
    const stopping = new AbortController();
    await assert.rejects(async () => {
      for await (const event of client.watch(id, { signal: stopping.signal })) {
        if (event.type === "step_entered") stopping.abort(new Error("enough"));
      }
    }, /enough/);
    await assert.rejects(all(client.watch("nobody")), NotFoundError);
  });
});
