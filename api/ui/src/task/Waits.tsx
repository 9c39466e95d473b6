import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useAct } from '../data/acts'
import { useMay } from '../data/me'
import { rests, type Wait } from '../data/digest'
import { Icon } from '../parts/Icon'
import { Since, When } from '../parts/When'
import { SignalAsk } from './Asks'
import { texts } from '../texts'

const t = texts.waits

const shown = 3
const icons: Record<string, string> = {
  approval: 'approval',
  signal: 'signal',
  timer: 'clock',
  delay: 'clock',
  retry: 'retry',
  resume: 'pause',
  job: 'workers',
  permit: 'tasks',
}

/** Waits shows why a task waits, since when, until when, and the remedy. */
export function Waits({
  task,
  waits,
  select,
}: {
  task: string
  waits: Wait[]
  select: (w: Wait) => void
}) {
  const [all, setAll] = useState(false)
  const real = waits.filter(rests)
  if (real.length === 0) return null
  return (
    <section className="waits" aria-label={t.title}>
      {(all ? real : real.slice(0, shown)).map(w => (
        <div key={`${w.scope}\n${w.node}\n${w.unit}\n${w.visit}\n${w.kind}`} className="wait">
          <Icon name={icons[w.kind] ?? 'clock'} />
          {w.node && (
            <button className="link" onClick={() => select(w)}>
              {w.scope ? `${w.scope}/` : ''}
              {w.node}
            </button>
          )}
          <span>{w.text}</span>
          {w.ahead !== undefined && <span className="faint">{t.before(w.ahead)}</span>}
          {w.workers !== undefined && <Able workers={w.workers} />}
          {w.waiting_since && (
            <span className="faint">
              <Since at={w.waiting_since} />
            </span>
          )}
          {w.deadline && (
            <span className="faint">
              {t.due} <When at={w.deadline} />
            </span>
          )}
          <Help task={task} wait={w} />
        </div>
      ))}
      {!all && real.length > shown && (
        <button className="quiet" onClick={() => setAll(true)}>
          {t.more(real.length - shown)}
        </button>
      )}
    </section>
  )
}

/** Able shows how many workers can take a job. */
function Able({ workers }: { workers: number }) {
  return (
    <Link to="/workers" className={workers > 0 ? 'faint' : 'state tone-failed'}>
      {workers > 0 ? (
        t.workers(workers)
      ) : (
        <>
          <Icon name="alert" size={14} />
          {t.noWorkers}
        </>
      )}
    </Link>
  )
}

/** keyOf returns the key that the text of a wait names. */
export function keyOf(w: Wait): string | undefined {
  return /(?:signal|set) (\S+)$/.exec(w.text)?.[1]?.split(/[.[]/)[0]
}

function Help({ task, wait: w }: { task: string; wait: Wait }) {
  const act = useAct(task)
  const [asks, setAsks] = useState(false)
  const key = keyOf(w)
  const may = useMay()
  const held = w.kind === 'resume' && w.node // the step itself is held; otherwise the task is paused
  const helps = held
    ? 'release'
    : w.kind === 'resume'
      ? 'resume'
      : w.kind === 'manual'
        ? 'complete'
        : 'signal'
  if (!may(`POST /v1/tasks/{task}/${helps}` as const)) return null
  const send = (value: unknown, did: string) =>
    act.mutate({ act: 'signal', did, body: { key, value } })
  if (held)
    return (
      <button
        className="primary"
        disabled={act.isPending}
        onClick={() =>
          act.mutate({
            act: 'release',
            did: t.released(w.node ?? ''),
            body: { step: w.node, scope: w.scope },
          })
        }
      >
        {t.release}
      </button>
    )
  if (w.kind === 'resume')
    return (
      <button
        className="primary"
        disabled={act.isPending}
        onClick={() => act.mutate({ act: 'resume', did: texts.task.resumed })}
      >
        {texts.task.resume}
      </button>
    )
  if (w.kind === 'approval' && key) {
    return (
      <span className="acts">
        <button className="primary" disabled={act.isPending} onClick={() => send(true, t.approved)}>
          <Icon name="check" size={14} /> {t.approve}
        </button>
        <button disabled={act.isPending} onClick={() => send(false, t.rejected)}>
          <Icon name="cross" size={14} /> {t.reject}
        </button>
      </span>
    )
  }
  if (w.kind === 'signal' && key) {
    return (
      <>
        <button disabled={act.isPending} onClick={() => setAsks(true)}>
          {t.send(key)}
        </button>
        {asks && (
          <SignalAsk
            name={key}
            close={() => setAsks(false)}
            send={body => act.mutate({ act: 'signal', did: texts.task.signaled(body.key), body })}
          />
        )}
      </>
    )
  }
  if (w.kind === 'manual' && w.node) return <Complete task={task} wait={w} />
  return null
}

function Complete({ task, wait: w }: { task: string; wait: Wait }) {
  const act = useAct(task)
  const body = { step: w.node, scope: w.scope, unit: w.unit }
  return (
    <span className="acts">
      <button
        className="primary"
        disabled={act.isPending}
        onClick={() =>
          act.mutate({
            act: 'complete',
            did: t.completed(w.node ?? ''),
            body: { ...body, output: null },
          })
        }
      >
        {t.complete}
      </button>
      <button
        disabled={act.isPending}
        onClick={() =>
          act.mutate({
            act: 'complete',
            did: t.failed(w.node ?? ''),
            body: { ...body, error: t.failedError },
          })
        }
      >
        {t.fail}
      </button>
    </span>
  )
}
