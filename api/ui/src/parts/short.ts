/** An id as it is told apart at a glance: what it is of, and its end. */
export function short(id: string): string {
  return id.length > 20 ? `${id.slice(0, id.indexOf('-') + 1)}…${id.slice(-6)}` : id
}
