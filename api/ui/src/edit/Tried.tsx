import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { TrialResult as Made } from '../api.gen'
import type { TaskView } from '../data/search'
import { useDigest, useGraph, useTask, valueAt } from '../data/task'
import { State, stateOf } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { Part } from '../parts/Value'
import { TaskGraph } from '../task/TaskGraph'
import { texts } from '../texts'

const t = texts.edit

/** Tried shows a running task that tries the draft. */
export function Tried({ made }: { made: Made }) {
  const [view, setView] = useState<TaskView>({})
  const digest = useDigest(made.id, view.open ?? [])
  const graph = useGraph(made.flow, made.version)
  const d = digest.data
  if (digest.isLoadingError || graph.isLoadingError)
    return (
      <Trouble
        error={digest.error ?? graph.error}
        again={() => {
          void digest.refetch()
          void graph.refetch()
        }}
      />
    )
  if (!d || !graph.data) return <Loading />
  return (
    <>
      <p className="facts tried" role="status">
        <State state={stateOf(d)} />
        <Link to="/tasks/$task" params={{ task: made.id }}>
          {t.tried}
        </Link>
        {d.error && <span className="tone-failed">{d.error}</span>}
      </p>
      <div className="plan">
        <TaskGraph
          digest={d}
          graph={graph.data}
          view={view}
          set={v => setView({ ...view, ...v })}
        />
      </div>
      {d.state === 'completed' && <Result task={made.id} />}
    </>
  )
}

function Result({ task }: { task: string }) {
  const whole = useTask(task, 'preview')
  return whole.data ? (
    <div className="result">
      <Part of={whole.data.result} label={t.result} all={valueAt(task, { of: 'result' })} />
    </div>
  ) : null
}
