/** Receives errors, never the contents of jobs. */
export interface Logger {
  info(...what: unknown[]): void;
  warn(...what: unknown[]): void;
}

/** Logs to the console, each error on one line. */
export const standardLogger: Logger = {
  info: () => {},
  warn: (...what) => console.warn("troupe:", ...what.map((w) => (w instanceof Error ? w.message : w))),
};
