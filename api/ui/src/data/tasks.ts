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
const largest = 500 // that the server answers at once
const pace = 10_000 // how far apart all rows are read again, at least, where more happens than is told

/** What the API is asked for a filter of the page. */
export function asked(f: TaskFilter) {
  const since = f.since ? millis(f.since) : undefined
  return {
    state: f.state,
    waits: f.waits,
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

/** A list of tasks that stays where it is while things happen: rows change in place, and new ones wait until they are asked for. */
export function useTasks(filter: TaskFilter) {
  const queries = useQueryClient()
  const { live } = usePrefs()
  const connected = useLive().state === 'live'
  const name = JSON.stringify(filter)
  const key = ['tasks', filter]
  const info = useInfo()
  const timed = !filter.since || info.isFetched // a time before now is one of the server's clock
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

  // What nobody has told may be of any row: after a break as many are read again as are shown.
  const missed = useRef({ some: true, read: 0 })

  // The list is read again where nobody tells what happens, and whenever more has happened than is told.
  const head = useQuery({
    queryKey: ['tasks-head', filter],
    enabled: live && pages.isSuccess && !filter.sort, // in another order new ones may be anywhere
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
          const queryKey = ['tasks-head', filter] // what is being read may be of the time before, and a first answer would be waited for
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
      // read anew from its beginning, or it would lack some, or grow without end
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
  const searched = pages.data?.pages.at(-1)?.searched_to // the server looks at so many at once, and goes on when it is asked to
  return { rows: found.rows, fresh, gap, pages, takeIn, searched, error: pages.error ?? head.error }
}

/** The newest tasks that are found, as many as are asked for. */
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
  while (page.next && !page.searched_to && items.length < many) {
    page = await call(
      'GET /v1/tasks',
      { query: { ...query, limit: Math.min(many - items.length, largest), cursor: page.next } },
      signal,
    )
    items.push(...page.items)
  }
  return { ...page, items }
}

/** How many tasks the filter finds in each state, whichever states it asks for. */
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
