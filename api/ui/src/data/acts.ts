import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import type { Routes } from '../api.gen'
import { call, Refused } from './call'
import { texts } from '../texts'

/** Note is the result of an action. It stays at the foot of the page until it is dismissed. */
export interface Note {
  id: number
  text: string
  bad?: boolean
  request?: string
  task?: string
}

let notes: Note[] = []
let last = 0
const listeners = new Set<() => void>()

export function note(n: Omit<Note, 'id'>) {
  const id = ++last
  notes = [...notes.slice(-3), { ...n, id }]
  for (const tell of listeners) tell()
  if (!n.bad) setTimeout(() => putAway(id), 8000)
}

export function putAway(id: number) {
  notes = notes.filter(n => n.id !== id)
  for (const tell of listeners) tell()
}

export function useNotes(): Note[] {
  return useSyncExternalStore(
    tell => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => notes,
  )
}

/**
 * requestID returns an id for a request, so that sending it again has no second effect. Browsers
 * make UUIDs only on secure pages.
 */
export function requestID(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), b =>
    b.toString(16).padStart(2, '0'),
  ).join('')
}

type Act =
  'pause' | 'resume' | 'cancel' | 'retry' | 'signal' | 'complete' | 'append' | 'hold' | 'release'
export interface Order {
  act: Act
  did: string
  body?: unknown
}

/** useAct sends a command to a task and shows the result. */
export function useAct(task: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: async (order: Order) => {
      const request = requestID()
      const input = { path: { task }, header: { 'Request-Id': request }, body: order.body } as never
      const answer = (await call(`POST /v1/tasks/{task}/${order.act}` as keyof Routes, input)) as
        { warning?: string } | undefined
      return { request, warning: answer?.warning, did: order.did }
    },
    onSuccess: done =>
      note({
        text: done.warning ? texts.notes.warned(done.did, done.warning) : done.did,
        bad: Boolean(done.warning),
        request: done.request,
        task,
      }),
    onError: problem =>
      note({
        text: problem.message,
        bad: true,
        request: problem instanceof Refused ? problem.problem.request_id : undefined,
        task,
      }),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ['task', task] })
      void queries.invalidateQueries({ queryKey: ['tasks-head'] })
    },
  })
}
