// JSON whose numbers keep all their digits. JavaScript's numbers are doubles, which round
// 9007199254740993 to …992. A number that a double cannot hold exactly is kept as it was written,
// so that no page changes a value.

const mark = `digits-${Math.random().toString(36).slice(2)}-`
const written = new RegExp(`"${mark}([^"]*)"`, 'g')
const tokens = /"(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]*/g

/** Digits is a number that no double holds exactly, as it was written. */
export class Digits {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text
  }

  toJSON(): string {
    return mark + this.text
  }
}

/** parse reads JSON. Numbers that a double cannot hold exactly become Digits. */
export function parse(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!/[\d.]{16}|\d[eE]/.test(text)) return value
  const marked = text.replace(tokens, token =>
    token[0] === '"' || isExact(token) ? token : `"${mark}${token}"`,
  )
  if (marked === text) return value
  return JSON.parse(marked, (_, v: unknown) =>
    typeof v === 'string' && v.startsWith(mark) ? new Digits(v.slice(mark.length)) : v,
  )
}

/** stringify writes JSON. Digits become the numbers that they were. */
export function stringify(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) as string | undefined)?.replace(written, '$1') ?? ''
}

/** isExact reports whether a number survives the conversion to a double and back. */
function isExact(number: string): boolean {
  return normal(number) === normal(String(Number(number)))
}

/** normal returns a number as its digits without outer zeros, and a power of ten. */
function normal(number: string): string {
  const [, sign, whole, fraction = '', power = '0'] =
    /^(-?)(\d+|Infinity)(?:\.(\d*))?(?:[eE](.*))?$/.exec(number) ?? ['', '', number]
  const all = (whole + fraction).replace(/^0+/, ''),
    digits = all.replace(/0+$/, '')
  return digits === ''
    ? '0'
    : `${sign}${digits}e${BigInt(power) + BigInt(all.length - digits.length - fraction.length)}`
}
