import { useCallback, useMemo, useState } from 'react'
import { nodeNow, planned, type Digest, type NodeNow } from '../data/digest'
import { kindOf, type Graph } from '../data/plan'
import type { TaskView } from '../data/search'
import { now, span } from '../data/time'
import type { Drawn } from '../graph/arrange'
import { GraphView } from '../graph/GraphView'
import { useDrawing } from '../graph/useDrawing'
import { Icon } from '../parts/Icon'
import { Sign, toneOf, wordOf } from '../parts/State'
import { Loading } from '../parts/Told'
import { digits, texts } from '../texts'

const t = texts.graph

/** Here is the state of a node of the plan in this task, and its scope. */
export interface Here {
  scope: string
  now: NodeNow
}

/**
 * placed maps the index of each node of the plan to its state in a digest. A scope with several
 * visits is shown in its current state.
 */
export function placed(digest: Digest, graph: Graph): Map<number, Here> {
  const found = new Map<number, Here>()
  for (const scope of digest.scopes) {
    const plan = graph.scopes.find(s => s.scope === planned(scope.scope))
    if (!plan) continue
    scope.nodes.forEach((key, i) => {
      const at = plan.first_node + i
      if (graph.nodes[at]?.key === key)
        found.set(at, { scope: scope.scope, now: nodeNow(digest, scope, i) })
    })
  }
  return found
}

/** wordNow returns the state of a node as the word that determines its color. */
export function wordNow(n: NodeNow | undefined): string {
  if (!n) return 'created'
  if (n.held && n.state === 'created') return 'held'
  if (n.state === 'started' && n.waits) return 'waiting'
  if (n.state === 'started' && n.retrying > 0 && n.flying === 0) return 'retrying'
  return n.state
}

export function TaskGraph({
  digest,
  graph,
  until,
  view,
  set,
}: {
  digest: Digest
  graph: Graph
  until?: number
  view: TaskView
  set: (v: Partial<TaskView>) => void
}) {
  const [ghosts, setGhosts] = useState(false)
  const here = useMemo(() => placed(digest, graph), [digest, graph])
  const open = useMemo(() => (view.open ?? []).map(planned), [view.open])
  const drawing = useDrawing(graph, { open, ghosts })
  const selected = useMemo(() => {
    if (view.node === undefined) return undefined
    const path = planned(view.scope ?? '')
    const i = graph.nodes.findIndex(n => n.key === view.node && (n.scope ?? '') === path)
    return i < 0 ? undefined : i
  }, [graph, view.node, view.scope])

  const word = useCallback((i: number) => wordNow(here.get(i)?.now), [here])
  const toggle = (i: number) => {
    const n = graph.nodes[i],
      at = here.get(i)
    if (n.inner_scope === undefined || !at || at.now.visit === 0) return
    const path = `${at.scope ? at.scope + '/' : ''}${n.inner_scope.split('/').at(-1)}#${at.now.visit}`
    const list = view.open ?? []
    const isOpen = list.some(p => planned(p) === n.inner_scope)
    set({
      open: isOpen
        ? list.filter(p => planned(p) !== n.inner_scope && !planned(p).startsWith(n.inner_scope + '/'))
        : [...list, path],
    })
  }
  const card = useCallback(
    (d: Drawn) => (
      <Card graph={graph} drawn={d} now={here.get(d.i)?.now} until={until} toggle={toggle} />
    ),
    [graph, here, view, until],
  )
  if (!drawing) return <Loading />
  return (
    <GraphView
      drawing={drawing}
      stamp={here}
      label={t.ofTask(digest.flow)}
      selected={selected}
      tone={i => toneOf(word(i))}
      taken={(from, to) =>
        (here.get(from)?.now.visit ?? 0) > 0 && (here.get(to)?.now.visit ?? 0) > 0
      }
      card={card}
      name={i => `${graph.nodes[i].key}: ${word(i)}`}
      toggle={toggle}
      select={i =>
        set(
          i === undefined
            ? { node: undefined, scope: undefined, unit: undefined }
            : {
                node: graph.nodes[i].key,
                scope: here.get(i)?.scope || graph.nodes[i].scope || undefined,
                unit: undefined,
              },
        )
      }
      tools={
        graph.nodes.some(n => n.generated) ? (
          <button aria-pressed={ghosts} onClick={() => setGhosts(!ghosts)} title={t.generatedTitle}>
            {t.generated(ghosts)}
          </button>
        ) : undefined
      }
    />
  )
}

function Card({
  graph,
  drawn,
  now: n,
  until,
  toggle,
}: {
  graph: Graph
  drawn: Drawn
  now?: NodeNow
  until?: number
  toggle: (i: number) => void
}) {
  const node = graph.nodes[drawn.i]
  const { word, icon } = kindOf(node)
  const many = n && n.total > 1
  return (
    <>
      <span className="node-top">
        <Sign state={wordNow(n)} />
        <b className="ellipsis">{node.key}</b>
        <span className="unseen">{wordOf(wordNow(n))}</span>
        {n && n.visit > 1 && <span className="visits">×{n.visit}</span>}
        {node.inner_scope !== undefined && (
          <span
            className="opener"
            onClick={e => {
              e.stopPropagation()
              toggle(drawn.i)
            }}
            title={drawn.open ? t.collapse : t.expand}
          >
            <Icon name={drawn.open ? 'minus' : 'plus'} size={13} />
          </span>
        )}
      </span>
      {drawn.h >= 50 && !drawn.open && (
        <span className="node-sub">
          {many ? (
            <span className={n.failed > 0 ? 'tone-failed ellipsis' : 'ellipsis'}>
              {digits(n.done)}/{digits(n.total)}
              {n.failed > 0 && texts.steps.failed(n.failed)}
            </span>
          ) : (
            <span className="ellipsis">
              <Icon name={icon} size={12} /> {n?.error || n?.reason || word}
            </span>
          )}
          <span className="took">
            {n?.entered !== undefined ? span((n.ended ?? until ?? now()) - n.entered) : ''}
          </span>
        </span>
      )}
      {many && (
        <span className="progress">
          <i style={{ width: `${(100 * (n.done - n.failed)) / n.total}%` }} />
          <i className="bad" style={{ width: `${(100 * n.failed) / n.total}%` }} />
        </span>
      )}
    </>
  )
}
