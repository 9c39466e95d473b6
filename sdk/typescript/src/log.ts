/** Hears what goes wrong, never what jobs are about. */
export interface Logger {
  info(...what: unknown[]): void;
  warn(...what: unknown[]): void;
}

/** Says what goes wrong, with errors in one line. */
export const standardLogger: Logger = {
  info: () => {},
  warn: (...what) => console.warn("troupe:", ...what.map((w) => (w instanceof Error ? w.message : w))),
};
