import { beforeAll, expect, test, vi } from 'vitest'

beforeAll(() => {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} })
})

test('an address survives parsing and formatting', async () => {
  const { parse, print, taskFilter } = await import('../../src/data/search')
  const address = '?state=failed&state=running&label=customer:7&since=24h'
  expect(print(taskFilter(parse(address)) as Record<string, unknown>)).toBe(address)
  expect(taskFilter(parse('?state=failed&flow='))).toEqual({
    state: ['failed'],
    flow: undefined,
    label: undefined,
    since: undefined,
    q: undefined,
    sort: undefined,
  })
})

test('times are formatted briefly', async () => {
  const { ago, millis, span } = await import('../../src/data/time')
  expect([80, 1234, 41_000, 250_000, 10_930_000, 190_000_000].map(span)).toEqual([
    '80ms',
    '1.2s',
    '41s',
    '4m 10s',
    '3h 2m',
    '2d 4h',
  ])
  expect(ago('2026-01-01T00:00:00Z', Date.parse('2026-01-01T02:00:00Z'))).toBe('2h ago')
  expect([millis('15m'), millis('7d'), millis('soon')]).toEqual([900_000, 604_800_000, undefined])
})

test('future times show the time left, and lasting ones their length', async () => {
  const { ahead, elapsed } = await import('../../src/data/time')
  const { setPrefs } = await import('../../src/data/prefs')
  vi.stubGlobal('document', { documentElement: { style: {} } })
  setPrefs({ zone: 'UTC' })
  const base = Date.parse('2025-11-28T07:30:00Z')
  const told = [
    '2025-11-30T02:30:00Z',
    '2025-11-28T09:00:00Z',
    '2025-11-28T07:30:30Z',
    '2025-11-28T07:30:01Z',
    '2025-11-28T07:00:00Z',
  ].map(at => ahead(at, base))
  expect(told).toEqual([
    'Sun 30 Nov 02:30 (in 1d 19h)',
    '09:00 (in 1h 30m)',
    'in 30s',
    undefined,
    undefined,
  ])
  expect([elapsed('2025-11-28T07:29:16Z', base), elapsed('2025-11-28T07:30:16Z', base)]).toEqual([
    '44s',
    '0ms',
  ])
})

test('changes update a digest', async () => {
  const { changed, nodeNow, planned } = await import('../../src/data/digest')
  const digest = {
    task: 't',
    flow: 'f',
    version: 1,
    version_id: 'v',
    mode: 'dag' as const,
    created_at: '',
    updated_at: '',
    base_ms: 1000,
    seq: 1,
    state: 'running' as const,
    paused: false,
    waits: [
      {
        node: 'b',
        kind: 'job' as const,
        text: 'a worker must poll for service gpu',
        service: 'gpu',
      },
    ],
    scopes: [
      {
        scope: '',
        mode: 'dag' as const,
        nodes: ['a', 'b'],
        state: [2, 1],
        visit: [1, 1],
        entered_ms: [0, 5],
        ended_ms: [4, -1],
        total: [1, 10],
        done: [1, 3],
      },
    ],
  }
  expect(nodeNow(digest, digest.scopes[0], 1)).toMatchObject({
    state: 'started',
    waits: true,
    total: 10,
    done: 3,
    entered: 1005,
    ended: undefined,
  })
  const next = changed(digest, {
    seq: 2,
    state: 'failed',
    paused: false,
    error: 'b: no gpu',
    updated_at: '',
    waits: [],
    scopes: [
      {
        scope: '',
        indexes: [1],
        state: [3],
        visit: [1],
        entered_ms: [5],
        ended_ms: [9],
        total: [10],
        done: [10],
        failed: [2],
        error: { 1: 'no gpu' },
      },
      { scope: 'x#1', indexes: [0] },
    ],
  })
  expect(nodeNow(next, next.scopes[0], 1)).toMatchObject({
    state: 'failed',
    waits: false,
    done: 10,
    failed: 2,
    ended: 1009,
    error: 'no gpu',
  })
  expect(nodeNow(next, next.scopes[0], 0)).toEqual(nodeNow(digest, digest.scopes[0], 0))
  expect(next.error).toBe('b: no gpu')
  expect(planned('order#1/ship%2Fmore#2')).toBe('order/ship%2Fmore')
})
