import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { PageTaskSummary, TaskSummary } from '../api.gen'
import { call } from './call'
import { usePrefs } from './prefs'
import type { TaskFilter } from './search'
import { millis, now } from './time'

const size = 100, mostPages = 20

/** What the API is asked for a filter of the page. */
export function asked(f: TaskFilter) {
  const since = f.since ? millis(f.since) : undefined
  return { state: f.state, waits: f.waits, queued: f.queued, flow: f.flow ? [f.flow] : undefined, version: f.version, label: f.label, q: f.q, error: f.error, ended_from: f.ended_from, created_from: since ? new Date(now() - since).toISOString() : f.created_from }
}

/** A list of tasks that stays where it is while things happen: rows change in place, and new ones wait until they are asked for. */
export function useTasks(filter: TaskFilter) {
  const queries = useQueryClient()
  const { live } = usePrefs()
  const key = ['tasks', filter]
  const pages = useInfiniteQuery({
    queryKey: key, initialPageParam: '', maxPages: mostPages, staleTime: Infinity, gcTime: 60_000,
    queryFn: ({ pageParam, signal }) => call('GET /v1/tasks', { query: { ...asked(filter), sort: filter.sort, limit: size, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageTaskSummary) => page.next || undefined,
  })
  const head = useQuery({
    queryKey: ['tasks-head', filter], enabled: live && pages.isSuccess && !filter.sort, refetchInterval: 2000, // in another order new ones may be anywhere
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => call('GET /v1/tasks', { query: { ...asked(filter), limit: size } }, signal),
  })
  const found = useMemo(() => merged(pages.data, head.data), [pages.data, head.data])
  const takeIn = () => {
    if (found.fresh.length === 0) return
    queries.setQueryData<InfiniteData<PageTaskSummary>>(key, old => old && { ...old, pages: old.pages.map((p, i) => (i === 0 ? { ...p, items: [...found.fresh, ...p.items] } : p)) })
  }
  return { ...found, pages, takeIn, error: pages.error ?? head.error }
}

/** How many tasks the filter finds in each state, whichever states it asks for. */
export function useCounts(filter: TaskFilter) {
  const { live } = usePrefs()
  const { state: _, sort: __, ...rest } = filter
  return useQuery({
    queryKey: ['task-counts', rest], refetchInterval: live && 3000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => call('GET /v1/tasks/count', { query: { ...asked(rest), group_by: 'state' } }, signal),
  })
}

export interface Row extends TaskSummary { left?: boolean }

/** Rows as they are now. What the newest page lacks although it reaches that far is not found by the filter any longer. */
export function merged(data: InfiniteData<PageTaskSummary> | undefined, head: PageTaskSummary | undefined): { rows: Row[]; fresh: TaskSummary[] } {
  const known = data?.pages.flatMap(p => p.items) ?? []
  if (!head || !data) return { rows: known, fresh: [] }
  const newest = new Map(head.items.map(t => [t.id, t]))
  const oldest = head.items.at(-1)
  const reached = (t: TaskSummary) => !head.next || (oldest !== undefined && t.created_at > oldest.created_at)
  const rows = known.map(t => newest.get(t.id) ?? (reached(t) ? { ...t, left: true } : t))
  const ids = new Set(known.map(t => t.id))
  const first = known[0]
  return { rows, fresh: head.items.filter(t => !ids.has(t.id) && (!first || t.created_at >= first.created_at)) }
}
