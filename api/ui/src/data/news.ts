// What is told of a list of tasks after it was read: rows as they are now, and which ones its filter does not find any longer.

import type { PageTaskSummary, TaskSummary } from '../api.gen'

/** What the channel tasks tells. */
export interface News {
  changed: TaskSummary[]
  new: number
  left?: string[]
  head?: boolean
}

/** gap: there may be others between what is new and what is known. */
export interface Heard {
  now: ReadonlyMap<string, TaskSummary>
  left: ReadonlySet<string>
  gap?: boolean
}
export interface Row extends TaskSummary {
  left?: boolean
}

export const silence: Heard = { now: new Map(), left: new Set() }

export const most = 2000 // tasks that are remembered beside those of the list, which keeps no more rows

/** What is known after some news. An older row does not replace a newer one: what was read may be told late. Nothing is forgotten of rows that are listed. */
export function heard(before: Heard, news: News, listed: ReadonlySet<string> = new Set()): Heard {
  const now = new Map(before.now),
    left = new Set(before.left)
  for (const t of news.changed) {
    const old = now.get(t.id)
    if (old && old.updated_at > t.updated_at) continue
    now.delete(t.id) // to the end
    now.set(t.id, t)
    left.delete(t.id)
  }
  for (const id of news.left ?? []) left.add(id)
  for (const kept of [now, left]) {
    let over = kept.size - most
    for (const id of kept.keys()) {
      if (over <= 0) break
      if (!listed.has(id) && kept.delete(id)) over--
    }
  }
  const oldest = news.changed.at(-1) // newer ones may have been told since the break
  return {
    now,
    left,
    gap:
      before.gap ||
      (news.head && oldest !== undefined && !listed.has(oldest.id) && !before.now.has(oldest.id)),
  }
}

/** The beginning of a list, read again, as news of the rows that are known: what it lacks although it reaches that far is not found any longer. */
export function newsOf(known: TaskSummary[], head: PageTaskSummary): News {
  const ids = new Set(head.items.map(t => t.id))
  const oldest = head.items.at(-1)
  const reached = (t: TaskSummary) =>
    !head.next || (oldest !== undefined && t.created_at > oldest.created_at)
  return {
    changed: head.items,
    new: 0,
    head: Boolean(head.next),
    left: known.filter(t => !ids.has(t.id) && reached(t)).map(t => t.id),
  }
}

/** Rows as they are now, in their places, and apart from them the tasks that are new. */
export function merged(known: TaskSummary[], of: Heard): { rows: Row[]; fresh: TaskSummary[] } {
  const rows = known.map(t => {
    const now = of.now.get(t.id)
    const row = now && now.updated_at >= t.updated_at ? now : t
    return of.left.has(t.id) ? { ...row, left: true } : row
  })
  const ids = new Set(known.map(t => t.id)),
    first = known[0]
  const fresh = [...of.now.values()].filter(
    t => !ids.has(t.id) && !of.left.has(t.id) && (!first || t.created_at >= first.created_at),
  )
  return {
    rows,
    fresh: fresh.sort((a, b) =>
      a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1,
    ),
  }
}
