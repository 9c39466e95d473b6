import type { Graph, GraphEdge } from '../data/plan'
import { layout, type Box, type Line } from './layout'
import { texts } from '../texts'

/** Drawing holds the positions of a plan. Open scopes are boxes around their contents. */
export interface Drawing {
  w: number
  h: number
  nodes: Drawn[]
  edges: DrawnEdge[]
  lanes: Lane[]
}
export interface Drawn {
  i: number
  x: number
  y: number
  w: number
  h: number
  open: boolean
}
export interface DrawnEdge {
  from: number
  to: number
  label?: string
  kind?: 'dependency' | 'compensation'
  back: boolean
  points: number[]
}
export interface Lane {
  x: number
  y: number
  w: number
  h: number
  text: string
}

export interface Wishes {
  open: string[]
  ghosts: boolean
}

const card = { w: 208, h: 60 },
  ghost = { w: 148, h: 36 },
  pad = 16,
  head = 40,
  between = 56

/**
 * arrange lays out a plan: the root, each open scope within its node, and undo and clean-up in a
 * lane below.
 */
export function arrange(graph: Graph, wishes: Wishes): Drawing {
  const open = new Set(wishes.open)
  const shown = wishes.ghosts ? graph.edges : bridged(graph)
  const inner = new Map<string, Drawing>()

  const scopeOf = (path: string): Drawing => {
    const boxes: Box[] = [],
      known = new Set<number>()
    const scope = graph.scopes.find(s => s.scope === path)
    for (let i = scope?.first_node ?? 0; i < (scope ? scope.first_node + scope.node_count : 0); i++) {
      const n = graph.nodes[i]
      if (n.generated && !wishes.ghosts) continue
      known.add(i)
      let size = n.generated ? ghost : card
      if (n.inner_scope !== undefined && open.has(n.inner_scope)) {
        const within = scopeOf(n.inner_scope)
        inner.set(n.inner_scope, within)
        size = { w: Math.max(card.w, within.w + 2 * pad), h: within.h + head + pad }
      }
      boxes.push({ id: String(i), ...size })
    }
    const edges = shown.filter(e => e.kind !== 'compensation' && known.has(e.from) && known.has(e.to))
    const placed = layout(boxes, edges.map(lineOf))
    return {
      w: placed.w,
      h: placed.h,
      lanes: [],
      nodes: placed.boxes.map(b => ({
        i: Number(b.id),
        x: b.x,
        y: b.y,
        w: b.w,
        h: b.h,
        open: open.has(graph.nodes[Number(b.id)].inner_scope ?? '\n'),
      })),
      edges: placed.routes.map(r => ({
        from: Number(r.from),
        to: Number(r.to),
        label: r.label,
        kind: r.dashed ? 'dependency' : undefined,
        back: r.back,
        points: r.points,
      })),
    }
  }

  const all = unfolded(scopeOf(''), graph, inner)
  return graph.scopes.some(s => s.scope === '~')
    ? closing(all, row(scopeOf('~'), all, shown), shown)
    : all
}

/**
 * row places unconnected boxes beside each other, below the nodes that they undo where there is
 * room.
 */
function row(d: Drawing, above: Drawing, edges: GraphEdge[]): Drawing {
  if (d.edges.length > 0) return d
  const at = new Map(above.nodes.map(n => [n.i, n.x]))
  const wish = (n: Drawn) =>
    Math.min(
      above.w,
      ...edges.flatMap(e => (e.kind === 'compensation' && e.to === n.i ? [at.get(e.from) ?? above.w] : [])),
    )
  let x = 0
  const nodes = d.nodes
    .map(n => ({ n, wish: wish(n) }))
    .sort((a, b) => a.wish - b.wish)
    .map(({ n, wish }) => {
      const put = { ...n, x: wish < above.w ? Math.max(x, wish) : x, y: 0 }
      x = put.x + n.w + pad
      return put
    })
  return { ...d, nodes, w: x - pad, h: Math.max(...nodes.map(n => n.h)) }
}

function lineOf(e: GraphEdge): Line {
  return {
    from: String(e.from),
    to: String(e.to),
    label: e.action === 'default' ? undefined : e.action,
  }
}

/** unfolded puts the contents of open scopes where their nodes are. */
function unfolded(outer: Drawing, graph: Graph, inner: Map<string, Drawing>): Drawing {
  const all: Drawing = { ...outer, nodes: [], edges: [...outer.edges] }
  for (const n of outer.nodes) {
    all.nodes.push(n)
    const within = n.open ? inner.get(graph.nodes[n.i].inner_scope!) : undefined
    if (!within) continue
    const deep = moved(unfolded(within, graph, inner), n.x + pad, n.y + head)
    all.nodes.push(...deep.nodes)
    all.edges.push(...deep.edges)
  }
  return all
}

function moved(d: Drawing, dx: number, dy: number): Drawing {
  return {
    ...d,
    nodes: d.nodes.map(n => ({ ...n, x: n.x + dx, y: n.y + dy })),
    edges: d.edges.map(e => ({ ...e, points: e.points.map((v, k) => v + (k % 2 ? dy : dx)) })),
  }
}

/**
 * closing adds the lane of steps that run after all others, and lines to the nodes that they undo.
 */
function closing(all: Drawing, lane: Drawing, edges: GraphEdge[]): Drawing {
  const top = all.h + between
  const below = moved(lane, 0, top)
  const at = new Map([...all.nodes, ...below.nodes].map(n => [n.i, n]))
  const undo = edges.flatMap((e): DrawnEdge[] => {
    const from = at.get(e.from),
      to = at.get(e.to)
    if (e.kind !== 'compensation' || !from || !to) return []
    return [
      {
        from: e.from,
        to: e.to,
        kind: 'compensation',
        back: false,
        points: [from.x + from.w / 2, from.y + from.h, to.x + to.w / 2, to.y],
      },
    ]
  })
  return {
    w: Math.max(all.w, lane.w),
    h: top + lane.h,
    nodes: [...all.nodes, ...below.nodes],
    edges: [...all.edges, ...below.edges, ...undo],
    lanes: [
      ...all.lanes,
      {
        x: -pad,
        y: top - 28,
        w: Math.max(all.w, lane.w) + 2 * pad,
        h: lane.h + 28 + pad,
        text: texts.graph.closing,
      },
    ],
  }
}

/**
 * bridged returns the edges without the nodes that the compiler made. An edge to such a node leads
 * to the nodes behind it.
 */
function bridged(graph: Graph): GraphEdge[] {
  const outs = new Map<number, GraphEdge[]>()
  for (const e of graph.edges) {
    if (graph.nodes[e.from].generated) outs.set(e.from, [...(outs.get(e.from) ?? []), e])
  }
  const found: GraphEdge[] = []
  const seen = new Set<string>()
  const follow = (e: GraphEdge, to: number, passed: Set<number>) => {
    if (to < 0 || !graph.nodes[to].generated) {
      const name = `${e.from} ${to} ${e.kind} ${e.action}`
      if (!seen.has(name)) found.push({ ...e, to })
      seen.add(name)
      return
    }
    if (passed.has(to)) return
    passed.add(to)
    for (const next of outs.get(to) ?? []) follow(e, next.to, passed)
  }
  for (const e of graph.edges) {
    if (!graph.nodes[e.from].generated) follow(e, e.to, new Set())
  }
  return found
}
