import type { Drawing, DrawnEdge } from './arrange'

export interface View {
  x: number
  y: number
  k: number
  w: number
  h: number
}

/** Colors holds the page's colors in its current scheme, for the canvas. */
export interface Colors {
  edge: string
  taken: string
  text: string
  back: string
  lane: string
  tones: Record<string, string>
}

export interface Looks {
  tone: (i: number) => string
  taken: (from: number, to: number) => boolean
}

/**
 * near is the zoom below which nodes are rectangles on the canvas. Above it they are cards of the
 * page.
 */
export const near = 0.45

const tones = ['idle', 'running', 'completed', 'failed', 'waiting', 'paused', 'over']

export function colorsOf(el: HTMLElement): Colors {
  const probe = document.createElement('i')
  el.append(probe)
  const ask = (color: string) => {
    probe.style.color = color
    return getComputedStyle(probe).color
  }
  const colors = {
    edge: ask('var(--edge)'),
    taken: ask('var(--edge-taken)'),
    text: ask('var(--muted)'),
    back: ask('var(--bg)'),
    lane: ask('var(--lane)'),
    tones: Object.fromEntries(tones.map(t => [t, ask(`var(--${t})`)])),
  }
  probe.remove()
  return colors
}

export function paint(
  canvas: HTMLCanvasElement,
  view: View,
  drawing: Drawing,
  colors: Colors,
  looks: Looks,
) {
  const ratio = devicePixelRatio || 1
  const w = Math.round(view.w * ratio),
    h = Math.round(view.h * ratio)
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w
    canvas.height = h
  }
  const c = canvas.getContext('2d')!
  c.setTransform(1, 0, 0, 1, 0, 0)
  c.clearRect(0, 0, w, h)
  c.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * view.x, ratio * view.y)
  const seen = {
    left: -view.x / view.k,
    top: -view.y / view.k,
    right: (view.w - view.x) / view.k,
    bottom: (view.h - view.y) / view.k,
  }
  lanes(c, drawing, colors)
  edges(c, drawing, view, colors, looks, seen)
  if (view.k < near) boxes(c, drawing, colors, looks, seen)
}

type Seen = { left: number; top: number; right: number; bottom: number }

function lanes(c: CanvasRenderingContext2D, drawing: Drawing, colors: Colors) {
  for (const lane of drawing.lanes) {
    c.fillStyle = colors.lane
    c.beginPath()
    c.roundRect(lane.x, lane.y, lane.w, lane.h, 12)
    c.fill()
    c.fillStyle = colors.text
    c.font = '12px system-ui, sans-serif'
    c.textBaseline = 'top'
    c.fillText(lane.text, lane.x + 14, lane.y + 8)
  }
}

function edges(
  c: CanvasRenderingContext2D,
  drawing: Drawing,
  view: View,
  colors: Colors,
  looks: Looks,
  seen: Seen,
) {
  const labels: [string, number, number][] = []
  c.lineWidth = Math.max(1.4, 0.9 / view.k)
  for (const taken of [false, true]) {
    c.strokeStyle = taken ? colors.taken : colors.edge
    c.fillStyle = c.strokeStyle
    for (const dashed of [false, true]) {
      c.beginPath()
      for (const e of drawing.edges) {
        if (
          (e.kind === 'compensation') !== dashed ||
          looks.taken(e.from, e.to) !== taken ||
          !inSight(e, seen)
        )
          continue
        trace(c, e)
        if (e.label && view.k >= near) labels.push([e.label, ...middle(e)])
      }
      c.setLineDash(dashed ? [5, 5] : [])
      c.stroke()
    }
    c.setLineDash([])
    if (view.k >= 0.2)
      for (const e of drawing.edges)
        if (looks.taken(e.from, e.to) === taken && inSight(e, seen)) tip(c, e)
  }
  write(c, labels, colors)
}

function inSight(e: DrawnEdge, seen: Seen): boolean {
  const p = e.points
  let left = Infinity,
    right = -Infinity,
    top = Infinity,
    bottom = -Infinity
  for (let i = 0; i < p.length; i += 2) {
    left = Math.min(left, p[i])
    right = Math.max(right, p[i])
    top = Math.min(top, p[i + 1])
    bottom = Math.max(bottom, p[i + 1])
  }
  return (
    left - 60 < seen.right &&
    right + 60 > seen.left &&
    top - 60 < seen.bottom &&
    bottom + 60 > seen.top
  )
}

/** trace draws an edge: curves between layers, straight lines across them. */
function trace(c: CanvasRenderingContext2D, e: DrawnEdge) {
  const p = e.points
  c.moveTo(p[0], p[1])
  if (e.kind === 'compensation') {
    const mid = (p[1] + p[3]) / 2
    c.bezierCurveTo(p[0], mid, p[2], mid, p[2], p[3])
    return
  }
  for (let i = 2; i < p.length; i += 2) {
    const bend = (p[i] - p[i - 2]) / 2
    if (p[i + 1] === p[i - 1]) c.lineTo(p[i], p[i + 1])
    else c.bezierCurveTo(p[i - 2] + bend, p[i - 1], p[i] - bend, p[i + 1], p[i], p[i + 1])
  }
}

function tip(c: CanvasRenderingContext2D, e: DrawnEdge) {
  const p = e.points,
    x = p[p.length - 2],
    y = p[p.length - 1]
  const [dx, dy] = e.kind === 'compensation' ? [0, 1] : e.back ? [-1, 0] : [1, 0]
  c.beginPath()
  c.moveTo(x, y)
  c.lineTo(x - 7 * dx - 4 * dy, y - 7 * dy - 4 * dx)
  c.lineTo(x - 7 * dx + 4 * dy, y - 7 * dy + 4 * dx)
  c.fill()
}

function middle(e: DrawnEdge): [number, number] {
  const p = e.points,
    i = Math.max(0, Math.floor(p.length / 4) * 2 - 2)
  return [(p[i] + p[i + 2]) / 2, (p[i + 1] + p[i + 3]) / 2]
}

function write(c: CanvasRenderingContext2D, labels: [string, number, number][], colors: Colors) {
  c.font = '11px system-ui, sans-serif'
  c.textBaseline = 'middle'
  c.textAlign = 'center'
  for (const [text, x, y] of labels) {
    const short = text.length > 18 ? text.slice(0, 17) + '…' : text
    const w = c.measureText(short).width + 8
    c.fillStyle = colors.back
    c.fillRect(x - w / 2, y - 8, w, 16)
    c.fillStyle = colors.text
    c.fillText(short, x, y)
  }
  c.textAlign = 'start'
}

function boxes(
  c: CanvasRenderingContext2D,
  drawing: Drawing,
  colors: Colors,
  looks: Looks,
  seen: Seen,
) {
  for (const n of drawing.nodes) {
    if (n.x > seen.right || n.x + n.w < seen.left || n.y > seen.bottom || n.y + n.h < seen.top)
      continue
    const color = colors.tones[looks.tone(n.i)] ?? colors.tones.idle
    c.fillStyle = c.strokeStyle = color
    if (n.open) c.strokeRect(n.x, n.y, n.w, n.h)
    else c.fillRect(n.x, n.y, n.w, n.h)
  }
}
