import { useSyncExternalStore } from 'react'
import { whenBack } from './call'
import { getPrefs } from './prefs'
import { parse } from './json'

/** Message is a message of the server on a channel. */
export interface Message {
  channel?: string
  event: string
  id?: string
  data?: unknown
}

interface Subscription {
  after?: string
  more?: object
  hear: (m: Message) => void
}

/**
 * Live is the state of the connection. live: events arrive; connecting: the connection is being
 * opened; off: it is down, and the pages poll; idle: no channel needs it.
 */
export type Live = { state: 'live' | 'connecting' | 'off' | 'idle'; until?: number }

const subscriptions = new Map<string, Subscription>()
const listeners = new Set<() => void>()
let socket: WebSocket | undefined
let live: Live = { state: 'idle' }
let failures = 0
let timer: ReturnType<typeof setTimeout> | undefined
let watching = false
let quiet: ReturnType<typeof setTimeout> | undefined
const broken = new Set<() => void>()

// The server pings every 15 s, but browsers hide pings from pages. So the page probes a silent
// connection with a request that has no effect and that the server refuses. The server allows a
// client ten seconds for a message and gets the same time for its answer.
const silence = 10_000,
  patience = 10_000
const word = JSON.stringify({ unsubscribe: { channel: '' } })

/**
 * whenBroken calls the function whenever a connection turns out to be dead. Other connections of
 * the page may be dead as well.
 */
export function whenBroken(tell: () => void): () => void {
  broken.add(tell)
  return () => broken.delete(tell)
}

/**
 * subscribe receives the messages of a channel until the returned function is called. After a break
 * it resumes behind the last id.
 */
export function subscribe(
  channel: string,
  after: string | undefined,
  hear: (m: Message) => void,
  more?: object,
): () => void {
  const sub: Subscription = { after, hear, more }
  subscriptions.set(channel, sub)
  if (socket?.readyState === WebSocket.OPEN) ask(channel, sub)
  else connect()
  return () => {
    if (subscriptions.get(channel) !== sub) return
    subscriptions.delete(channel)
    if (socket?.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ unsubscribe: { channel } }))
    if (subscriptions.size === 0) leave()
  }
}

function ask(channel: string, sub: Subscription) {
  socket!.send(JSON.stringify({ subscribe: { channel, after: sub.after, ...sub.more } }))
}

function connect() {
  if (socket || !getPrefs().live) return
  watch()
  clearTimeout(timer)
  become({ state: 'connecting' })
  const opened = new WebSocket(new URL('/v1/ws', location.href.replace(/^http/, 'ws')))
  socket = opened
  quiet = setTimeout(() => {
    drop()
    again()
  }, patience)
  opened.onopen = () => {
    if (socket !== opened) return
    alive()
    failures = 0
    become({ state: 'live' })
    for (const [channel, sub] of subscriptions) ask(channel, sub)
  }
  opened.onmessage = e => {
    if (socket !== opened) return
    alive()
    heard(parse(e.data as string) as Message)
  }
  opened.onclose = () => {
    if (socket !== opened) return
    drop()
    if (subscriptions.size > 0) again()
    else become({ state: 'idle' })
  }
}

function heard(m: Message) {
  const sub = m.channel === undefined ? undefined : subscriptions.get(m.channel)
  if (!sub) return
  if (m.id) sub.after = m.id
  if (m.event === 'closed' && (m.data as { reason?: string })?.reason === 'interrupted')
    ask(m.channel!, sub)
  else sub.hear(m)
}

function alive() {
  clearTimeout(quiet)
  quiet = setTimeout(askForWord, silence)
}

function askForWord() {
  clearTimeout(quiet)
  socket!.send(word)
  quiet = setTimeout(replace, patience)
}

function replace() {
  drop()
  connect()
  for (const tell of broken) tell()
}

/** watch retries the connection at once on every sign that the server may be reachable again. */
function watch() {
  if (watching) return
  watching = true
  whenBack(tryNow)
  addEventListener('online', tryNow)
  document.addEventListener('visibilitychange', () => document.hidden || tryNow())
}

/**
 * tryNow probes an open connection. It replaces an attempt in flight, because that attempt may date
 * from before the server came back.
 */
function tryNow() {
  if (live.state === 'live') return askForWord()
  if (live.state === 'idle') return
  drop()
  connect()
}

/** again schedules the next attempt with a backoff of at most five seconds. */
function again() {
  const wait = Math.min(5000, 500 * 2 ** failures++)
  become({ state: 'off', until: Date.now() + wait })
  timer = setTimeout(connect, wait)
}

function leave() {
  clearTimeout(timer)
  drop()
  become({ state: 'idle' })
}

function drop() {
  clearTimeout(quiet)
  const old = socket
  socket = undefined
  old?.close()
}

/**
 * follow closes or opens the connection after the user has changed the preference for live updates.
 */
export function follow() {
  if (getPrefs().live) {
    failures = 0
    if (subscriptions.size > 0) connect()
  } else leave()
}

function become(next: Live) {
  live = next
  for (const tell of listeners) tell()
}

export function useLive(): Live {
  return useSyncExternalStore(
    tell => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => live,
  )
}
