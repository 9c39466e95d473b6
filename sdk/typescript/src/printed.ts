/** Logged lines of a job that were not sent yet. */

const mostLines = 1000; // maximal lines per request
const perLine = 64; // cost of a line in bytes besides its text

/** A line in the format of /v1. */
export interface LogLine {
  text: string;
  at: string;
}

/** Lines, and the number of lines sent before them. */
export interface Said {
  lines: LogLine[];
  lines_from: number;
}

export class Printed {
  #lines: LogLine[] = [];
  #sent = 0; // number of lines sent, not yet acknowledged
  #from = 0; // number of lines before them
  #room: number;
  #lost = 0; // lines lost since the last stored one

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

  /** Returns the next lines to send; the same as before until they are acknowledged. */
  part(): Said {
    if (this.#sent === 0) this.#sent = Math.min(this.#lines.length, mostLines);
    return { lines: this.#lines.slice(0, this.#sent), lines_from: this.#from };
  }

  /** Records that the member has received the lines. */
  arrived(): void {
    for (const line of this.#lines.splice(0, this.#sent)) this.#room += Buffer.byteLength(line.text) + perLine;
    this.#from += this.#sent;
    this.#sent = 0;
  }

  /** Returns all lines that the member may not have when the handler has returned. */
  rest(): Partial<Said> {
    this.#tellLost(new Date().toISOString());
    return this.waits ? { lines: [...this.#lines], lines_from: this.#from } : {};
  }
}
