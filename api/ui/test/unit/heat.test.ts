import { expect, test } from 'vitest'
import type { NodeStats } from '../../src/api.gen'
import { heatOf } from '../../src/flow/heat'

const node = (
  count: number,
  failed: number,
  p95_ms: number,
  more: Partial<NodeStats> = {},
): NodeStats => ({
  key: 'a',
  count,
  failed,
  retried: 0,
  skipped: 0,
  units: count,
  p95_trend_ms: [],
  duration: { p50_ms: 0, p95_ms, p99_ms: p95_ms, max_ms: p95_ms },
  ...more,
})

test('a node is hot by the share of its visits that failed', () => {
  expect(
    [undefined, node(0, 0, 0), node(100, 0, 9), node(100, 4, 9), node(100, 5, 9)].map(n =>
      heatOf(n, 'failures', 9),
    ),
  ).toEqual(['idle', 'idle', 'completed', 'waiting', 'failed'])
})

test('a node is hot by the share of its units that were retried', () => {
  expect(
    [0, 9, 10].map(retried => heatOf(node(100, 0, 9, { retried, units: 200 }), 'retries', 9)),
  ).toEqual(['completed', 'waiting', 'failed'])
})

test('a node is hot by its slowness compared with the slowest one', () => {
  expect(
    [node(1, 0, 99), node(1, 0, 100), node(1, 0, 500), node(1, 0, 1000)].map(n =>
      heatOf(n, 'p95', 1000),
    ),
  ).toEqual(['completed', 'waiting', 'failed', 'failed'])
  expect(heatOf(node(1, 0, 0), 'p95', 0)).toBe('completed')
  const waited = (ms: number) =>
    node(1, 0, 9, { wait: { p50_ms: 0, p95_ms: ms, p99_ms: ms, max_ms: ms } })
  expect([node(1, 0, 5000), waited(20), waited(90)].map(n => heatOf(n, 'wait', 100))).toEqual([
    'completed',
    'waiting',
    'failed',
  ])
})

test('the query beside a number is the filter of its list', async () => {
  const { filterOf } = await import('../../src/data/search')
  expect(
    filterOf(
      'ended_from=2026-01-02T12%3A00%3A00Z&error=pay%3A+card+%23+refused&flow=order&state=failed',
    ),
  ).toEqual({
    ended_from: '2026-01-02T12:00:00Z',
    error: 'pay: card # refused',
    flow: 'order',
    state: ['failed'],
  })
})
