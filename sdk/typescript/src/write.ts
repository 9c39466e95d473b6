/** JSON texts of values, without losing or changing a value. */

/**
 * JSON to be sent unchanged: a whole value (an output, params, a signal's value), or a part of one.
 */
export class RawJson {
  constructor(readonly text: string) {
    JSON.parse(text);
  }
}

/**
 * Returns a value as JSON text. The result is that of JSON.stringify, except that integers of any
 * length (bigint) keep their digits. It throws for everything that JSON.stringify would turn into
 * null, {} or nothing: NaN, Infinity, functions, symbols, undefined in an array, invalid dates,
 * and objects that keep their contents elsewhere, such as a Map. Undefined fields are omitted;
 * undefined itself becomes null.
 *
 * @param what names the value in errors
 */
export function textAs(value: unknown, what: string): string {
  return value === undefined ? "null" : write(value, "", what);
}

/** Returns an object as JSON text. Undefined fields are omitted. */
export function encode(fields: Record<string, unknown>): string {
  return writeObject(fields, "", []);
}

function write(value: unknown, key: string, path: string, within: object[] = []): string {
  if (value instanceof RawJson) return value.text;
  if (value instanceof Date && Number.isNaN(value.getTime())) throw refusal(path, "an invalid date");
  if ((typeof value === "object" || typeof value === "bigint") && typeof (value as any)?.toJSON === "function") value = (value as any).toJSON(key);
  if (value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt) value = value.valueOf();
  switch (typeof value) {
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "bigint":
      return value.toString();
    case "number":
      if (!Number.isFinite(value)) throw refusal(path, String(value));
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : writeObject(value, path, within);
    default:
      throw refusal(path, value === undefined ? "undefined" : `a ${typeof value}`);
  }
}

function writeObject(value: object, path: string, within: object[]): string {
  if (within.includes(value)) throw new TypeError(`${path} contains itself: JSON has no circles`);
  if (hidesContents(value)) throw refusal(path, kindOf(value), hintOf(value));
  within.push(value);
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) parts.push(write(value[i], String(i), `${path}[${i}]`, within));
  } else {
    for (const [name, part] of Object.entries(value)) {
      if (part !== undefined) parts.push(`${JSON.stringify(name)}:${write(part, name, path === "" ? name : `${path}.${name}`, within)}`);
    }
  }
  within.pop();
  return Array.isArray(value) ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
}

/** Reports whether an object's contents are not in its fields. */
function hidesContents(value: object): boolean {
  return value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof WeakSet || value instanceof Promise
    || value instanceof Error || value instanceof RegExp || value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

function kindOf(value: object): string {
  const name = value.constructor.name;
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}`;
}

function hintOf(value: object): string {
  if (value instanceof Promise) return "await it";
  if (value instanceof Map) return "send Object.fromEntries(map)";
  if (value instanceof Set) return "send [...set]";
  if (value instanceof Error) return "send its message, or throw it";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "send a text, such as base64, or an array of numbers";
  return "send a text";
}

function refusal(path: string, found: string, hint = "send null, a number or a text, or leave the field out"): TypeError {
  return new TypeError(`${path} is ${found}, which JSON does not have: ${hint}`);
}
