import type { VisitComparison } from '../api.gen'
import type { Graph, GraphEdge } from './plan'

/** Met is the result of comparing two tasks at a node at the top of their flows. */
export type Met = 'same' | 'differs' | 'only a' | 'only b' | 'neither'

export interface Merged {
  graph: Graph
  met: Met[]
  first?: number
}

/**
 * merge combines the top nodes of two plans in one graph and marks the nodes where the tasks
 * differ, and the first of these. A difference inside a node counts for that node.
 */
export function merge(a: Graph, b: Graph, pairs: VisitComparison[]): Merged {
  const nodes = [...tops(a)],
    place = new Map(nodes.map((n, i) => [n.key, i]))
  for (const n of tops(b)) {
    if (place.has(n.key)) continue
    place.set(n.key, nodes.length)
    nodes.push(n)
  }
  const edges = new Map<string, GraphEdge>()
  for (const of of [a, b]) {
    for (const e of of.edges) {
      const from = place.get(of.nodes[e.from].key),
        to = e.to < 0 ? -1 : place.get(of.nodes[e.to].key)
      if (
        !top(of, e.from) ||
        (e.to >= 0 && !top(of, e.to)) ||
        from === undefined ||
        to === undefined
      )
        continue
      edges.set(`${from} ${to} ${e.action ?? ''} ${e.kind ?? ''}`, { ...e, from, to })
    }
  }
  const met: Met[] = nodes.map(() => 'neither')
  let first: number | undefined
  for (const p of pairs) {
    const i = place.get(topOf(p))
    if (i === undefined) continue
    const now: Met = !p.task ? 'only b' : !p.other ? 'only a' : p.differences.length > 0 ? 'differs' : 'same'
    if (now !== 'same') first ??= i
    met[i] = met[i] === 'neither' || met[i] === now ? now : 'differs'
  }
  const root = { ...(a.scopes[0] ?? b.scopes[0]), first_node: 0, node_count: nodes.length }
  return { graph: { ...a, nodes, edges: [...edges.values()], scopes: [root] }, met, first }
}

function top(g: Graph, i: number): boolean {
  const root = g.scopes[0]
  return root !== undefined && i >= root.first_node && i < root.first_node + root.node_count
}

const tops = (g: Graph) =>
  g.nodes.filter((_, i) => top(g, i)).map(n => ({ ...n, inner_scope: undefined }))

/** topOf returns the top node of a visit, or the top node that contains it. */
function topOf(p: VisitComparison): string {
  if (!p.scope) return p.node
  return p.scope
    .split('/')[0]
    .replace(/#\d+$/, '')
    .replaceAll('%2F', '/')
    .replaceAll('%23', '#')
    .replaceAll('%25', '%')
}
