import { select } from 'd3-selection'
import { zoom, zoomIdentity, type ZoomBehavior, type ZoomTransform } from 'd3-zoom'
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from 'react'
import { usePrefs } from '../data/prefs'
import { Icon } from '../parts/Icon'
import type { Drawing, Drawn } from './arrange'
import { colorsOf, near, paint, type Colors, type View } from './paint'
import { texts } from '../texts'

const t = texts.graph

interface Props {
  drawing: Drawing
  label: string
  tone: (i: number) => string
  taken: (from: number, to: number) => boolean
  card: (n: Drawn) => ReactNode
  name: (i: number) => string
  selected?: number
  select: (i: number | undefined) => void
  toggle: (i: number) => void
  tools?: ReactNode
  stamp: unknown // changes whenever the content of the cards does
}

/** doubleClickTime is how many milliseconds a second click on a node may take. */
const doubleClickTime = 400

const margin = 32,
  mostCards = 400

/**
 * GraphView shows a plan that can be panned and zoomed: lines on a canvas, and above it a card for
 * each visible node.
 */
export function GraphView(p: Props) {
  const frame = useRef<HTMLDivElement>(null),
    canvas = useRef<HTMLCanvasElement>(null),
    world = useRef<HTMLDivElement>(null)
  const behavior = useRef<ZoomBehavior<HTMLDivElement, unknown>>(undefined)
  const at = useRef<ZoomTransform>(zoomIdentity),
    moved = useRef(false),
    colors = useRef<Colors>(undefined)
  const latest = useRef(p)
  latest.current = p
  const [visible, setVisible] = useState<Drawn[]>([])
  const { theme } = usePrefs()

  const draw = useCallback(() => {
    const el = frame.current
    if (!el || !canvas.current || !world.current) return
    const view: View = {
      x: at.current.x,
      y: at.current.y,
      k: at.current.k,
      w: el.clientWidth,
      h: el.clientHeight,
    }
    colors.current ??= colorsOf(el)
    paint(canvas.current, view, latest.current.drawing, colors.current, latest.current)
    world.current.style.transform = `translate(${view.x}px,${view.y}px) scale(${view.k})`
    setVisible(old => kept(old, inSight(latest.current.drawing, view)))
  }, [])
  // A first click selects a node, which may make the graph narrower. The graph must not move before
  // a second click can follow, because that click would miss the node.
  const clicked = useRef(-doubleClickTime)
  const afterClicks = useCallback((act: () => void) => {
    const left = clicked.current + doubleClickTime - performance.now()
    if (left > 0) setTimeout(act, left)
    else act()
  }, [])
  const scheduled = useRef(0)
  const later = useCallback(() => {
    cancelAnimationFrame(scheduled.current)
    scheduled.current = requestAnimationFrame(draw)
  }, [draw])

  const fit = useCallback(() => {
    const el = frame.current,
      d = latest.current.drawing
    if (!el || !behavior.current || d.w === 0) return
    const k = Math.min(1, (el.clientWidth - 2 * margin) / d.w, (el.clientHeight - 2 * margin) / d.h)
    const next = zoomIdentity
      .translate((el.clientWidth - d.w * k) / 2, (el.clientHeight - d.h * k) / 2)
      .scale(k)
    select(el).call(behavior.current.transform, next)
    moved.current = false
  }, [])

  useLayoutEffect(() => {
    const el = frame.current!
    behavior.current = zoom<HTMLDivElement, unknown>()
      .scaleExtent([0.01, 2.5])
      .on('zoom', e => {
        at.current = e.transform as ZoomTransform
        if (e.sourceEvent) moved.current = true
        later()
      })
    select(el).call(behavior.current).on('dblclick.zoom', null)
    const sized = new ResizeObserver(() => {
      later()
      if (!moved.current) afterClicks(fit)
    })
    sized.observe(el)
    return () => {
      sized.disconnect()
      cancelAnimationFrame(scheduled.current)
      select(el).on('.zoom', null)
    }
  }, [fit, later, afterClicks])
  useLayoutEffect(() => (moved.current ? later() : fit()), [p.drawing, fit, later])
  useEffect(later, [p.stamp, p.selected, later])
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const repaint = () => {
      colors.current = undefined
      later()
    }
    repaint()
    dark.addEventListener('change', repaint)
    return () => dark.removeEventListener('change', repaint)
  }, [theme, later])

  const show = useCallback((n: Drawn) => {
    const el = frame.current,
      t = at.current
    if (!el) return // the graph is gone
    const x = t.applyX(n.x + n.w / 2),
      y = t.applyY(n.y + n.h / 2)
    if (t.k >= near && x > 60 && y > 40 && x < el.clientWidth - 60 && y < el.clientHeight - 40)
      return
    const k = Math.max(t.k, 0.8)
    moved.current = true
    select(el).call(
      behavior.current!.transform,
      zoomIdentity
        .translate(
          el.clientWidth / 2 - (n.x + n.w / 2) * k,
          el.clientHeight / 2 - (n.y + n.h / 2) * k,
        )
        .scale(k),
    )
  }, [])
  useEffect(() => {
    const n = p.drawing.nodes.find(n => n.i === p.selected)
    if (n) afterClicks(() => show(n))
  }, [p.selected, p.drawing, show, afterClicks])

  const scale = (by: number) => select(frame.current!).call(behavior.current!.scaleBy, by)
  const first = p.selected ?? p.drawing.nodes[0]?.i
  const keys = (e: KeyboardEvent) => {
    if (e.key === 'z' || e.key === 'Z') fit()
    else if (e.key === '+' || e.key === '-') scale(e.key === '+' ? 1.3 : 1 / 1.3)
    else if (e.key === 'o' && p.selected !== undefined) p.toggle(p.selected)
    else if (e.key === 'Escape' && p.selected !== undefined) p.select(undefined)
    else if (e.key.startsWith('Arrow')) {
      const next = neighbor(p.drawing, first, e.key)
      if (next !== undefined) p.select(next)
      requestAnimationFrame(() =>
        requestAnimationFrame(() =>
          world.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus(),
        ),
      )
    } else return
    e.preventDefault()
    e.stopPropagation()
  }

  const cards = useMemo(
    () =>
      visible.map(n => (
        <div
          key={n.i}
          className={`node tone-${p.tone(n.i)}${n.open ? ' open' : ''}${n.i === p.selected ? ' selected' : ''}`}
          style={{ left: n.x, top: n.y, width: n.w, height: n.h }}
        >
          <button
            tabIndex={n.i === first ? 0 : -1}
            aria-pressed={n.i === p.selected}
            data-node={p.name(n.i)}
            onClick={() => {
              clicked.current = performance.now()
              p.select(n.i)
            }}
            onDoubleClick={() => p.toggle(n.i)}
          >
            {p.card(n)}
          </button>
        </div>
      )),
    [visible, p.stamp, p.selected, first, p.tone, p.card],
  )

  return (
    <div
      className="graph"
      ref={frame}
      onKeyDown={keys}
      role="group"
      aria-label={p.label}
      onClick={e => e.target === canvas.current && p.select(undefined)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div className="world" ref={world}>
        {cards}
      </div>
      <div className="graph-tools">
        {p.tools}
        <button onClick={() => scale(1.3)} title={t.zoomInKey} aria-label={t.zoomIn}>
          <Icon name="plus" />
        </button>
        <button onClick={() => scale(1 / 1.3)} title={t.zoomOutKey} aria-label={t.zoomOut}>
          <Icon name="minus" />
        </button>
        <button onClick={fit} title={t.fitKey} aria-label={t.fit}>
          <Icon name="fit" />
        </button>
      </div>
    </div>
  )
}

