import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import type { Unit } from '../api.gen'
import { call, Refused } from './call'
import { changed, type Changes, type Digest } from './digest'
import { usePrefs } from './prefs'
import { subscribe, useLive, type Message } from './socket'

const over = ['completed', 'failed', 'canceled']

export function isOver(state: string | undefined): boolean {
  return state !== undefined && over.includes(state)
}

/**
 * useDigest returns the digest of a task and keeps it current. It is read once and then updated by
 * the channel. Without a channel it is polled.
 */
export function useDigest(id: string, open: string[]) {
  const queries = useQueryClient()
  const prefs = usePrefs()
  const live = useLive()
  const names = open.join('\n')
  const key = ['task', id, 'digest', names]
  const query = useQuery<Digest>({
    queryKey: key,
    staleTime: Infinity,
    placeholderData: old => (old?.task === id ? old : undefined),
    refetchInterval: q =>
      prefs.live && live.state !== 'live' && !isOver(q.state.data?.state) ? 3000 : false,
    queryFn: ({ signal }) => readDigest(id, open, signal),
  })
  const seq = useRef<string>(undefined)
  seq.current = query.data && String(query.data.seq)
  const ended = isOver(query.data?.state)
  const ready = query.isSuccess && !query.isPlaceholderData
  useEffect(() => {
    if (!ready || ended || !prefs.live) return
    let timer: ReturnType<typeof setTimeout> | undefined,
      more = false
    const details = () => {
      // The details beside the digest are read again at most once a second, and each read finishes
      // before the next one starts.
      more = true
      timer ??= setTimeout(async () => {
        more = false
        await queries.invalidateQueries({
          queryKey: ['task', id],
          predicate: q => q.queryKey[2] !== 'digest',
          refetchType: document.hidden ? 'none' : 'active',
        })
        timer = undefined
        if (more) details()
      }, 1000)
    }
    const hear = (m: Message) => {
      if (m.event === 'digest') queries.setQueryData<Digest>(key, m.data as Digest)
      else if (m.event === 'changes')
        queries.setQueryData<Digest>(key, old => old && changed(old, m.data as Changes))
      else if (m.event === 'end')
        void queries.invalidateQueries({ queryKey: ['task', id, 'digest'] })
      details()
    }
    const leave = subscribe(
      `digest:${id}`,
      seq.current,
      hear,
      open.length > 0 ? { scopes: ['/', '~', ...open] } : undefined,
    )
    return () => {
      leave()
      clearTimeout(timer)
      more = false
    }
  }, [id, names, ready, ended, prefs.live, queries])
  return query
}

/** useDigestAt returns the digest of a task as of a row of its journal. */
export function useDigestAt(id: string, open: string[], at: number | undefined) {
  return useQuery<Digest>({
    queryKey: ['task', id, 'digest', open.join('\n'), at],
    enabled: at !== undefined,
    staleTime: Infinity,
    placeholderData: old => (old?.task === id ? old : undefined),
    queryFn: ({ signal }) => readDigest(id, open, signal, at),
  })
}

/**
 * readDigest reads the root, the scopes for undo and clean-up once they exist, and the open scopes.
 * A scope that has not started is left out.
 */
async function readDigest(
  id: string,
  open: string[],
  signal: AbortSignal,
  at?: number,
): Promise<Digest> {
  const path = { task: id }
  const [outer, ...inner] = await Promise.all([
    call('GET /v1/tasks/{task}/digest', { path, query: { at_seq: at } }, signal),
    ...open.map(scope =>
      call('GET /v1/tasks/{task}/digest', { path, query: { scope: [scope], at_seq: at } }, signal).catch(
        (problem: unknown) => {
          if (problem instanceof Refused && problem.problem.status === 404) return undefined
          throw problem
        },
      ),
    ),
  ])
  return { ...outer, scopes: [...outer.scopes, ...inner.flatMap(d => d?.scopes ?? [])] }
}

export function useGraph(flow: string | undefined, version: number | undefined) {
  return useQuery({
    queryKey: ['graph', flow, version],
    enabled: flow !== undefined,
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/flows/{flow}/versions/{version}/graph',
        { path: { flow: flow!, version: String(version) } },
        signal,
      ),
  })
}

/** useTask returns a task without its values, or with a preview of each. */
export function useTask(id: string, values: 'none' | 'preview') {
  return useQuery({
    queryKey: ['task', id, 'whole', values],
    queryFn: ({ signal }) =>
      call('GET /v1/tasks/{task}', { path: { task: id }, query: { values } }, signal),
  })
}

/** valueAt returns the address of a complete value. */
export function valueAt(task: string, query: Record<string, string | number | undefined>): string {
  const sent = Object.entries(query).filter(([, v]) => v !== undefined && v !== '')
  return `/v1/tasks/${encodeURIComponent(task)}/value?${new URLSearchParams(sent.map(([k, v]) => [k, String(v)]))}`
}

/** useUnitStates returns the states of all units of a step, as runs of equal states. */
export function useUnitStates(id: string, scope: string, step: string, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'unit-states', scope, step],
    enabled: wanted,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/tasks/{task}/units/states',
        { path: { task: id }, query: { scope: scope || undefined, step } },
        signal,
      ),
  })
}

export function useWaiting(id: string, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'waiting'],
    enabled: wanted,
    queryFn: ({ signal }) => call('GET /v1/tasks/{task}/waiting', { path: { task: id } }, signal),
  })
}

export function useStep(id: string, scope: string, step: string, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'step', scope, step],
    enabled: wanted,
    queryFn: async ({ signal }) =>
      (
        await call(
          'GET /v1/tasks/{task}/steps',
          {
            path: { task: id },
            query: { scope: scope || undefined, step, limit: 1, values: 'preview' },
          },
          signal,
        )
      ).items[0] ?? null,
  })
}

export function useUnits(
  id: string,
  scope: string,
  step: string,
  state: Unit['state'] | undefined,
  from: number | undefined,
) {
  return useQuery({
    queryKey: ['task', id, 'units', scope, step, state, from],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/tasks/{task}/units',
        {
          path: { task: id },
          query: {
            scope: scope || undefined,
            step,
            state: state && [state],
            from,
            limit: 50,
            values: 'preview',
          },
        },
        signal,
      ),
  })
}

/** useVersion returns a version with its definition and the params that its tasks take. */
export function useVersion(flow: string, version: number) {
  return useQuery({
    queryKey: ['version', flow, version],
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/flows/{flow}/versions/{version}',
        { path: { flow, version: String(version) } },
        signal,
      ),
  })
}
