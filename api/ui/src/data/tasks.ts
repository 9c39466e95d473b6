import {
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
  type InfiniteData,
} from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { PageTaskSummary } from '../api.gen'
import { call } from './call'
import { useInfo } from './info'
import { heard, merged, most, newsOf, silence, type News } from './news'
import { usePrefs } from './prefs'
import type { TaskFilter } from './search'
import { subscribe, useLive } from './socket'
import { millis, now } from './time'

export const size = 100 // rows of a page
const largest = 500 // the most rows that the server returns at once
const pace = 10_000 // shortest interval in ms between full reads while rows may have been missed

/** asked returns the query of the API for a filter of the page. */
export function asked(f: TaskFilter) {
  const since = f.since ? millis(f.since) : undefined
  return {
    state: f.state,
    waiting_for: f.waiting_for,
    queued: f.queued,
    flow: f.flow ? [f.flow] : undefined,
    version: f.version,
    label: f.label,
    q: f.q,
    error: f.error,
    ended_from: f.ended_from,
    created_from: since ? new Date(now() - since).toISOString() : f.created_from,
  }
}

/**
 * useTasks returns a list of tasks that keeps its positions while tasks change. Rows change in
 * place, and new rows wait until the user takes them in.
 */
export function useTasks(filter: TaskFilter) {
  const queries = useQueryClient()
  const { live } = usePrefs()
  const connected = useLive().state === 'live'
  const name = JSON.stringify(filter)
  const key = ['tasks', filter]
  const info = useInfo()
  // the client needs the server's clock to compute a time before now
  const timed = !filter.since || info.isFetched
  const query = useMemo(() => asked(filter), [name, timed])
  const pages = useInfiniteQuery({
    queryKey: key,
    enabled: timed,
    initialPageParam: '',
    staleTime: Infinity,
    gcTime: 60_000,
    queryFn: ({ pageParam, signal }) =>
      call(
        'GET /v1/tasks',
        { query: { ...query, sort: filter.sort, limit: size, cursor: pageParam || undefined } },
        signal,
      ),
    getNextPageParam: (page: PageTaskSummary) => page.next || undefined,
  })
  const known = useMemo(() => pages.data?.pages.flatMap(p => p.items) ?? [], [pages.data])
  const [told, setTold] = useState({ name, heard: silence })
  const listed = useRef<ReadonlySet<string>>(new Set())
  listed.current = useMemo(() => new Set(known.map(t => t.id)), [known])
  const hear = (news: News) =>
    setTold(old => ({
      name,
      heard: heard(old.name === name ? old.heard : silence, news, listed.current),
    }))

  // Missed events can concern any row. After a break, as many rows are read again as are shown.
  const missed = useRef({ some: true, read: 0 })

  // The head of the list is read again while the channel is down, and while rows may have been
  // missed.
  const head = useQuery({
    queryKey: ['tasks-head', filter],
    enabled: live && pages.isSuccess && !filter.sort, // in another order, new rows can be anywhere
    refetchInterval: () =>
      !connected ? 2000 : missed.current.some && listed.current.size > size ? pace : false,
    queryFn: async ({ signal }) => {
      const of = missed.current,
        began = Date.now()
      const all = (of.some || !connected) && began - of.read >= pace
      if (!all) return newest(query, size, signal)
      of.some = false
      try {
        const found = await newest(
          query,
          Math.max(size, Math.min(most, listed.current.size)),
          signal,
        )
        of.read = began
        return found
      } catch (problem) {
        missed.current.some = true
        throw problem
      }
    },
  })
  useEffect(() => {
    if (head.data) hear(newsOf(known, head.data))
  }, [head.data])
  useEffect(() => {
    if (!live || !pages.isSuccess) return
    return subscribe(
      'tasks',
      undefined,
      m => {
        if (m.event === 'tasks') hear(m.data as News)
        else if (m.event === 'subscribed' || m.event === 'stale') {
          missed.current = { some: true, read: m.event === 'stale' ? missed.current.read : 0 }
          // A read in flight may return an older state, and a first read would be waited for. So it
          // is canceled.
          const queryKey = ['tasks-head', filter]
          void queries
            .cancelQueries({ queryKey })
            .then(() => queries.invalidateQueries({ queryKey }))
        }
      },
      { filter: query },
    )
  }, [name, live, pages.isSuccess])

  const found = useMemo(
    () => merged(known, told.name === name ? told.heard : silence),
    [known, told, name],
  )
  const fresh = filter.sort ? [] : found.fresh
  const gap = told.name === name && told.heard.gap
  const takeIn = () => {
    if (fresh.length === 0 || pages.isRefetching) return
    if (gap || known.length + fresh.length > most) {
      // The list is read again from its beginning. Otherwise it would lack rows, or grow without
      // bound.
      queries.setQueryData<InfiniteData<PageTaskSummary>>(
        key,
        old => old && { pages: old.pages.slice(0, 1), pageParams: old.pageParams.slice(0, 1) },
      )
      void pages
        .refetch()
        .then(
          read =>
            read.isSuccess && setTold(old => ({ ...old, heard: { ...old.heard, gap: false } })),
        )
    } else
      queries.setQueryData<InfiniteData<PageTaskSummary>>(
        key,
        old =>
          old && {
            ...old,
            pages: old.pages.map((p, i) => (i === 0 ? { ...p, items: [...fresh, ...p.items] } : p)),
          },
      )
  }
  // the server searches a limited number of tasks at a time and continues on request
  const searched = pages.data?.pages.at(-1)?.searched_until
  return { rows: found.rows, fresh, gap, pages, takeIn, searched, error: pages.error ?? head.error }
}

/** newest returns the newest matching tasks, up to the given number. */
async function newest(
  query: ReturnType<typeof asked>,
  many: number,
  signal: AbortSignal,
): Promise<PageTaskSummary> {
  let page = await call(
    'GET /v1/tasks',
    { query: { ...query, limit: Math.min(many, largest) } },
    signal,
  )
  const items = [...page.items]
  while (page.next && !page.searched_until && items.length < many) {
    page = await call(
      'GET /v1/tasks',
      { query: { ...query, limit: Math.min(many - items.length, largest), cursor: page.next } },
      signal,
    )
    items.push(...page.items)
  }
  return { ...page, items }
}

/**
 * useCounts returns how many tasks match the filter in each state. The filter's own states do not
 * count.
 */
export function useCounts(filter: TaskFilter) {
  const { live } = usePrefs()
  const { state: _, sort: __, ...rest } = filter
  const timed = useInfo().isFetched || !filter.since
  return useQuery({
    queryKey: ['task-counts', rest],
    enabled: timed,
    refetchInterval: live && 3000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      call('GET /v1/tasks/count', { query: { ...asked(rest), group_by: 'state' } }, signal),
  })
}
