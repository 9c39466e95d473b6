import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useAct } from '../data/acts'
import { useMay } from '../data/me'
import { rests, type Wait } from '../data/digest'
import { Icon } from '../parts/Icon'
import { When } from '../parts/When'
import { SignalAsk } from './Asks'

const shown = 3
const icons: Record<string, string> = { approval: 'approval', signal: 'signal', timer: 'clock', delay: 'clock', retry: 'retry', resume: 'pause', job: 'workers', permit: 'tasks' }

/** Why a task waits, since when, until when, and what would help. */
export function Waits({ task, waits, select }: { task: string; waits: Wait[]; select: (w: Wait) => void }) {
  const [all, setAll] = useState(false)
  const real = waits.filter(rests)
  if (real.length === 0) return null
  return (
    <section className="waits" aria-label="What it waits for">
      {(all ? real : real.slice(0, shown)).map(w => (
        <div key={`${w.scope}\n${w.node}\n${w.unit}\n${w.visit}\n${w.for}`} className="wait">
          <Icon name={icons[w.for] ?? 'clock'} />
          {w.node && <button className="link" onClick={() => select(w)}>{w.scope ? `${w.scope}/` : ''}{w.node}</button>}
          <span>{w.text}</span>
          {w.before !== undefined && <span className="faint">{w.before} before it</span>}
          {w.workers !== undefined && <Able workers={w.workers} />}
          {w.since && <span className="faint">since <When at={w.since} /></span>}
          {w.until && <span className="faint">until <When at={w.until} /></span>}
          <Help task={task} wait={w} />
        </div>
      ))}
      {!all && real.length > shown && <button className="quiet" onClick={() => setAll(true)}>and {real.length - shown} more</button>}
    </section>
  )
}

/** How many workers could take a job. */
function Able({ workers }: { workers: number }) {
  return (
    <Link to="/workers" className={workers > 0 ? 'faint' : 'state tone-failed'}>
      {workers > 0 ? `${workers} ${workers === 1 ? 'worker' : 'workers'} could take it` : <><Icon name="alert" size={14} />no worker is there that could take it</>}
    </Link>
  )
}

/** The key that a wait names in its text. */
export function keyOf(w: Wait): string | undefined {
  return /(?:signal|set) (\S+)$/.exec(w.text)?.[1]?.split(/[.[]/)[0]
}

function Help({ task, wait: w }: { task: string; wait: Wait }) {
  const act = useAct(task)
  const [asks, setAsks] = useState(false)
  const key = keyOf(w)
  const may = useMay()
  const held = w.for === 'resume' && w.node // by itself; else it is the task that is paused
  const helps = held ? 'release' : w.for === 'resume' ? 'resume' : w.for === 'completion' ? 'complete' : 'signal'
  if (!may(`POST /v1/tasks/{task}/${helps}` as const)) return null
  const send = (value: unknown, did: string) => act.mutate({ act: 'signal', did, body: { key, value } })
  if (held) return <button className="primary" disabled={act.isPending} onClick={() => act.mutate({ act: 'release', did: `${w.node} may begin`, body: { step: w.node, scope: w.scope } })}>Release</button>
  if (w.for === 'resume') return <button className="primary" disabled={act.isPending} onClick={() => act.mutate({ act: 'resume', did: 'the task goes on' })}>Resume</button>
  if (w.for === 'approval' && key) {
    return (
      <span className="acts">
        <button className="primary" disabled={act.isPending} onClick={() => send(true, 'approved')}><Icon name="check" size={14} /> Approve</button>
        <button disabled={act.isPending} onClick={() => send(false, 'rejected')}><Icon name="cross" size={14} /> Reject</button>
      </span>
    )
  }
  if (w.for === 'signal' && key) {
    return (
      <>
        <button disabled={act.isPending} onClick={() => setAsks(true)}>Send {key}</button>
        {asks && <SignalAsk name={key} close={() => setAsks(false)} send={body => act.mutate({ act: 'signal', did: `the signal ${body.key} was taken`, body })} />}
      </>
    )
  }
  if (w.for === 'completion' && w.node) return <Complete task={task} wait={w} />
  return null
}

function Complete({ task, wait: w }: { task: string; wait: Wait }) {
  const act = useAct(task)
  const body = { step: w.node, scope: w.scope, unit: w.unit }
  return (
    <span className="acts">
      <button className="primary" disabled={act.isPending} onClick={() => act.mutate({ act: 'complete', did: `${w.node} is completed`, body: { ...body, output: null } })}>Complete</button>
      <button disabled={act.isPending} onClick={() => act.mutate({ act: 'complete', did: `${w.node} has failed`, body: { ...body, error: 'failed by hand' } })}>Fail</button>
    </span>
  )
}
