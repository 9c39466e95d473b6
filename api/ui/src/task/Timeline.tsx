import { useQueries } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react'
import type { Timeline } from '../api.gen'
import { call } from '../data/call'
import type { Digest } from '../data/digest'
import type { TaskView } from '../data/search'
import { isOver } from '../data/task'
import { now as clock, span } from '../data/time'
import {
  axisOf,
  rowsOf,
  waitedFor,
  zoomed,
  zoomOf,
  type Axis,
  type Span,
  type TimelineRow,
} from '../data/timeline'
import { Icon } from '../parts/Icon'
import { Sign, toneOf, wordOf } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { useTick } from '../parts/When'
import { texts } from '../texts'

const t = texts.timeline

const rowHeight = 30

/**
 * TimelineTab shows when each visit was active: its attempts, its waits, and the visits that
 * determined the end (the critical path).
 */
export function TimelineTab({
  digest,
  view,
  set,
}: {
  digest: Digest
  view: TaskView
  set: (v: Partial<TaskView>) => void
}) {
  useTick()
  const [fold, setFold] = useState(true)
  const zoom = zoomOf(view.zoom)
  const closing = digest.scopes.find(s => s.scope.startsWith('~'))?.scope
  const scopes = ['', ...(closing ? [closing] : []), ...(view.open ?? [])]
  const told = useTimelines(digest, scopes, zoom)
  // loading another range takes a moment, during which the page stays as it is
  const last = useRef(new Map<string, Timeline>())
  const known = useMemo(() => {
    const now = new Map(
      scopes.flatMap((scope, i) => {
        const found = told[i].data ?? last.current.get(scope)
        return found?.task === digest.task ? [[scope, found] as const] : []
      }),
    )
    last.current = now
    return now
  }, [told.map(q => q.dataUpdatedAt).join(), scopes.join('\n'), view.zoom, digest.task])
  const root = known.get('')
  const rows = useMemo(
    () => [...rowsOf(known), ...(closing ? rowsOf(known, closing) : [])],
    [known, closing],
  )
  if (!root)
    return told[0].isError ? (
      <Trouble error={told[0].error} again={() => void told[0].refetch()} />
    ) : (
      <Loading />
    )
  const goesOn = !isOver(digest.state)
  const at = goesOn ? Math.max(root.to_ms, clock() - root.base_ms) : root.to_ms
  const end = root.ended_ms < 0 || closing ? at : root.ended_ms
  const whole: Span = [
    0,
    Math.max(1, end, ...[...known.values()].map(t => (t.ended_ms < 0 ? at : t.ended_ms))),
  ]
  const [from, to] = zoom ?? whole
  const axis = axisOf(
    rows.map(r => r.lane),
    from,
    to,
    at,
    fold,
  )
  const show = (to: Span | undefined) => set({ zoom: to && to.join('-') })
  const step = (factor: number, move = 0) => show(zoomed([from, to], whole, factor, move))
  const left = [...known.values()].reduce((sum, t) => sum + (t.omitted ?? 0), 0)
  return (
    <div className="timeline" onKeyDown={e => onKey(e, step, show)}>
      <div className="table-tools">
        <span className="faint">
          {t.count(rows.length, span(to - from))}
          {left > 0 && t.leftOut(left)}
        </span>
        {axis.folded.length > 0 && <span className="faint">{t.folded(axis.folded.length)}</span>}
        <button aria-pressed={fold} onClick={() => setFold(!fold)} title={t.foldTitle}>
          {t.fold}
        </button>
        <button onClick={() => step(0.5)} title={t.zoomInKey} aria-label={t.zoomIn}>
          <Icon name="plus" size={13} />
        </button>
        <button
          onClick={() => step(2)}
          title={t.zoomOutKey}
          aria-label={t.zoomOut}
          disabled={!zoom}
        >
          <Icon name="minus" size={13} />
        </button>
        <button onClick={() => show(undefined)} disabled={!zoom} title={t.allKey}>
          {t.all}
        </button>
      </div>
      <Lanes rows={rows} axis={axis} now={at} goesOn={goesOn} view={view} set={set} show={show} />
    </div>
  )
}

