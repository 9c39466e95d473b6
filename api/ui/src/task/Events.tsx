import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import type { Event, PageEvent } from '../api.gen'
import { call } from '../data/call'
import type { Digest } from '../data/digest'
import type { TaskView } from '../data/search'
import { exact } from '../data/time'
import { State } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import type { Wrapped } from '../parts/Value'
import { ForkAsk } from './ForkAsk'
import { stringify } from '../data/json'
import { texts } from '../texts'

const t = texts.events

const types = [
  'task_created',
  'task_paused',
  'task_resumed',
  'cancel_requested',
  'task_closing',
  'task_retried',
  'task_ended',
  'scope_retried',
  'signal_received',
  'step_entered',
  'step_ended',
  'step_held',
  'step_released',
  'units_appended',
  'attempts_dispatched',
  'permit_granted',
  'attempt_claimed',
  'attempt_started',
  'attempt_extended',
  'attempt_status_changed',
  'attempt_requeued',
  'attempt_moved',
  'attempt_deferred',
  'external_job_ended',
  'attempt_ended',
]

/** EventsTab lists the events of a task, newest first. */
export function EventsTab({
  digest,
  view,
  set: select,
}: {
  digest: Digest
  view: TaskView
  set: (v: Partial<TaskView>) => void
}) {
  const task = digest.task
  const [written, setWord] = useState(view.word ?? '')
  const word = useDeferredValue(written)
  const nodes = [...new Set(digest.scopes.flatMap(s => s.nodes))].sort()
  const [fork, setFork] = useState<number>()
  const events = useInfiniteQuery({
    queryKey: ['task', task, 'events', word, view.type, view.of],
    placeholderData: keepPreviousData,
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      call(
        'GET /v1/tasks/{task}/events',
        {
          path: { task },
          query: {
            order: 'desc',
            before: pageParam || undefined,
            q: word,
            type: view.type ? [view.type] : undefined,
            node: view.of,
            limit: 200,
            values: 'preview',
          },
        },
        signal,
      ),
    getNextPageParam: (page: PageEvent) => page.next || undefined,
  })
  if (events.isLoadingError)
    return <Trouble error={events.error} again={() => void events.refetch()} />
  if (!events.data) return <Loading />
  const rows = events.data.pages.flatMap(p => p.items)
  return (
    <div className="table-box">
      <div className="table-tools">
        <label className="inline">
          {t.type}
          <select
            aria-label={t.typeLabel}
            value={view.type ?? ''}
            onChange={e => select({ type: e.target.value || undefined })}
          >
            <option value="">{texts.all}</option>
            {types.map(type => (
              <option key={type} value={type}>
                {type.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <label className="inline">
          {t.node}
          <select
            aria-label={t.nodeLabel}
            value={view.of ?? ''}
            onChange={e => select({ of: e.target.value || undefined })}
          >
            <option value="">{texts.all}</option>
            {view.of && !nodes.includes(view.of) && <option>{view.of}</option>}
            {nodes.map(n => (
              <option key={n}>{n}</option>
            ))}
          </select>
        </label>
        <input
          type="search"
          value={written}
          onChange={e => setWord(e.target.value)}
          onBlur={() => select({ word: written || undefined })}
          placeholder={texts.filterText}
          aria-label={t.textLabel}
        />
        <span className="faint">{t.count(rows.length, events.hasNextPage)}</span>
      </div>
      <table>
        <thead>
          <tr>
            {t.columns.map(name => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(e => (
            <tr key={e.id}>
              <td className="mono faint">
                <button
                  className="link"
                  onClick={() => setFork(e.seq)}
                  title={t.fork}
                  aria-label={t.forkAt(e.id)}
                >
                  {e.id}
                </button>
              </td>
              <td className="time">
                <button
                  className="link"
                  onClick={() => select({ tab: undefined, at: e.seq })}
                  title={t.replay}
                >
                  {exact(e.at)}
                </button>
              </td>
              <td className="time">
                {e.type.replaceAll('_', ' ')} {e.state && <State state={e.state} />}
              </td>
              <td>
                {e.node && (
                  <button className="link" onClick={() => select({ node: e.node, scope: e.scope })}>
                    {e.scope && `${e.scope}/`}
                    {e.node}
                    {(e.visit ?? 1) > 1 && ` ×${e.visit}`}
                    {e.unit ? ` [${e.unit}]` : ''}
                  </button>
                )}
                {e.attempt && e.attempt > 1 ? (
                  <span className="faint">{t.attempt(e.attempt)}</span>
                ) : null}
              </td>
              <td className="more">
                <span className="tone-failed">{e.error}</span>{' '}
                {e.action && <span className="faint">{t.next(e.action, e.next)}</span>}{' '}
                {e.key && <code>{e.key}</code>} {brief(e)}{' '}
                {e.worker && <span className="faint">{t.worker(e.worker)}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {events.hasNextPage && (
        <button disabled={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
          {t.older}
        </button>
      )}
      {fork !== undefined && <ForkAsk task={task} at={fork} close={() => setFork(undefined)} />}
    </div>
  )
}

function brief(e: Event) {
  const told = (e.output ?? e.input ?? e.params) as Wrapped | undefined
  if (told === undefined) return null
  const text = told.preview ?? stringify(told.value)
  return (
    <code className="brief" title={text}>
      {text.length > 80 ? text.slice(0, 80) + '…' : text}
    </code>
  )
}
