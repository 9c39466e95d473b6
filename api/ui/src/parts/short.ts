/** short shortens an id to the parts that distinguish it: its prefix and its end. */
export function short(id: string): string {
  return id.length > 20 ? `${id.slice(0, id.indexOf('-') + 1)}…${id.slice(-6)}` : id
}
