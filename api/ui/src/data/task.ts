import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import type { Unit } from '../api.gen'
import { call } from './call'
import type { Digest } from './digest'
import { readDigest, readGraph } from './earlier'
import { usePrefs } from './prefs'
import { subscribe, useLive, type Message } from './socket'

const over = ['completed', 'failed', 'canceled']

export function isOver(state: string | undefined): boolean {
  return state !== undefined && over.includes(state)
}

/** A task at a glance, as it is at every moment: read once, then told what has changed. Where nothing can be told it is read again and again. */
export function useDigest(id: string, open: string[]) {
  const queries = useQueryClient()
  const prefs = usePrefs()
  const live = useLive()
  const names = open.join('\n')
  const key = ['task', id, 'digest', names]
  const query = useQuery<Digest>({
    queryKey: key, staleTime: Infinity, placeholderData: old => (old?.task === id ? old : undefined),
    refetchInterval: q => (prefs.live && live.state !== 'live' && !isOver(q.state.data?.state) ? 3000 : false),
    queryFn: ({ signal }) => readDigest(id, open, signal),
  })
  const seq = useRef<string>(undefined)
  seq.current = query.data && String(query.data.seq)
  const ended = isOver(query.data?.state)
  const ready = query.isSuccess && !query.isPlaceholderData
  useEffect(() => {
    if (!ready || ended || !prefs.live) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const details = () => { // what is shown beside it, at most twice a second
      timer ??= setTimeout(() => {
        timer = undefined
        void queries.invalidateQueries({ queryKey: ['task', id] })
      }, 500)
    }
    const hear = (m: Message) => {
      if (m.event === 'event' || m.event === 'end') details()
    }
    const leave = subscribe(`task:${id}`, seq.current, hear)
    return () => {
      leave()
      clearTimeout(timer)
    }
  }, [id, names, ready, ended, prefs.live, queries])
  return query
}

export function useGraph(flow: string | undefined, version: number | undefined) {
  return useQuery({
    queryKey: ['graph', flow, version], enabled: flow !== undefined, staleTime: Infinity,
    queryFn: ({ signal }) => readGraph(flow!, version!, signal),
  })
}

export function useTask(id: string, wanted: boolean) {
  return useQuery({ queryKey: ['task', id, 'whole'], enabled: wanted, queryFn: ({ signal }) => call('GET /v1/tasks/{task}', { path: { task: id } }, signal) })
}

export function useWaiting(id: string, wanted: boolean) {
  return useQuery({ queryKey: ['task', id, 'waiting'], enabled: wanted, queryFn: ({ signal }) => call('GET /v1/tasks/{task}/waiting', { path: { task: id } }, signal) })
}

export function useStep(id: string, scope: string, step: string, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'step', scope, step], enabled: wanted,
    queryFn: async ({ signal }) => (await call('GET /v1/tasks/{task}/steps', { path: { task: id }, query: { scope: scope || undefined, step, limit: 1 } }, signal)).items[0] ?? null,
  })
}

export function useUnits(id: string, scope: string, step: string, state: Unit['state'] | undefined, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'units', scope, step, state], enabled: wanted,
    queryFn: ({ signal }) => call('GET /v1/tasks/{task}/units', { path: { task: id }, query: { scope: scope || undefined, step, state: state && [state], limit: 50 } }, signal),
  })
}

export function useLogs(id: string, node: string, unit: number | undefined, wanted: boolean) {
  return useQuery({
    queryKey: ['task', id, 'logs', node, unit], enabled: wanted,
    queryFn: ({ signal }) => call('GET /v1/tasks/{task}/logs', { path: { task: id }, query: { node, unit, limit: 500 } }, signal),
  })
}
