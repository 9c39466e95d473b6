// The query part of an address: all state that a shared link must carry.

/**
 * parse reads a query as written by hand and by the API: name=value, with the name repeated for
 * several values.
 */
export function parse(text: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const old = found[name]
    found[name] = old === undefined ? value : Array.isArray(old) ? [...old, value] : [old, value]
  }
  return found
}

export function print(search: Record<string, unknown>): string {
  const out = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== '' && one !== false) out.append(name, String(one))
    }
  }
  const text = out.toString().replace(/%3A/g, ':').replace(/%2F/g, '/')
  return text && '?' + text
}

type Sent = Record<string, unknown>

export function list(v: unknown): string[] | undefined {
  if (v === undefined || v === '') return undefined
  return (Array.isArray(v) ? v : [v]).map(String)
}

export function text(v: unknown): string | undefined {
  const one = Array.isArray(v) ? v[0] : v
  return one === undefined || one === '' ? undefined : String(one)
}

export function number(v: unknown): number | undefined {
  const n = Number(text(v))
  return text(v) === undefined || Number.isNaN(n) ? undefined : n
}

export interface TaskFilter {
  state?: string[]
  waiting_for?: string[]
  queued?: string
  flow?: string
  version?: number
  label?: string[]
  since?: string
  q?: string
  error?: string
  created_from?: string
  ended_from?: string
  sort?: Sort
}
export type Sort = 'created' | 'ended' | '-ended'

export function taskFilter(s: Sent): TaskFilter {
  return {
    state: list(s.state),
    waiting_for: list(s.waiting_for),
    queued: text(s.queued),
    flow: text(s.flow),
    version: number(s.version),
    label: list(s.label),
    since: text(s.since),
    q: text(s.q),
    error: text(s.error),
    created_from: text(s.created_from),
    ended_from: text(s.ended_from),
    sort: (['created', 'ended', '-ended'] as const).find(one => one === s.sort),
  }
}

/** filterOf returns the list filter behind a number of the API. */
export function filterOf(query: string): TaskFilter {
  return taskFilter(parse(query))
}

export type Heat = 'failures' | 'retries' | 'p95' | 'wait'
export type Window = '1h' | '24h' | '7d'

export interface FlowView {
  tab?: string
  v?: number
  heat?: Heat
  window?: Window
  scope?: string
  node?: string
  open?: string[]
  from?: number
  to?: number
  of?: number
}

export function flowView(s: Sent): FlowView {
  const heat = (['failures', 'retries', 'p95', 'wait'] as const).find(one => one === s.heat),
    window = (['1h', '24h', '7d'] as const).find(one => one === s.window)
  return {
    tab: text(s.tab),
    v: number(s.v),
    heat,
    window,
    scope: text(s.scope),
    node: text(s.node),
    open: list(s.open),
    from: number(s.from),
    to: number(s.to),
    of: number(s.of),
  }
}

export interface WorkersView {
  queue?: string
}

export function workersView(s: Sent): WorkersView {
  return { queue: text(s.queue) }
}

export interface CompareView {
  a?: string
  b?: string
  different?: boolean
}

export function compareView(s: Sent): CompareView {
  return { a: text(s.a), b: text(s.b), different: text(s.different) === 'true' || undefined }
}

export interface TaskView {
  tab?: string
  scope?: string
  node?: string
  visit?: number
  unit?: number
  open?: string[]
  made?: string
  zoom?: string
  at?: number
  type?: string
  word?: string
  of?: string
}

export function taskView(s: Sent): TaskView {
  return {
    tab: text(s.tab),
    scope: text(s.scope),
    node: text(s.node),
    visit: number(s.visit),
    unit: number(s.unit),
    open: list(s.open),
    made: text(s.made),
    zoom: text(s.zoom),
    at: number(s.at),
    type: text(s.type),
    word: text(s.word),
    of: text(s.of),
  }
}
