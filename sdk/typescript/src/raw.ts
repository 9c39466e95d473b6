/**
 * JSON as text, where parsing would lose information: numbers beyond 2^53, digits of numbers, and
 * the order of keys that look like array indexes.
 */

const texts = new WeakMap<object, () => string>();

/** Remembers the text from which an answer was parsed. */
export function remember<T>(answer: T, text: () => string): T {
  if (typeof answer === "object" && answer !== null) texts.set(answer, text);
  return answer;
}

/**
 * Returns the JSON text of a part of the client's answer, as sent by the member: `textOf(task,
 * "result")`, `textOf(task, "shared", "order")`. Returns undefined if there is no such part.
 */
export function textOf(answer: object, ...path: (string | number)[]): string | undefined {
  let text = texts.get(answer)?.();
  for (const step of path) {
    if (text === undefined) return undefined;
    text = typeof step === "number" ? itemsOf(text)[step] : membersOf(text).get(step);
  }
  return text;
}

/**
 * Returns the texts of an array's items. The text is valid JSON; for anything but an array the
 * result is empty.
 */
export function itemsOf(text: string): string[] {
  const items: string[] = [];
  let at = skipSpace(text, 0);
  if (text[at] !== "[") return items;
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== "]") {
    const end = skipValue(text, at);
    items.push(text.slice(at, end));
    at = skipComma(text, end);
  }
  return items;
}

/** Returns the texts of an object's values, by key. */
export function membersOf(text: string): Map<string, string> {
  const members = new Map<string, string>();
  let at = skipSpace(text, 0);
  if (text[at] !== "{") return members;
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== "}") {
    const colon = skipValue(text, at);
    const name = JSON.parse(text.slice(at, colon)) as string;
    const begin = skipSpace(text, skipSpace(text, colon) + 1);
    const end = skipValue(text, begin);
    members.set(name, text.slice(begin, end));
    at = skipComma(text, end);
  }
  return members;
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && " \t\r\n".includes(text[at] as string)) at++;
  return at;
}

function skipComma(text: string, at: number): number {
  at = skipSpace(text, at);
  return text[at] === "," ? skipSpace(text, at + 1) : at;
}

/** Returns the end of the value that begins here. */
function skipValue(text: string, at: number): number {
  let depth = 0;
  do {
    const c = text[at];
    if (c === '"') at = skipString(text, at);
    else if (c === "{" || c === "[") (depth++, at++);
    else if (c === "}" || c === "]") (depth--, at++);
    else if (depth > 0) at++;
    else at = skipWord(text, at);
  } while (depth > 0 && at < text.length);
  return at;
}

function skipString(text: string, at: number): number {
  for (at++; at < text.length && text[at] !== '"'; at++) {
    if (text[at] === "\\") at++;
  }
  return at + 1;
}

/** Skips a number, true, false or null. */
function skipWord(text: string, at: number): number {
  while (at < text.length && !" \t\r\n,]}:".includes(text[at] as string)) at++;
  return at;
}
