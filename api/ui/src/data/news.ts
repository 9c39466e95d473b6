// Changes of a list of tasks since it was read: the current rows, and the rows that no longer match
// its filter.

import type { PageTaskSummary, TaskSummary } from '../api.gen'

/** News is a message of the channel tasks. */
export interface News {
  changed: TaskSummary[]
  new: number
  left?: string[]
  head?: boolean
}

/**
 * Heard holds the changes since the list was read. gap: tasks may be missing between the new and
 * the known ones.
 */
export interface Heard {
  now: ReadonlyMap<string, TaskSummary>
  left: ReadonlySet<string>
  gap?: boolean
}
export interface Row extends TaskSummary {
  left?: boolean
}

export const silence: Heard = { now: new Map(), left: new Set() }

// tasks that are kept beside those of the list, which keeps no more rows either
export const most = 2000

/**
 * heard returns the changes after a message. An older row does not replace a newer one, because
 * messages can arrive late. Changes of listed rows are never dropped.
 */
export function heard(before: Heard, news: News, listed: ReadonlySet<string> = new Set()): Heard {
  const now = new Map(before.now),
    left = new Set(before.left)
  for (const t of news.changed) {
    const old = now.get(t.id)
    if (old && old.updated_at > t.updated_at) continue
    now.delete(t.id) // moves it to the end
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
  // the oldest task decides, because newer ones may have arrived since the break
  const oldest = news.changed.at(-1)
  return {
    now,
    left,
    gap:
      before.gap ||
      (news.head && oldest !== undefined && !listed.has(oldest.id) && !before.now.has(oldest.id)),
  }
}

/**
 * newsOf returns a new read of the head of a list as changes of the known rows. A known row that is
 * missing from the range that was read no longer matches.
 */
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

/** merged returns the current rows in their places and, separately, the new tasks. */
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
