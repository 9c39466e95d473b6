/** Numbers that a job tells of itself. */

const mostNumbers = 100; // of different names or labels
const mostBytes = 32 << 10; // of all names and labels

/** What a job has told of one name with the same labels. */
export interface Told {
  name: string;
  labels?: Record<string, string>;
  count: number;
  sum: number;
  last: number;
}

/** Those of a job, added up by name and labels, within the bounds that members have: what would be more is left out. */
export class Numbers {
  readonly #of = new Map<string, Told>();
  #bytes = 0;

  /** Counts a value. One that is no number, or would make the sum none, is left out, and so is one without a name. */
  add(name: string, value: number, labels: Record<string, string>): void {
    if (name === "" || !Number.isFinite(value)) return;
    const of = this.#place(name, Object.entries(labels).map(([k, v]): [string, string] => [k, String(v)]).sort(([a], [b]) => (a < b ? -1 : 1)));
    if (of === undefined || !Number.isFinite(of.sum + value)) return;
    of.count++;
    of.sum += value;
    of.last = value;
  }

  #place(name: string, labels: [string, string][]): Told | undefined {
    const key = JSON.stringify([name, labels]);
    const known = this.#of.get(key);
    if (known !== undefined) return known;
    const bytes = Buffer.byteLength(key);
    if (this.#of.size === mostNumbers || this.#bytes + bytes > mostBytes) return undefined;
    this.#bytes += bytes;
    const told = { name, ...(labels.length > 0 && { labels: Object.fromEntries(labels) }), count: 0, sum: 0, last: 0 };
    this.#of.set(key, told);
    return told;
  }

  /** They in the order in which their names were told first; undefined = none. */
  get told(): Told[] | undefined {
    const all = [...this.#of.values()].filter((n) => n.count > 0);
    return all.length > 0 ? all : undefined;
  }
}
