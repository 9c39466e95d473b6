import { getPrefs } from './prefs'
import { texts } from '../texts'

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })

/** The lead of the server's clock over this one, in milliseconds. */
let skew = 0

/**
 * learnSkew updates the skew from an answer that contains the server's time. The server read that
 * time at some moment between the request and now, which bounds the skew. The known skew is changed
 * only as far as these bounds require.
 */
export function learnSkew(told: number, asked: number) {
  skew = Math.min(Math.max(skew, told - Date.now()), told - asked)
}

/** now returns the server's time. */
export function now(): number {
  return Date.now() + skew
}

/** ago returns a relative time such as "4m ago"; "" for no time. */
export function ago(at: string | undefined, base = now()): string {
  if (!at) return ''
  const ms = Date.parse(at) - base
  if (Math.abs(ms) < 1500) return texts.time.now
  const [unit, size] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['second', 1000]
  return relative.format(Math.trunc(ms / size), unit)
}

/** elapsed returns how long ago a time was, at least 0. */
export function elapsed(at: string, base = now()): string {
  return span(Math.max(0, base - Date.parse(at)))
}

/** ahead returns a future time and the time left until it; undefined for any other. */
export function ahead(at: string, base = now()): string | undefined {
  const left = Date.parse(at) - base
  if (!(left >= 1500)) return undefined
  if (left < 60_000) return texts.time.soon(span(left))
  return texts.time.at(calendar(at, left < 12 * 3_600_000), span(left))
}

/**
 * calendar returns a weekday, day and time of day, or the time of day alone, in the chosen zone.
 */
function calendar(at: string, short: boolean): string {
  const { zone } = getPrefs()
  const day: Intl.DateTimeFormatOptions = short
    ? {}
    : { weekday: 'short', day: 'numeric', month: 'short' }
  const timeZone = zone === 'local' ? undefined : zone
  const format = new Intl.DateTimeFormat('en-GB', {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
  })
  return format.format(new Date(at)).replaceAll(',', '')
}

// by zone: creating a format takes longer than using it a hundred times
const formats = new Map<string, Intl.DateTimeFormat>()

/** exact returns the exact time in the chosen zone. */
export function exact(at: string | number | undefined): string {
  if (at === undefined || at === '') return ''
  const date = new Date(at)
  const zone = getPrefs().zone
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('sv-SE', {
      dateStyle: 'short',
      timeStyle: 'medium',
      timeZone: zone === 'local' ? undefined : zone,
    })
  formats.set(zone, format)
  return `${format.format(date)}.${String(date.getMilliseconds()).padStart(3, '0')}${zone === 'UTC' ? ' UTC' : ''}`
}

/** span formats a duration: 80ms, 1.2s, 4m 10s, 3h 2m, 2d 4h. */
export function span(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms) || ms < 0) return ''
  if (ms < 1000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)}s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)}m ${Math.floor(ms / 1000) % 60}s`
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)}h ${Math.floor(ms / 60_000) % 60}m`
  return `${Math.floor(ms / 86_400_000)}d ${Math.floor(ms / 3_600_000) % 24}h`
}

/**
 * millis returns the milliseconds of a text such as 30s, 15m, 24h or 7d; undefined for any other
 * text.
 */
export function millis(text: string): number | undefined {
  const found = /^(\d+)(s|m|h|d)$/.exec(text)
  return found
    ? Number(found[1]) * { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[found[2] as 's']!
    : undefined
}

export function between(from?: string, to?: string): number | undefined {
  return from ? (to ? Date.parse(to) : now()) - Date.parse(from) : undefined
}
