import { useCallback, useMemo, useState } from 'react'
import type { NodeStats } from '../api.gen'
import { kindOf, type Graph } from '../data/plan'
import type { FlowView } from '../data/search'
import { span } from '../data/time'
import type { Drawn } from '../graph/arrange'
import { GraphView } from '../graph/GraphView'
import { useDrawing } from '../graph/useDrawing'
import { Icon } from '../parts/Icon'
import { Loading, outdated } from '../parts/Told'
import { byPlace, heatOf, legend, placeOf, slowness } from './heat'
import { Ended, useStats, WindowOf } from './Stats'
import { texts } from '../texts'

const t = texts.heat,
  { facts } = texts.flow

const tones: Record<string, string> = {
  approval: 'waiting',
  timer: 'paused',
  delay: 'paused',
  wait_event: 'waiting',
  choice: 'idle',
  subflow: 'running',
  branch: 'running',
}

/** FlowGraph shows the plan of a version, and the details of the selected node. */
export function FlowGraph({
  graph,
  view,
  set,
}: {
  graph: Graph
  view: FlowView
  set: (v: Partial<FlowView>) => void
}) {
  const [ghosts, setGhosts] = useState(false)
  const open = useMemo(() => view.open ?? [], [view.open])
  const drawing = useDrawing(graph, { open, ghosts })
  const selected =
    view.node === undefined
      ? undefined
      : graph.nodes.findIndex(n => n.key === view.node && (n.scope ?? '') === (view.scope ?? ''))
  const toggle = (i: number) => {
    const inside = graph.nodes[i].inner_scope
    if (inside === undefined) return
    set({
      open: open.includes(inside)
        ? open.filter(p => p !== inside && !p.startsWith(inside + '/'))
        : [...open, inside],
    })
  }
  const stats = useStats(
    graph.flow ?? '',
    graph.version,
    view.window ?? '24h',
    view.heat !== undefined,
  )
  const heat = useMemo(
    () => ({
      nodes: byPlace(stats.data),
      slowest: Math.max(0, ...(stats.data?.nodes ?? []).map(n => slowness(n, view.heat))),
      by: view.heat,
    }),
    [stats.data, view.heat],
  )
  const numbers = useCallback(
    (i: number) => (heat.by ? heat.nodes.get(placeOf(graph.nodes[i])) : undefined),
    [graph, heat],
  )
  const tone = useCallback(
    (i: number) =>
      heat.by
        ? heatOf(numbers(i), heat.by, heat.slowest)
        : (tones[graph.nodes[i].kind] ?? 'completed'),
    [graph, heat, numbers],
  )
  const card = useCallback(
    (d: Drawn) => (
      <Card graph={graph} drawn={d} toggle={toggle} numbers={heat.by && (numbers(d.i) ?? 'none')} />
    ),
    [graph, open, heat, numbers],
  )
  if (!drawing) return <Loading />
  const chosen = selected === undefined || selected < 0 ? undefined : graph.nodes[selected]
  return (
    <>
      <div className="graph-heat panel heat-bar" role="group" aria-label={t.label}>
        <label className="inline">
          {t.colors}
          <select
            value={view.heat ?? ''}
            onChange={e => set({ heat: (e.target.value || undefined) as FlowView['heat'] })}
          >
            <option value="">{t.kinds}</option>
            {(['failures', 'retries', 'p95', 'wait'] as const).map(by => (
              <option key={by} value={by}>
                {t[by]}
              </option>
            ))}
          </select>
        </label>
        {view.heat && <WindowOf view={view} set={set} />}
        {view.heat && stats.data && <Ended of={stats.data} />}
        {view.heat && (
          <span className="faint">{stats.isError ? outdated(stats.error) : legend[view.heat]}</span>
        )}
      </div>
      <GraphView
        drawing={drawing}
        stamp={heat}
        label={texts.graph.ofFlow(graph.flow ?? '')}
        selected={selected}
        tone={tone}
        taken={() => true}
        card={card}
        name={i => graph.nodes[i].key}
        toggle={toggle}
        select={i =>
          set(
            i === undefined
              ? { node: undefined, scope: undefined }
              : { node: graph.nodes[i].key, scope: graph.nodes[i].scope || undefined },
          )
        }
        tools={
          graph.nodes.some(n => n.generated) ? (
            <button
              aria-pressed={ghosts}
              onClick={() => setGhosts(!ghosts)}
              title={texts.graph.generatedTitle}
            >
              {texts.graph.generated(ghosts)}
            </button>
          ) : undefined
        }
      />
      {chosen && (
        <aside className="float panel" aria-label={texts.flow.node(chosen.key)}>
          <div className="side-head">
            <h2>{chosen.key}</h2>
            <button
              className="quiet"
              onClick={() => set({ node: undefined, scope: undefined })}
              aria-label={texts.close}
            >
              <Icon name="cross" />
            </button>
          </div>
          <dl className="about">
            {(
              [
                [facts.kind, chosen.kind],
                [facts.handler, chosen.handler],
                [facts.route, chosen.route],
                [facts.each, chosen.each],
                [facts.concurrency, chosen.concurrency],
                [facts.when, chosen.when],
                [facts.retry, chosen.retry],
                [facts.timeout, span(chosen.timeout_ms || undefined)],
                [facts.compensate, chosen.compensate],
                [facts.keys, chosen.keys?.join(', ')],
                [facts.line, chosen.line],
              ] as const
            ).map(([name, value]) =>
              value ? (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ) : null,
            )}
          </dl>
        </aside>
      )}
    </>
  )
}

/** told summarizes the statistics of a node, short enough for its card. */
function told(n: NodeStats | 'none'): string {
  if (n === 'none') return t.notVisited
  return [
    t.visits(n.count),
    n.failed > 0 && t.failed(n.failed),
    n.count > 0 && t.took(span(n.duration.p95_ms)),
  ]
    .filter(Boolean)
    .join(' · ')
}

function Card({
  graph,
  drawn,
  toggle,
  numbers,
}: {
  graph: Graph
  drawn: Drawn
  toggle: (i: number) => void
  numbers?: NodeStats | 'none'
}) {
  const node = graph.nodes[drawn.i]
  const { word, icon } = kindOf(node)
  return (
    <>
      <span className="node-top">
        <Icon name={icon} size={15} />
        <b className="ellipsis">{node.key}</b>
        {node.inner_scope !== undefined && (
          <span
            className="opener"
            onClick={e => {
              e.stopPropagation()
              toggle(drawn.i)
            }}
            title={drawn.open ? texts.graph.collapse : texts.graph.expand}
          >
            <Icon name={drawn.open ? 'minus' : 'plus'} size={13} />
          </span>
        )}
      </span>
      {drawn.h >= 50 && !drawn.open && (
        <span className="node-sub">
          <span className="ellipsis took" title={numbers && told(numbers)}>
            {numbers ? told(numbers) : node.each ? texts.graph.each(word, node.each) : word}
          </span>
        </span>
      )}
    </>
  )
}