function useTimelines(digest: Digest, scopes: string[], zoom: Span | undefined) {
  const when = (ms: number) => new Date(digest.base_ms + ms).toISOString()
  return useQueries({
    queries: scopes.map(scope => ({
      queryKey: ['task', digest.task, 'timeline', scope, zoom?.join()],
      retry: false,
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call(
          'GET /v1/tasks/{task}/timeline',
          {
            path: { task: digest.task },
            query: {
              scope: scope || undefined,
              bins: 400,
              ...(zoom && { from: when(zoom[0]), to: when(zoom[1]) }),
            },
          },
          signal,
        ),
    })),
  })
}

function onKey(
  e: KeyboardEvent,
  step: (factor: number, move?: number) => void,
  show: (to: undefined) => void,
) {
  if (e.ctrlKey || e.metaKey || e.altKey) return
  const act = {
    '+': () => step(0.5),
    '=': () => step(0.5),
    '-': () => step(2),
    ArrowLeft: () => step(1, -0.25),
    ArrowRight: () => step(1, 0.25),
    '0': () => show(undefined),
  }[e.key]
  if (!act) return
  e.preventDefault()
  e.stopPropagation()
  act()
}

function Lanes({
  rows,
  axis,
  now,
  goesOn,
  view,
  set,
  show,
}: {
  rows: TimelineRow[]
  axis: Axis
  now: number
  goesOn: boolean
  view: TaskView
  set: (v: Partial<TaskView>) => void
  show: (to: Span | undefined) => void
}) {
  const box = useRef<HTMLDivElement>(null),
    tracks = useRef<HTMLDivElement>(null)
  const [brush, setBrush] = useState<Span>()
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  const part = (e: PointerEvent) => {
    const r = tracks.current!.getBoundingClientRect()
    return Math.min(1, Math.max(0, (e.clientX - r.left) / r.width))
  }
  const down = (e: PointerEvent) => {
    if (e.button !== 0 || (e.target as Element).closest('button')) return
    e.currentTarget.setPointerCapture(e.pointerId)
    setBrush([part(e), part(e)])
  }
  const up = () => {
    if (brush && Math.abs(brush[1] - brush[0]) > 0.01) {
      const [a, b] = [Math.min(...brush), Math.max(...brush)]
      show([Math.floor(axis.back(a)), Math.ceil(Math.max(axis.back(b), axis.back(a) + 1))])
    }
    setBrush(undefined)
  }
  const toggle = (r: TimelineRow) => {
    const list = view.open ?? []
    set({
      open: r.open
        ? list.filter(p => p !== r.inside && !p.startsWith(r.inside + '/'))
        : [...list, r.inside!],
    })
  }
  return (
    <div
      className="timeline-box"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={t.label}
      onPointerDown={down}
      onPointerMove={e => brush && setBrush([brush[0], part(e)])}
      onPointerUp={up}
      onPointerCancel={() => setBrush(undefined)}
    >
      <div className="timeline-axis" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map(f => (
          <span key={f} style={{ left: `${100 * f}%` }}>
            {span(axis.back(f)) || '0'}
          </span>
        ))}
      </div>
      <div className="timeline-over" ref={tracks} aria-hidden="true">
        {axis.folded.map(([a, b]) => (
          <i key={a} className="timeline-fold" style={place(axis, a, b)} />
        ))}
        {goesOn && now <= axis.to && (
          <i className="timeline-now" style={{ left: `${100 * axis.at(now)}%` }} />
        )}
        {brush && (
          <i
            className="timeline-brush"
            style={{
              left: `${100 * Math.min(...brush)}%`,
              width: `${100 * Math.abs(brush[1] - brush[0])}%`,
            }}
          />
        )}
      </div>
      <ol style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(v => {
          const r = rows[v.index]
          return (
            <Lane
              key={`${r.scope}\n${r.lane.node}\n${r.lane.visit}`}
              row={r}
              top={v.start}
              index={v.index}
              of={rows.length}
              axis={axis}
              now={now}
              chosen={r.lane.node === view.node && r.scope === (view.scope ?? '')}
              select={() =>
                set({ node: r.lane.node, scope: r.scope || undefined, unit: undefined })
              }
              toggle={r.inside ? () => toggle(r) : undefined}
            />
          )
        })}
      </ol>
    </div>
  )
}

