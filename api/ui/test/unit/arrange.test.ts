import { expect, test } from 'vitest'
import type { Graph } from '../../src/data/plan'
import { arrange } from '../../src/graph/arrange'

const graph: Graph = {
  flow: 'order',
  version: 1,
  mode: 'dag',
  scopes: [
    { scope: '', mode: 'dag', first_node: 0, node_count: 3 },
    { scope: 'pack', mode: 'graph', node: 2, first_node: 3, node_count: 2 },
    { scope: '~', mode: 'dag', first_node: 5, node_count: 1 },
  ],
  nodes: [
    { key: 'pay', scope: '', kind: 'executor', compensate: 'refund' },
    { key: 'pack.gate', scope: '', kind: 'gate', generated: true, generated_for: 'pack' },
    { key: 'pack', scope: '', kind: 'subflow', inner_scope: 'pack' },
    { key: 'weigh', scope: 'pack', kind: 'choice' },
    { key: 'send', scope: 'pack', kind: 'executor' },
    { key: 'refund', scope: '~', kind: 'executor' },
  ],
  edges: [
    { from: 0, to: 1, kind: 'dependency' },
    { from: 1, to: 2, kind: 'dependency' },
    { from: 3, to: 4, action: 'light' },
    { from: 4, to: -1, action: 'default' },
    { from: 0, to: 5, kind: 'compensation' },
  ],
}

test('nodes made by the compiler are left out, and their neighbors are joined', () => {
  const drawn = arrange(graph, { open: [], ghosts: false })
  expect(drawn.nodes.map(n => n.i)).toEqual([0, 2, 5])
  expect(drawn.edges.map(e => [e.from, e.to, e.kind])).toEqual([
    [0, 2, undefined],
    [0, 5, 'compensation'],
  ])
  expect(arrange(graph, { open: [], ghosts: true }).nodes.map(n => n.i)).toEqual([0, 1, 2, 5])
})

test('an open scope is drawn within its node', () => {
  const drawn = arrange(graph, { open: ['pack'], ghosts: false })
  const at = new Map(drawn.nodes.map(n => [n.i, n]))
  const outer = at.get(2)!,
    inner = at.get(4)!
  expect(outer.open).toBe(true)
  expect(
    inner.x > outer.x &&
      inner.y > outer.y &&
      inner.x + inner.w < outer.x + outer.w &&
      inner.y + inner.h < outer.y + outer.h,
  ).toBe(true)
  expect(drawn.edges.find(e => e.from === 3)?.label).toBe('light')
})

test('undo and clean-up are in a lane below', () => {
  const drawn = arrange(graph, { open: [], ghosts: false })
  const bottom = Math.max(...drawn.nodes.filter(n => n.i < 5).map(n => n.y + n.h))
  expect(drawn.nodes.find(n => n.i === 5)!.y).toBeGreaterThan(bottom)
  expect(drawn.lanes).toHaveLength(1)
})
