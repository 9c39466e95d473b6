import { expect, test } from 'vitest'
import type { VisitComparison } from '../../src/api.gen'
import { merge } from '../../src/data/merge'
import type { Graph } from '../../src/data/plan'

const plan = (...keys: string[]): Graph =>
  ({
    mode: 'graph',
    nodes: keys.map(key => ({ key, kind: 'executor' })),
    scopes: [{ scope: '', mode: 'graph', first_node: 0, node_count: keys.length }],
    edges: keys.slice(1).map((_, i) => ({ from: i, to: i + 1, action: 'default' })),
  }) as Graph

const pair = (node: string, differs: string[] = [], scope?: string): VisitComparison => {
  const went = {
    state: 'completed',
    attempts: 1,
    units: 1,
    duration_ms: 1,
    output_bytes: 0,
  } as const
  return { node, scope, visit: 1, differences: differs, task: went, other: went }
}

test('two plans become one graph that marks where their tasks differ', () => {
  const b = plan('reserve', 'check', 'ship')
  const only = { ...pair('check'), task: undefined }
  const m = merge(plan('reserve', 'pay', 'ship'), b, [
    pair('reserve'),
    pair('inner', ['output'], 'pay#1'),
    only,
  ])
  expect(m.graph.nodes.map(n => n.key)).toEqual(['reserve', 'pay', 'ship', 'check'])
  expect(m.graph.edges.map(e => `${m.graph.nodes[e.from].key}-${m.graph.nodes[e.to].key}`)).toEqual(
    ['reserve-pay', 'pay-ship', 'reserve-check', 'check-ship'],
  )
  expect(m.met).toEqual(['same', 'differs', 'neither', 'only b'])
  expect(m.first).toBe(1)
})

test('equal tasks differ nowhere', () => {
  expect(merge(plan('a'), plan('a'), [pair('a'), pair('a')]).first).toBeUndefined()
})
