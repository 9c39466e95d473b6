import { useQuery } from '@tanstack/react-query'
import { useCallback, useMemo, useState } from 'react'
import type { Comparison, TaskSummary } from '../api.gen'
import { call } from '../data/call'
import { merge, type Met } from '../data/merge'
import { kindOf, type Graph } from '../data/plan'
import type { Drawn } from '../graph/arrange'
import { GraphView } from '../graph/GraphView'
import { useDrawing } from '../graph/useDrawing'
import { Icon } from '../parts/Icon'
import { Loading, Trouble } from '../parts/Told'
import { texts } from '../texts'

const t = texts.compare

const tones: Record<Met, string> = {
  same: 'completed',
  differs: 'failed',
  'only a': 'running',
  'only b': 'waiting',
  neither: 'idle',
}

/**
 * MergedGraph shows the flows of two tasks in one graph, with the first difference and all others
 * marked.
 */
export function MergedGraph({ told }: { told: Comparison }) {
  const a = usePlan(told.task),
    b = usePlan(told.other)
  if (a.isError || b.isError) return <Trouble error={a.error ?? b.error} />
  if (!a.data || !b.data) return <Loading />
  return <Both a={a.data} b={b.data} told={told} />
}

function usePlan(task: TaskSummary) {
  return useQuery({
    queryKey: ['plan', task.flow, task.version],
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/flows/{flow}/versions/{version}/graph',
        { path: { flow: task.flow, version: String(task.version) } },
        signal,
      ),
  })
}

function Both({ a, b, told }: { a: Graph; b: Graph; told: Comparison }) {
  const [chosen, setChosen] = useState<number>()
  const merged = useMemo(() => merge(a, b, told.visits), [a, b, told])
  const drawing = useDrawing(merged.graph, { open: [], ghosts: false })
  const tone = useCallback((i: number) => tones[merged.met[i]], [merged])
  const card = useCallback(
    (d: Drawn) => (
      <Card graph={merged.graph} i={d.i} met={merged.met[d.i]} first={merged.first === d.i} />
    ),
    [merged],
  )
  if (!drawing) return <Loading />
  return (
    <div className="panel merged">
      <GraphView
        drawing={drawing}
        stamp={merged}
        label={texts.graph.ofBoth}
        selected={chosen}
        select={setChosen}
        toggle={() => undefined}
        tone={tone}
        taken={() => true}
        card={card}
        name={i =>
          `${merged.graph.nodes[i].key}: ${t.met[merged.met[i]]}${merged.first === i ? `, ${t.first}` : ''}`
        }
      />
    </div>
  )
}

function Card({ graph, i, met, first }: { graph: Graph; i: number; met: Met; first: boolean }) {
  const node = graph.nodes[i]
  return (
    <>
      <span className="node-top">
        <Icon name={kindOf(node).icon} size={15} />
        <b className="ellipsis">{node.key}</b>
      </span>
      <span className="node-sub">
        <span className="ellipsis">{first ? t.first : t.met[met]}</span>
      </span>
    </>
  )
}
