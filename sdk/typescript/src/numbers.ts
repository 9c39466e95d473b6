/** Metrics of a job. */

const mostNumbers = 100; // maximal number of different names and labels
const mostBytes = 32 << 10; // maximal bytes of all names and labels

/** The total of a metric with the same labels. */
export interface Told {
  name: string;
  labels?: Record<string, string>;
  count: number;
  sum: number;
  last: number;
}

/**
 * The metrics of a job, added up by name and labels, within the limits of members; more are
 * ignored.
 */
export class Numbers {
  readonly #of = new Map<string, Told>();
  #bytes = 0;

  /**
   * Adds a value. It ignores values that are no numbers or would overflow the sum, and metrics
   * without a name.
   */
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

  /** Metrics in order of their first value; undefined if none. */
  get told(): Told[] | undefined {
    const all = [...this.#of.values()].filter((n) => n.count > 0);
    return all.length > 0 ? all : undefined;
  }
}
