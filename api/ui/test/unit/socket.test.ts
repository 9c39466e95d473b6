import { afterEach, beforeEach, expect, test, vi } from 'vitest'

class Socket {
  static OPEN = 1
  static all: Socket[] = []
  readyState = 0
  sent: string[] = []
  onopen?: () => void
  onclose?: () => void
  onmessage?: (m: { data: string }) => void
  constructor() {
    Socket.all.push(this)
  }
  send(text: string) {
    this.sent.push(text)
  }
  close() {
    this.readyState = 3
  }
  open() {
    this.readyState = 1
    this.onopen?.()
  }
  break() {
    this.readyState = 3
    this.onclose?.()
  }
}

let page: EventTarget
let answers: boolean

async function subscribed() {
  const { subscribe } = await import('../../src/data/socket')
  subscribe('tasks', undefined, () => {})
  return Socket.all
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.resetModules()
  Socket.all = []
  page = new EventTarget()
  answers = true
  vi.stubGlobal('WebSocket', Socket)
  vi.stubGlobal('location', { href: 'http://member/ui/' })
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} })
  vi.stubGlobal('document', page)
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
  vi.stubGlobal('fetch', async () => {
    if (!answers) throw new TypeError('Failed to fetch')
    return new Response('{}')
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('attempts are never more than five seconds apart', async () => {
  const sockets = await subscribed()
  for (let i = 0; i < 10; i++) {
    sockets.at(-1)!.break()
    vi.advanceTimersByTime(5000)
    expect(sockets).toHaveLength(i + 2)
  }
})

test.each(['online', 'visibilitychange'])('a retry follows at once after %s', async event => {
  const sockets = await subscribed()
  for (let i = 0; i < 5; i++) {
    sockets.at(-1)!.break()
    vi.advanceTimersByTime(5000)
  }
  sockets.at(-1)!.break()
  const before = sockets.length
  page.dispatchEvent(new Event(event))
  expect(sockets).toHaveLength(before + 1)
  sockets.at(-1)!.open()
  page.dispatchEvent(new Event(event))
  expect(sockets).toHaveLength(before + 1)
})

test('another answer triggers a retry at once, even while an attempt is pending', async () => {
  const { call } = await import('../../src/data/call')
  const sockets = await subscribed()
  for (const lost of [() => sockets.at(-1)!.break(), () => vi.advanceTimersByTime(5000)]) {
    lost()
    const before = sockets.length
    answers = false
    await expect(call('GET /v1/info', {})).rejects.toThrow('The server does not respond.')
    expect(sockets).toHaveLength(before)
    answers = true
    await call('GET /v1/info', {})
    expect(sockets).toHaveLength(before + 1)
  }
})

test('a connection that stays silent after a probe is replaced', async () => {
  const sockets = await subscribed()
  sockets[0].open()
  const asked = () => sockets[0].sent.filter(text => text.includes('unsubscribe')).length
  for (let i = 1; i < 5; i++) {
    vi.advanceTimersByTime(12_000)
    expect(asked()).toBe(i)
    sockets[0].onmessage!({ data: '{"channel":"","event":"rejected"}' })
  }
  vi.advanceTimersByTime(9_000)
  sockets[0].onmessage!({ data: '{"channel":"tasks","event":"stale"}' })
  vi.advanceTimersByTime(9_000)
  expect([sockets.length, asked()]).toEqual([1, 4])
  vi.advanceTimersByTime(12_000)
  expect([sockets.length, sockets[0].readyState]).toEqual([2, 3])
  sockets[1].open()
  expect(sockets[1].sent[0]).toContain('"subscribe"')
})

test('a connection that does not open in time is replaced', async () => {
  const sockets = await subscribed()
  vi.advanceTimersByTime(12_000)
  expect([sockets.length, sockets[0].readyState]).toEqual([2, 3])
})

test('a change of the network probes the connection at once', async () => {
  const sockets = await subscribed()
  sockets[0].open()
  page.dispatchEvent(new Event('online'))
  expect(sockets[0].sent.at(-1)).toContain('unsubscribe')
  vi.advanceTimersByTime(10_000)
  expect(sockets).toHaveLength(2)
})
