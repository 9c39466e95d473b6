import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useAct } from '../data/acts'
import { call } from '../data/call'
import type { Digest } from '../data/digest'
import { elsewhere } from '../data/elsewhere'
import { useMay } from '../data/me'
import { isOver, useTask } from '../data/task'
import { between, exact, span } from '../data/time'
import { Copy } from '../parts/Copy'
import { Icon } from '../parts/Icon'
import { State, stateOf } from '../parts/State'
import { useTick, When } from '../parts/When'
import { CancelAsk, SignalAsk } from './Asks'
import { RerunAsk } from './RerunAsk'
import { Rich } from '../parts/Rich'
import { texts } from '../texts'

const t = texts.task

/** Head shows the properties and the state of a task, one line each, and all actions on it. */
export function Head({ digest: d }: { digest: Digest }) {
  useTick()
  const task = useTask(d.task, 'none')
  const error = d.error || task.data?.error
  return (
    <header className="task-head">
      <div className="head">
        <h1>
          <Link to="/tasks" search={{ flow: d.flow }}>
            {d.flow}
          </Link>{' '}
          <span className="faint">v{d.version}</span>
        </h1>
        <State state={stateOf(d)} />
        <span className="faint">
          {(isOver(d.state) ? t.took : texts.time.waited)(span(between(d.created_at, d.ended_at)))}
        </span>
        <Acts digest={d} />
      </div>
      <p className="facts">
        <code>{d.task}</code>
        <Copy text={d.task} label={t.copyID} size={13} />
        <span>
          <Rich text={t.started} parts={{ time: <When at={d.created_at} /> }} />{' '}
          <span className="faint">({exact(d.created_at)})</span>
        </span>
        {task.data?.forked_from && (
          <span>
            {t.forkedFrom}{' '}
            <Link to="/tasks/$task" params={{ task: task.data.forked_from }}>
              {task.data.forked_from}
            </Link>
          </span>
        )}
        <Link
          to="/compare"
          search={task.data?.forked_from ? { a: task.data.forked_from, b: d.task } : { a: d.task }}
        >
          {task.data?.forked_from ? t.compareFork : t.compare}
        </Link>
        <Elsewhere task={d.task} trace={task.data?.trace_id} />
        {Object.entries(task.data?.labels ?? {}).map(([k, v]) => (
          <Link key={k} to="/tasks" search={{ label: [`${k}:${v}`] }} className="label">
            {k}:{v}
          </Link>
        ))}
      </p>
      {error && (
        <p className="failure">
          <Icon name="alert" /> <span>{error}</span>
        </p>
      )}
    </header>
  )
}

/** Elsewhere links to other systems that show the task's trace and its log lines. */
function Elsewhere({ task, trace }: { task: string; trace?: string }) {
  const info = useQuery({
    queryKey: ['info'],
    queryFn: ({ signal }) => call('GET /v1/info', {}, signal),
    staleTime: Infinity,
  }).data
  const [traceURL, logURL] = [info?.trace_url, info?.log_url].map(pattern =>
    elsewhere(pattern, { task, trace_id: trace }),
  )
  return (
    <>
      {traceURL && (
        <a href={traceURL} target="_blank" rel="noreferrer">
          {t.trace}
        </a>
      )}
      {logURL && (
        <a href={logURL} target="_blank" rel="noreferrer">
          {t.logLines}
        </a>
      )}
    </>
  )
}

function Acts({ digest: d }: { digest: Digest }) {
  const act = useAct(d.task)
  const may = useMay()
  const [asks, setAsks] = useState<'cancel' | 'signal' | 'rerun'>()
  const tried = useTask(d.task, 'none').data?.labels?.troupe === 'try'
  const over = isOver(d.state),
    busy = act.isPending
  return (
    <div className="acts" role="group" aria-label={texts.actions}>
      {d.state === 'failed' && may('POST /v1/tasks/{task}/retry') && (
        <button
          className="primary"
          disabled={busy}
          onClick={() => act.mutate({ act: 'retry', did: t.retried })}
        >
          <Icon name="retry" /> {t.retry}
        </button>
      )}
      {!over && !d.paused && may('POST /v1/tasks/{task}/pause') && (
        <button disabled={busy} onClick={() => act.mutate({ act: 'pause', did: t.paused })}>
          <Icon name="pause" /> {t.pause}
        </button>
      )}
      {!over && d.paused && may('POST /v1/tasks/{task}/resume') && (
        <button
          className="primary"
          disabled={busy}
          onClick={() => act.mutate({ act: 'resume', did: t.resumed })}
        >
          <Icon name="play" /> {t.resume}
        </button>
      )}
      {(!over || d.state === 'failed') && may('POST /v1/tasks/{task}/signal') && (
        <button disabled={busy} onClick={() => setAsks('signal')}>
          <Icon name="signal" /> {t.signal}
        </button>
      )}
      {!over && may('POST /v1/tasks/{task}/cancel') && (
        <button disabled={busy} onClick={() => setAsks('cancel')}>
          <Icon name="stop" /> {t.cancel}
        </button>
      )}
      {over && may('POST /v1/tasks/{task}/rerun') && (
        <button onClick={() => setAsks('rerun')}>
          <Icon name="play" /> {t.rerun}
        </button>
      )}
      {asks === 'cancel' && (
        <CancelAsk
          close={() => setAsks(undefined)}
          cancel={body => act.mutate({ act: 'cancel', did: t.canceling, body })}
        />
      )}
      {asks === 'rerun' && <RerunAsk digest={d} tried={tried} close={() => setAsks(undefined)} />}
      {asks === 'signal' && (
        <SignalAsk
          close={() => setAsks(undefined)}
          send={body => act.mutate({ act: 'signal', did: t.signaled(body.key), body })}
        />
      )}
    </div>
  )
}
