// The output of a task's attempts, kept while a page shows it.

import { useEffect, useRef, useState } from 'react'
import type { LogEntry } from '../api.gen'
import { whenBroken } from './socket'
import { parse } from './json'

export const most = 25_000 // lines that are kept

export interface Log {
  lines: LogEntry[]
  dropped: number
}

/**
 * appended returns a log with more lines at its end. Above the limit the oldest lines are dropped.
 * Lines that are already there are skipped, because a replaced connection repeats them.
 */
export function appended(log: Log, more: LogEntry[]): Log {
  const last = log.lines.at(-1)
  const fresh = last ? more.filter(l => later(l.id, last.id)) : more
  const lines = [...log.lines, ...fresh],
    over = Math.max(0, lines.length - most)
  return { lines: over ? lines.slice(over) : lines, dropped: log.dropped + over }
}

function later(a: string, b: string): boolean {
  const [as, ai] = a.split('.').map(Number),
    [bs, bi] = b.split('.').map(Number)
  return as > bs || (as === bs && (ai ?? 0) > (bi ?? 0))
}

/** withText returns the lines that contain a text, ignoring case. */
export function withText(lines: LogEntry[], text: string): LogEntry[] {
  const word = text.toLowerCase()
  return word === '' ? lines : lines.filter(l => l.text.toLowerCase().includes(word))
}

/** marked splits a text into the parts that match a search and the parts that do not. */
export function marked(text: string, word: string): { text: string; hit: boolean }[] {
  if (!word) return [{ text, hit: false }]
  const parts: { text: string; hit: boolean }[] = [],
    low = text.toLowerCase(),
    w = word.toLowerCase()
  let at = 0
  for (let i = low.indexOf(w); i >= 0; i = low.indexOf(w, at)) {
    if (i > at) parts.push({ text: text.slice(at, i), hit: false })
    parts.push({ text: text.slice(i, i + w.length), hit: true })
    at = i + w.length
  }
  if (at < text.length) parts.push({ text: text.slice(at), hit: false })
  return parts
}

/**
 * useLog follows a log: first the existing lines, then new ones. It holds a connection only while
 * the page is visible, because a browser has six connections for all its tabs. Lines that arrive
 * together are shown together.
 */
export function useLog(
  task: string,
  pick: { node?: string; unit?: number; stream?: string },
): Log & { state: 'following' | 'over' | 'broken' } {
  const [log, setLog] = useState<Log>({ lines: [], dropped: 0 })
  const [state, setState] = useState<'following' | 'over' | 'broken'>('following')
  const waiting = useRef<LogEntry[]>([])
  const name = `${task}\n${pick.node}\n${pick.unit}\n${pick.stream}`
  useEffect(() => {
    setLog({ lines: [], dropped: 0 })
    setState('following')
    waiting.current = []
    const sent = Object.entries(pick).filter(([, v]) => v !== undefined && v !== '')
    let source: EventSource | undefined,
      last: string | undefined,
      ended = false,
      pause = 3000,
      timer: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      source = new EventSource(
        `/v1/tasks/${encodeURIComponent(task)}/logs/stream?${new URLSearchParams([...sent, ...(last ? [['after', last]] : [])].map(([k, v]) => [k, String(v)]))}`,
      )
      source.onopen = () => {
        pause = 3000
        setState('following')
      }
      source.onmessage = e => {
        last = e.lastEventId
        waiting.current.push(parse(e.data as string) as LogEntry)
      }
      source.onerror = () => {
        // the browser retries behind the last line, unless the server has refused
        setState('broken')
        if (source?.readyState !== EventSource.CLOSED) return
        timer = setTimeout(open, pause)
        pause = Math.min(2 * pause, 60_000)
      }
      source.addEventListener('end', () => {
        ended = true
        setState('over')
        source?.close()
      })
    }
    const leave = () => {
      source?.close()
      clearTimeout(timer)
    }
    const seen = () => {
      leave()
      if (!document.hidden && !ended) open()
    }
    seen()
    document.addEventListener('visibilitychange', seen)
    // a dead stream is silent, so the page learns of it from the socket
    const trust = whenBroken(seen)
    const flush = setInterval(() => {
      const more = waiting.current
      if (more.length === 0) return
      waiting.current = []
      setLog(old => appended(old, more))
    }, 100)
    return () => {
      leave()
      document.removeEventListener('visibilitychange', seen)
      trust()
      clearInterval(flush)
    }
  }, [name])
  return { ...log, state }
}