const place = (axis: Axis, from: number, to: number) => ({
  left: `${100 * axis.at(from)}%`,
  width: `${100 * (axis.at(to) - axis.at(from))}%`,
})

interface LaneProps {
  row: TimelineRow
  top: number
  index: number
  of: number
  axis: Axis
  now: number
  chosen: boolean
  select: () => void
  toggle?: () => void
}

function Lane({
  row: { lane: l, scope, depth, critical, open },
  top,
  index,
  of,
  axis,
  now,
  chosen,
  select,
  toggle,
}: LaneProps) {
  const ended = l.ended_ms < 0 ? now : l.ended_ms,
    waited = waitedFor(l, now)
  const told = [
    wordOf(l.state),
    t.took(span(ended - l.entered_ms)),
    l.units && l.units > 1 ? t.units(l.units) : '',
    l.failed ? t.failed(l.failed) : '',
    ...waited.map(([what, ms]) => t.waited(span(ms), t.waits[what] ?? what)),
    critical ? t.critical : '',
  ]
    .filter(Boolean)
    .join(', ')
  return (
    <li
      className={chosen ? 'chosen' : ''}
      style={{ transform: `translateY(${top}px)` }}
      aria-setsize={of}
      aria-posinset={index + 1}
      title={told}
    >
      <span className="timeline-node" style={{ paddingLeft: 14 * depth }}>
        {toggle ? (
          <button
            className="opener"
            onClick={toggle}
            aria-expanded={open}
            aria-label={t.inside(l.node)}
          >
            <Icon name={open ? 'minus' : 'plus'} size={12} />
          </button>
        ) : null}
        <button className="timeline-name" onClick={select}>
          <Sign state={l.state} size={14} />
          <span className="ellipsis">
            {depth === 0 && scope && <span className="faint">{scope}/</span>}
            {l.node}
            {l.visit > 1 && <span className="faint"> ×{l.visit}</span>}
          </span>
          <span className="unseen">, {told}</span>
        </button>
      </span>
      <span className="timeline-track" aria-hidden="true">
        <i
          className={`lane-of tone-${toneOf(l.state)}${critical ? ' critical' : ''}`}
          style={place(axis, l.entered_ms, ended)}
        />
        {l.waits?.map((w, i) => (
          <i key={i} className="wait-of" style={place(axis, w.started_ms, w.ended_ms < 0 ? now : w.ended_ms)} />
        ))}
        {l.attempts?.map(a => (
          <i
            key={`${a.unit}.${a.attempt}`}
            className={`attempt-of tone-${toneOf(a.state)}`}
            style={place(axis, a.claimed_ms ?? a.started_ms, a.ended_ms < 0 ? now : a.ended_ms)}
          />
        ))}
        {l.bins && <Density row={l} axis={axis} />}
      </span>
      <span className="number">{span(ended - l.entered_ms)}</span>
    </li>
  )
}

/** Density shows many attempts: how many were active at each time, and when some failed. */
function Density({ row: l, axis }: { row: TimelineRow['lane']; axis: Axis }) {
  const most = Math.max(...l.bins!.map(b => b.running), 1)
  const shape = (of: (b: { running: number; failed?: number }) => number) =>
    l
      .bins!.filter(b => of(b) > 0)
      .map(b => {
        const x = 1000 * axis.at(b.at_ms),
          w = Math.max(1.5, 1000 * axis.at(b.at_ms + (l.bin_ms ?? 1)) - x),
          h = Math.max(2, (18 * of(b)) / most)
        return `M${x} ${20 - h}h${w}V20h-${w}z`
      })
      .join('')
  return (
    <svg className="density" viewBox="0 0 1000 20" preserveAspectRatio="none">
      <path className="tone-completed" d={shape(b => b.running)} />
      <path className="tone-failed" d={shape(b => b.failed ?? 0)} />
    </svg>
  )
}
