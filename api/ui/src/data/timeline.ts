// The activity of a task over time, as lines on a screen.

import type { Timeline, TimelineLane, TimelineWait } from '../api.gen'

export type Span = [from: number, to: number]

/**
 * Axis maps times to positions from 0 (left) to 1 (right). Long spans in which every lane waits may
 * be folded.
 */
export interface Axis {
  from: number
  to: number
  folded: Span[]
  at: (ms: number) => number
  back: (x: number) => number
}

const longest = 0.1 // smallest share of the whole for a span to be folded
const narrow = 0.06 // width of a folded span, as a share of the rest

/** joined merges spans that touch, and sorts them. */
export function joined(spans: Span[]): Span[] {
  const all: Span[] = []
  for (const [from, to] of spans.slice().sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1)
    if (last && from <= last[1]) last[1] = Math.max(last[1], to)
    else all.push([from, to])
  }
  return all
}

/** without returns the parts of a span that none of the others covers. */
export function without(span: Span, others: Span[]): Span[] {
  const left: Span[] = []
  let at = span[0]
  for (const [from, to] of joined(others)) {
    if (to <= at || from >= span[1]) continue
    if (from > at) left.push([at, from])
    at = Math.max(at, to)
  }
  if (at < span[1]) left.push([at, span[1]])
  return left
}

function waitsOf(lane: TimelineLane, now: number): Span[] {
  return (lane.waits ?? []).map((w: TimelineWait): Span => [w.started_ms, w.ended_ms < 0 ? now : w.ended_ms])
}

/** idle returns the spans in which no lane is busy. */
export function idle(lanes: TimelineLane[], from: number, to: number, now: number): Span[] {
  const busy = lanes.flatMap(l => {
    const whole: Span = [l.entered_ms, Math.max(l.entered_ms + 1, l.ended_ms < 0 ? now : l.ended_ms)]
    return l.bins ? [whole] : without(whole, waitsOf(l, now))
  })
  return without([from, to], busy)
}

export function axisOf(
  lanes: TimelineLane[],
  from: number,
  to: number,
  now: number,
  fold: boolean,
): Axis {
  const whole = Math.max(1, to - from)
  const folded = fold ? idle(lanes, from, to, now).filter(([a, b]) => b - a > longest * whole) : []
  const rest = Math.max(1, whole - folded.reduce((sum, [a, b]) => sum + b - a, 0))
  // The parts of the axis with their widths.
  const cut: { from: number; to: number; width: number }[] = []
  const cutTo = (end: number, width: (ms: number) => number) => {
    const begin = cut.at(-1)?.to ?? from
    if (end > begin) cut.push({ from: begin, to: end, width: width(end - begin) })
  }
  for (const [a, b] of folded) {
    cutTo(a, ms => ms)
    cutTo(b, ms => Math.min(ms, narrow * rest))
  }
  cutTo(Math.max(to, from + 1), ms => ms)
  const total = cut.reduce((sum, c) => sum + c.width, 0)
  let x = 0
  const pieces = cut.map(c => ({
    ...c,
    x: (x += c.width) / total - c.width / total,
    w: c.width / total,
  }))
  const at = (ms: number) => {
    const p = pieces.find(p => ms <= p.to) ?? pieces[pieces.length - 1]
    return Math.min(1, Math.max(0, p.x + (p.w * (ms - p.from)) / (p.to - p.from)))
  }
  const back = (f: number) => {
    const p = pieces.find(p => f <= p.x + p.w) ?? pieces[pieces.length - 1]
    return Math.min(p.to, Math.max(p.from, p.from + ((f - p.x) / p.w) * (p.to - p.from)))
  }
  return { from, to, folded, at, back }
}

/** zoomOf parses the time range in an address, in milliseconds after the task was created. */
export function zoomOf(text: string | undefined): Span | undefined {
  const found = /^(\d+)-(\d+)$/.exec(text ?? '')
  return found && Number(found[2]) > Number(found[1])
    ? [Number(found[1]), Number(found[2])]
    : undefined
}

/**
 * zoomed returns a window scaled around its middle, or moved by a fraction of its size. The window
 * stays within the whole range; undefined means the whole range.
 */
export function zoomed(at: Span, within: Span, factor: number, move = 0): Span | undefined {
  const size = Math.max(1, Math.min(within[1] - within[0], (at[1] - at[0]) * factor))
  const middle = (at[0] + at[1]) / 2 + move * (at[1] - at[0])
  const from = Math.max(within[0], Math.min(within[1] - size, middle - size / 2))
  return size >= within[1] - within[0] ? undefined : [Math.floor(from), Math.ceil(from + size)]
}

/** TimelineRow is a lane in its place: below the lane that contains it. */
export interface TimelineRow {
  lane: TimelineLane
  scope: string
  depth: number
  critical: boolean
  inside?: string
  open: boolean
}

/** insideOf returns the path of the scope inside a visit. */
export function insideOf(scope: string, lane: TimelineLane): string {
  const name =
    lane.node.replace(/%/g, '%25').replace(/\//g, '%2F').replace(/#/g, '%23') + '#' + lane.visit
  return scope ? `${scope}/${name}` : name
}

export function rowsOf(scopes: Map<string, Timeline>, scope = '', depth = 0): TimelineRow[] {
  const told = scopes.get(scope)
  if (!told) return []
  const critical = new Set(told.critical)
  return told.lanes.flatMap((lane, i) => {
    const inside = lane.has_inner_scope ? insideOf(scope, lane) : undefined
    const open = inside !== undefined && scopes.has(inside)
    const row: TimelineRow = { lane, scope, depth, critical: critical.has(i), inside, open }
    return open ? [row, ...rowsOf(scopes, inside, depth + 1)] : [row]
  })
}

/** waitedFor returns what a lane waited for, with the total of each kind, longest first. */
export function waitedFor(lane: TimelineLane, now: number): [what: string, ms: number][] {
  const sums = new Map<string, number>()
  for (const w of lane.waits ?? [])
    sums.set(w.kind, (sums.get(w.kind) ?? 0) + (w.ended_ms < 0 ? now : w.ended_ms) - w.started_ms)
  return [...sums].sort((a, b) => b[1] - a[1])
}
