import { useCallback, useState } from 'react'
import { kindOf, type Graph } from '../data/plan'
import type { Drawn } from '../graph/arrange'
import { GraphView } from '../graph/GraphView'
import { useDrawing } from '../graph/useDrawing'
import { Icon } from '../parts/Icon'
import { Loading } from '../parts/Told'
import { texts } from '../texts'

const t = texts.graph

/** PlanGraph shows the plan of the draft, as far as the server could parse it. */
export function PlanGraph({
  graph,
  wrong,
  selected,
  select,
}: {
  graph: Graph
  wrong: Set<number>
  selected?: number
  select: (i: number) => void
}) {
  const [open, setOpen] = useState<string[]>([])
  const drawing = useDrawing(graph, { open, ghosts: false })
  const toggle = (i: number) => {
    const inside = graph.nodes[i].inner_scope
    if (inside !== undefined)
      setOpen(open.includes(inside) ? open.filter(p => p !== inside) : [...open, inside])
  }
  const card = useCallback(
    ({ i, open, h }: Drawn) => {
      const node = graph.nodes[i]
      if (!node) return null
      const { word, icon } = kindOf(node)
      return (
        <>
          <span className="node-top">
            <Icon name={wrong.has(i) ? 'alert' : icon} size={15} />
            <b className="ellipsis">{node.key}</b>
            {wrong.has(i) && <span className="unseen">{t.problem}</span>}
            {node.inner_scope !== undefined && (
              <span
                className="opener"
                onClick={e => {
                  e.stopPropagation()
                  toggle(i)
                }}
                title={open ? t.collapse : t.expand}
              >
                <Icon name={open ? 'minus' : 'plus'} size={13} />
              </span>
            )}
          </span>
          {h >= 50 && !open && (
            <span className="node-sub">
              <span className="ellipsis">{node.each ? t.each(word, node.each) : word}</span>
            </span>
          )}
        </>
      )
    },
    [graph, wrong, open],
  )
  if (!drawing || drawing.nodes.some(n => n.i >= graph.nodes.length)) return <Loading />
  return (
    <GraphView
      drawing={drawing}
      stamp={card}
      label={t.ofDraft}
      selected={selected}
      tone={i => (wrong.has(i) ? 'failed' : 'completed')}
      taken={() => true}
      card={card}
      name={i => graph.nodes[i]?.key ?? ''}
      toggle={toggle}
      select={i => i !== undefined && select(i)}
    />
  )
}
