// A layered layout from left to right, in these steps:
//
// - reverse cycles
// - assign nodes to layers
// - give long edges a place in each layer that they cross
// - order each layer by the neighbors of its nodes
// - move nodes so that edges become straight
//
// The layout is pure, so it can run in a worker.

export interface Box {
  id: string
  w: number
  h: number
}
export interface Line {
  from: string
  to: string
  label?: string
  dashed?: boolean
}
export interface Placed {
  id: string
  x: number
  y: number
  w: number
  h: number
}
export interface Route {
  from: string
  to: string
  label?: string
  dashed?: boolean
  back: boolean
  points: number[]
}
export interface Layout {
  w: number
  h: number
  boxes: Placed[]
  routes: Route[]
}

const gapX = 56,
  gapY = 20,
  sweeps = 8
const most = 40_000 // places of long edges; beyond it, edges are drawn straight

interface Cell {
  box?: Box
  layer: number
  order: number
  y: number
  w: number
  h: number
  ins: number[]
  outs: number[]
}

/** layout places boxes of any size. Edges that name a missing box are ignored. */
export function layout(boxes: Box[], lines: Line[]): Layout {
  if (boxes.length === 0) return { w: 0, h: 0, boxes: [], routes: [] }
  const index = new Map(boxes.map((b, i) => [b.id, i]))
  const known = lines.filter(l => index.has(l.from) && index.has(l.to) && l.from !== l.to)
  const pairs = known.map(l => [index.get(l.from)!, index.get(l.to)!] as [number, number])
  const back = turned(boxes.length, pairs)
  const directed = pairs.map(([a, b], i) => (back[i] ? [b, a] : [a, b]) as [number, number])
  const layers = layersOf(boxes.length, directed)
  const cells: Cell[] = boxes.map((box, i) => ({
    box,
    layer: layers[i],
    order: 0,
    y: 0,
    w: box.w,
    h: box.h,
    ins: [],
    outs: [],
  }))
  const paths = directed.map(([a, b]) => thread(cells, a, b))
  const rows = ordered(cells)
  straighten(cells, rows)
  return drawn(cells, rows, boxes.length, paths, known, back)
}

/** turned marks the edges that lead back, found by a depth-first search without recursion. */
function turned(n: number, pairs: [number, number][]): boolean[] {
  const outs: number[][] = Array.from({ length: n }, () => [])
  pairs.forEach(([a], i) => outs[a].push(i))
  const back = pairs.map(() => false)
  const seen = new Uint8Array(n) // 1 = on the current path, 2 = done
  for (let root = 0; root < n; root++) {
    if (seen[root]) continue
    const stack: [number, number][] = [[root, 0]]
    seen[root] = 1
    while (stack.length > 0) {
      const top = stack[stack.length - 1]
      const edge = outs[top[0]][top[1]++]
      if (edge === undefined) {
        seen[top[0]] = 2
        stack.pop()
        continue
      }
      const to = pairs[edge][1]
      if (seen[to] === 1) back[edge] = true
      else if (seen[to] === 0) {
        seen[to] = 1
        stack.push([to, 0])
      }
    }
  }
  return back
}

/**
 * layersOf returns the layer of each node: behind all its predecessors. A node without predecessors
 * stands right before its first successor.
 */
function layersOf(n: number, edges: [number, number][]): number[] {
  const outs: number[][] = Array.from({ length: n }, () => [])
  const open = zeros(n)
  const ins = zeros(n)
  for (const [a, b] of edges) {
    outs[a].push(b)
    open[b]++
    ins[b]++
  }
  const layer = zeros(n)
  const queue = open.flatMap((count, i) => (count === 0 ? [i] : []))
  for (let at = 0; at < queue.length; at++) {
    for (const to of outs[queue[at]]) {
      layer[to] = Math.max(layer[to], layer[queue[at]] + 1)
      if (--open[to] === 0) queue.push(to)
    }
  }
  for (let i = 0; i < n; i++) {
    if (ins[i] === 0 && outs[i].length > 0) layer[i] = Math.min(...outs[i].map(to => layer[to])) - 1
  }
  return layer
}

const zeros = (n: number): number[] => Array.from({ length: n }, () => 0)

/** thread gives an edge a place in each layer that it crosses. */
function thread(cells: Cell[], a: number, b: number): number[] {
  const path = [a]
  if (cells.length < most) {
    for (let layer = cells[a].layer + 1; layer < cells[b].layer; layer++) {
      cells.push({ layer, order: 0, y: 0, w: 0, h: 4, ins: [], outs: [] })
      path.push(cells.length - 1)
    }
  }
  path.push(b)
  for (let i = 1; i < path.length; i++) {
    cells[path[i - 1]].outs.push(path[i])
    cells[path[i]].ins.push(path[i - 1])
  }
  return path
}

