// A digest is the summary of a task: columns of numbers with one place for each node. Later changes
// arrive as the columns of the changed nodes.

import type { Digest, ScopeDigest, WaitReason } from '../api.gen'
export type { Digest, ScopeDigest, WaitReason as Wait }

const counts = ['total', 'done', 'failed', 'in_flight', 'retrying'] as const
const always = ['state', 'visit', 'entered_ms', 'ended_ms'] as const
const words = ['reason', 'error'] as const

/**
 * Changes is a message of a digest's channel: the whole head, and the columns of the changed nodes.
 */
export interface Changes extends Pick<
  Digest,
  'seq' | 'state' | 'paused' | 'error' | 'updated_at' | 'ended_at' | 'waits'
> {
  scopes: ({ scope: string; indexes: number[] } & Partial<
    Omit<ScopeDigest, 'scope' | 'mode' | 'nodes'>
  >)[]
}

/** changed returns a digest after changes. Changes of a scope that the digest lacks are ignored. */
export function changed(digest: Digest, changes: Changes): Digest {
  const { scopes: _, ...head } = changes
  const scopes = digest.scopes.map(scope => {
    const change = changes.scopes.find(c => c.scope === scope.scope)
    return change ? changedScope(scope, change) : scope
  })
  return { ...digest, error: undefined, ended_at: undefined, ...head, scopes }
}

function changedScope(scope: ScopeDigest, change: Changes['scopes'][number]): ScopeDigest {
  const next: ScopeDigest = {
    ...scope,
    held: [...(scope.held ?? []).filter(i => !change.indexes.includes(i)), ...(change.held ?? [])],
  }
  for (const name of always) {
    const values = change[name]
    if (values) next[name] = put(scope[name], change.indexes, values)
  }
  for (const name of counts) {
    const values = change[name]
    const old = scope[name]
    if (values || old) next[name] = put(old ?? scope.nodes.map(() => 0), change.indexes, values)
  }
  for (const name of words) {
    const texts: Record<string, string> = { ...scope[name] }
    for (const i of change.indexes) delete texts[String(i)]
    next[name] = { ...texts, ...change[name] }
  }
  return next
}

function put(old: number[], at: number[], values?: number[]): number[] {
  const next = old.slice()
  at.forEach((i, k) => (next[i] = values?.[k] ?? 0))
  return next
}

/** NodeNow is the state of a node as it is drawn. */
export interface NodeNow {
  state: 'created' | 'started' | 'completed' | 'failed' | 'skipped'
  visit: number
  total: number
  done: number
  failed: number
  flying: number
  retrying: number
  entered?: number
  ended?: number
  reason?: string
  error?: string
  held: boolean
  waits: boolean
}

const states = ['created', 'started', 'completed', 'failed', 'skipped'] as const

export function nodeNow(digest: Digest, scope: ScopeDigest, i: number): NodeNow {
  const key = scope.nodes[i]
  return {
    state: states[scope.state[i]] ?? 'created',
    visit: scope.visit[i],
    total: scope.total?.[i] ?? 0,
    done: scope.done?.[i] ?? 0,
    failed: scope.failed?.[i] ?? 0,
    flying: scope.in_flight?.[i] ?? 0,
    retrying: scope.retrying?.[i] ?? 0,
    entered: time(digest.base_ms, scope.entered_ms[i]),
    ended: time(digest.base_ms, scope.ended_ms[i]),
    reason: scope.reason?.[i],
    error: scope.error?.[i],
    held: scope.held?.includes(i) ?? false,
    waits:
      digest.waits?.some(w => w.node === key && (w.scope ?? '') === scope.scope && rests(w)) ??
      false,
  }
}

/**
 * rests reports whether the task makes no progress until a person acts or a time comes. A job in
 * progress is not such a wait.
 */
export function rests(w: WaitReason): boolean {
  return w.kind === 'job' ? unclaimed(w) : w.kind !== 'claim'
}

/** unclaimed reports whether a job is in a queue and no worker has claimed it. */
export function unclaimed(w: WaitReason): boolean {
  return w.kind === 'job' && w.service !== undefined
}

function time(base: number, ms: number): number | undefined {
  return ms < 0 ? undefined : base + ms
}

/** planned returns the path of a scope without visits, as it is in the plan. */
export function planned(scope: string): string {
  return scope
    .split('/')
    .map(part => part.split('#')[0])
    .join('/')
}

/** escaped returns a key as it is written in the path of a scope. */
export function escaped(key: string): string {
  return key.replace(/%/g, '%25').replace(/\//g, '%2F').replace(/#/g, '%23')
}
