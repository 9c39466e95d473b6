/** The encoding of values to be sent. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { RawJson } from "@troupe-engine/sdk";

const { encode, textAs } = (await import(new URL("../../dist/write.js", import.meta.url).href)) as typeof import("../dist/write.js");

class Price {
  constructor(readonly amount: bigint, readonly currency?: string) {}
}

test("values keep what they are", () => {
  const values: [value: unknown, text: string][] = [
    [undefined, "null"],
    [null, "null"],
    [12345678901234567890123n, "12345678901234567890123"],
    [{ id: 9007199254740993n, raw: new RawJson("1.10") }, '{"id":9007199254740993,"raw":1.10}'],
    [[1, [new RawJson("1e400")]], "[1,[1e400]]"],
    [{ a: undefined, b: null, "é\n": "\ud83d\ude00" }, '{"b":null,"é\\n":"😀"}'],
    [new Price(5n), '{"amount":5}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [Buffer.from("a"), '{"type":"Buffer","data":[97]}'],
    [[Object(1), Object("a"), Object(true), Object(2n)], '[1,"a",true,2]'],
    [{ toJSON: () => ({ deep: 1n }) }, '{"deep":1}'],
    [Object.create(null), "{}"],
  ];
  for (const [value, text] of values) assert.equal(textAs(value, "it"), text);
  const twice = { n: 1 };
  assert.equal(encode({ a: twice, b: [twice, twice], c: undefined }), '{"a":{"n":1},"b":[{"n":1},{"n":1}]}');
});

test("what JSON does not have is refused by its place", () => {
  const circle: unknown[] = [];
  circle.push({ circle });
  const values: [value: unknown, error: RegExp][] = [
    [NaN, /^it is NaN, which JSON does not have: send null/],
    [{ a: [0, { b: -Infinity }] }, /^it\.a\[1\]\.b is -Infinity/],
    [[1, undefined], /^it\[1\] is undefined/],
    [new Array(1), /^it\[0\] is undefined/],
    [() => 1, /^it is a function/],
    [{ a: Symbol("s") }, /^it\.a is a symbol/],
    [{ at: new Date(NaN) }, /^it\.at is an invalid date/],
    [{ m: new Map() }, /^it\.m is a Map.*Object\.fromEntries/],
    [[new Set()], /^it\[0\] is a Set.*\[\.\.\.set\]/],
    [Promise.resolve(1), /^it is a Promise.*await it/],
    [new Error("no"), /^it is an Error.*throw it/],
    [/a/, /^it is a RegExp/],
    [new Uint8Array(2), /^it is a Uint8Array.*base64/],
    [{ toJSON: () => NaN }, /^it is NaN/],
    [circle, /^it\[0\]\.circle contains itself/],
  ];
  for (const [value, error] of values) assert.throws(() => textAs(value, "it"), { name: "TypeError", message: error });
  assert.throws(() => encode({ params: { n: NaN } }), /^TypeError: params\.n is NaN/);
});
