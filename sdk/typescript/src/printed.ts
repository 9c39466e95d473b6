/** What a job has logged and the member does not have yet. */

const mostLines = 1000; // that are sent at once
const perLine = 64; // bytes that a line takes beside its text

/** A line, as /v1 takes it. */
export interface LogLine {
  text: string;
  at: string;
}

/** Lines, and how many were sent before them. */
export interface Said {
  lines: LogLine[];
  lines_from: number;
}

export class Printed {
  #lines: LogLine[] = [];
  #sent = 0; // of them, perhaps in vain
  #from = 0; // how many were before them
  #room: number;
  #lost = 0; // lines that did not fit since the last one that did

  constructor(room: number) {
    this.#room = room;
  }

  add(text: string): void {
    const at = new Date().toISOString();
    for (const line of text.split("\n")) {
      const size = Buffer.byteLength(line) + perLine;
      if (size > this.#room) {
        this.#lost++;
        continue;
      }
      this.#tellLost(at);
      this.#room -= size;
      this.#lines.push({ text: line, at });
    }
  }

  #tellLost(at: string): void {
    if (this.#lost > 0) this.#lines.push({ text: `… ${this.#lost} lines lost here`, at });
    this.#lost = 0;
  }

  get waits(): boolean {
    return this.#lines.length > 0;
  }

  /** What is to be sent next: the same as before, until that has arrived. */
  part(): Said {
    if (this.#sent === 0) this.#sent = Math.min(this.#lines.length, mostLines);
    return { lines: this.#lines.slice(0, this.#sent), lines_from: this.#from };
  }

  /** The member has the part. */
  arrived(): void {
    for (const line of this.#lines.splice(0, this.#sent)) this.#room += Buffer.byteLength(line.text) + perLine;
    this.#from += this.#sent;
    this.#sent = 0;
  }

  /** All that the member may not have when the handler has returned. */
  rest(): Partial<Said> {
    this.#tellLost(new Date().toISOString());
    return this.waits ? { lines: [...this.#lines], lines_from: this.#from } : {};
  }
}