/** ordered returns the layers, each in the order with few crossing edges. */
function ordered(cells: Cell[]): number[][] {
  const rows: number[][] = []
  cells.forEach((c, i) => (rows[c.layer] ??= []).push(i))
  for (let i = 0; i < rows.length; i++) number(cells, (rows[i] ??= []))
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0
    for (let i = 0; i < rows.length; i++) {
      const row = rows[down ? i : rows.length - 1 - i]
      const wish = new Map(
        row.map(c => [c, mean(cells, down ? cells[c].ins : cells[c].outs, cells[c].order)]),
      )
      row.sort((a, b) => wish.get(a)! - wish.get(b)! || cells[a].order - cells[b].order)
      number(cells, row)
    }
  }
  return rows
}

function number(cells: Cell[], row: number[]) {
  row.forEach((c, i) => (cells[c].order = i))
}

function mean(cells: Cell[], of: number[], otherwise: number): number {
  if (of.length === 0) return otherwise
  let sum = 0
  for (const i of of) sum += cells[i].order
  return sum / of.length
}

/** straighten moves the nodes of each layer towards their neighbors and keeps their order. */
function straighten(cells: Cell[], rows: number[][]) {
  for (const row of rows) {
    let y = 0
    for (const c of row) {
      cells[c].y = y + cells[c].h / 2
      y += cells[c].h + gapY
    }
  }
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0
    for (let i = 0; i < rows.length; i++) {
      const row = rows[down ? i : rows.length - 1 - i]
      settle(
        cells,
        row,
        row.map(c => wished(cells, c, down)),
      )
    }
  }
}

function wished(cells: Cell[], c: number, down: boolean): number {
  let near = down ? cells[c].ins : cells[c].outs
  if (near.length === 0) near = down ? cells[c].outs : cells[c].ins
  if (near.length === 0) return cells[c].y
  let sum = 0
  for (const n of near) sum += cells[n].y
  return sum / near.length
}

/**
 * settle returns the positions nearest to the wished ones at which no nodes overlap. Neighbors that
 * would overlap move as one block.
 */
function settle(cells: Cell[], row: number[], wish: number[]) {
  const blocks: { sum: number; weight: number; from: number }[] = []
  const offset: number[] = []
  let at = 0
  row.forEach((c, i) => {
    if (i > 0) at += (cells[row[i - 1]].h + cells[c].h) / 2 + gapY
    offset.push(at)
    const weight = cells[c].box ? 1 : 3 // keeps long edges straight
    blocks.push({ sum: (wish[i] - at) * weight, weight, from: i })
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1],
        before = blocks[blocks.length - 2]
      if (before.sum / before.weight <= last.sum / last.weight) break
      before.sum += last.sum
      before.weight += last.weight
      blocks.pop()
    }
  })
  blocks.forEach((b, i) => {
    const end = blocks[i + 1]?.from ?? row.length
    for (let k = b.from; k < end; k++) cells[row[k]].y = b.sum / b.weight + offset[k]
  })
}

function drawn(
  cells: Cell[],
  rows: number[][],
  n: number,
  paths: number[][],
  lines: Line[],
  back: boolean[],
): Layout {
  const x: number[] = [],
    width: number[] = []
  let right = 0
  rows.forEach((row, i) => {
    x[i] = right
    width[i] = row.reduce((w, c) => Math.max(w, cells[c].w), 0)
    right += width[i] + gapX
  })
  let top = Infinity,
    bottom = -Infinity
  for (const c of cells) {
    top = Math.min(top, c.y - c.h / 2)
    bottom = Math.max(bottom, c.y + c.h / 2)
  }
  const placed = cells
    .slice(0, n)
    .map(c => ({ id: c.box!.id, x: x[c.layer], y: c.y - c.h / 2 - top, w: c.w, h: c.h }))
  const routes = paths.map((path, i) => {
    const points: number[] = []
    path.forEach((at, k) => {
      const c = cells[at]
      if (k > 0) points.push(x[c.layer], c.y - top)
      if (k < path.length - 1)
        points.push(c.box ? x[c.layer] + c.w : x[c.layer] + width[c.layer], c.y - top)
    })
    return { ...lines[i], back: back[i], points: back[i] ? reversed(points) : points }
  })
  return { w: right - gapX, h: bottom - top, boxes: placed, routes }
}

function reversed(points: number[]): number[] {
  const out: number[] = []
  for (let i = points.length - 2; i >= 0; i -= 2) out.push(points[i], points[i + 1])
  return out
}
