import { useCallback, useMemo, useState } from 'react'
import { kindOf, type Graph } from '../data/plan'
import type { FlowView } from '../data/search'
import { span } from '../data/time'
import type { Drawn } from '../graph/arrange'
import { GraphView } from '../graph/GraphView'
import { useDrawing } from '../graph/useDrawing'
import { Icon } from '../parts/Icon'
import { Loading } from '../parts/Told'

const tones: Record<string, string> = { approval: 'waiting', timer: 'paused', delay: 'paused', wait_event: 'waiting', choice: 'idle', subflow: 'running', branch: 'running' }

/** The plan of a version, and what is known of the node that is chosen. */
export function FlowGraph({ graph, view, set }: { graph: Graph; view: FlowView; set: (v: Partial<FlowView>) => void }) {
  const [ghosts, setGhosts] = useState(false)
  const open = useMemo(() => view.open ?? [], [view.open])
  const drawing = useDrawing(graph, { open, ghosts })
  const selected = view.node === undefined ? undefined : graph.nodes.findIndex(n => n.key === view.node && (n.scope ?? '') === (view.scope ?? ''))
  const toggle = (i: number) => {
    const inside = graph.nodes[i].inside
    if (inside === undefined) return
    set({ open: open.includes(inside) ? open.filter(p => p !== inside && !p.startsWith(inside + '/')) : [...open, inside] })
  }
  const card = useCallback((d: Drawn) => <Card graph={graph} drawn={d} toggle={toggle} />, [graph, open])
  if (!drawing) return <Loading />
  const chosen = selected === undefined || selected < 0 ? undefined : graph.nodes[selected]
  return (
    <>
      <GraphView
        drawing={drawing} stamp={graph} label={`The plan of ${graph.flow}`} selected={selected} tone={i => tones[graph.nodes[i].kind] ?? 'completed'} taken={() => true} card={card}
        name={i => graph.nodes[i].key} toggle={toggle} select={i => set(i === undefined ? { node: undefined, scope: undefined } : { node: graph.nodes[i].key, scope: graph.nodes[i].scope || undefined })}
        tools={graph.nodes.some(n => n.ghost) ? <button aria-pressed={ghosts} onClick={() => setGhosts(!ghosts)} title="Nodes that the compiler made, such as gates">{ghosts ? 'hide' : 'show'} made nodes</button> : undefined}
      />
      {chosen && (
        <aside className="float panel" aria-label={`Node ${chosen.key}`}>
          <div className="side-head"><h2>{chosen.key}</h2><button className="quiet" onClick={() => set({ node: undefined, scope: undefined })} aria-label="Close"><Icon name="cross" /></button></div>
          <dl className="about">
            {([['kind', chosen.kind], ['carried out by', chosen.handler], ['route', chosen.route], ['for each', chosen.each], ['at once', chosen.concurrency], ['when', chosen.when], ['retried', chosen.retry],
              ['time limit', span(chosen.timeout_ms || undefined)], ['undone by', chosen.compensate], ['needs', chosen.keys?.join(', ')], ['line', chosen.line]] as const).map(([name, value]) => value ? <div key={name}><dt>{name}</dt><dd>{value}</dd></div> : null)}
          </dl>
        </aside>
      )}
    </>
  )
}

function Card({ graph, drawn, toggle }: { graph: Graph; drawn: Drawn; toggle: (i: number) => void }) {
  const node = graph.nodes[drawn.i]
  const { word, icon } = kindOf(node)
  return (
    <>
      <span className="node-top">
        <Icon name={icon} size={15} /><b className="ellipsis">{node.key}</b>
        {node.inside !== undefined && <span className="opener" onClick={e => { e.stopPropagation(); toggle(drawn.i) }} title={drawn.open ? 'Close what is inside' : 'Open what is inside'}><Icon name={drawn.open ? 'minus' : 'plus'} size={13} /></span>}
      </span>
      {drawn.h >= 50 && !drawn.open && <span className="node-sub"><span className="ellipsis">{word}{node.each ? ` · each ${node.each}` : ''}</span></span>}
    </>
  )
}