/** inSight returns the visible nodes; none if they would be too small to read. */
function inSight(d: Drawing, v: View): Drawn[] {
  if (v.k < near) return []
  const left = -v.x / v.k - 100,
    top = -v.y / v.k - 100,
    right = (v.w - v.x) / v.k + 100,
    bottom = (v.h - v.y) / v.k + 100
  return d.nodes
    .filter(n => n.x < right && n.x + n.w > left && n.y < bottom && n.y + n.h > top)
    .slice(0, mostCards)
}

function kept(old: Drawn[], next: Drawn[]): Drawn[] {
  return old.length === next.length && old.every((n, i) => n === next[i]) ? old : next
}

/**
 * neighbor returns the node that an arrow key leads to: left and right along an edge, up and down
 * to the nearest node.
 */
function neighbor(d: Drawing, from: number | undefined, key: string): number | undefined {
  const here = d.nodes.find(n => n.i === from)
  if (!here) return d.nodes[0]?.i
  if (key === 'ArrowRight') return d.edges.find(e => e.from === from)?.to
  if (key === 'ArrowLeft') return d.edges.find(e => e.to === from)?.from
  const up = key === 'ArrowUp'
  let best: Drawn | undefined,
    least = Infinity
  for (const n of d.nodes) {
    const dy = up ? here.y - n.y : n.y - here.y
    const far = dy + 3 * Math.abs(n.x - here.x)
    if (n !== here && dy > 0 && far < least) [best, least] = [n, far]
  }
  return best?.i
}
