import { useSyncExternalStore } from 'react'
import { whenBack } from './call'
import { getPrefs } from './prefs'
import { parse } from './json'

/** What the server says on a channel. */
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

/** live: what happens is heard; connecting: it is about to be; off: it is asked for from time to time. */
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

// The server pings every 15 s, of which browsers tell pages nothing. So a connection that is silent is asked for a word: by a request that has no
// effect, and is refused. The server lets a client take ten seconds for a message, and has as long.
const silence = 10_000,
  patience = 10_000
const word = JSON.stringify({ unsubscribe: { channel: '' } })

/** Tells whenever a connection turns out to be dead: others of the page may be as well. */
export function whenBroken(tell: () => void): () => void {
  broken.add(tell)
  return () => broken.delete(tell)
}

/** Hears a channel until the function that it returns is called. Where it breaks off it goes on behind the last id. */
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

/** Whatever says that the server may be reached again has it tried at once. */
function watch() {
  if (watching) return
  watching = true
  whenBack(tryNow)
  addEventListener('online', tryNow)
  document.addEventListener('visibilitychange', () => document.hidden || tryNow())
}

/** A try that has not been answered may be of the time before: another one is made in its place. */
function tryNow() {
  if (live.state === 'live') return askForWord()
  if (live.state === 'idle') return
  drop()
  connect()
}

/** Tries again, later each time, up to five seconds. */
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

/** Stops hearing, or begins again, as the person has chosen. */
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
