import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { Worker, PageWorker, PageQueue, Queue } from '../api.gen'
import { note } from '../data/acts'
import { call } from '../data/call'
import { May } from '../data/me'
import { usePrefs } from '../data/prefs'
import { Ask } from '../parts/Ask'
import { QueueTable } from '../parts/QueueTable'
import { State } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { atLeast, texts } from '../texts'

const t = texts.workers

const route = getRouteApi('/workers')

/**
 * Workers lists the workers, their services, and the length of each queue. Queues without workers
 * come first.
 */
export function Workers() {
  useTick()
  const { live } = usePrefs()
  const refetchInterval = live && 2000
  const workers = useInfiniteQuery({
    queryKey: ['workers'],
    refetchInterval,
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      call('GET /v1/workers', { query: { limit: 500, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageWorker) => page.next || undefined,
  })
  const queues = useQuery({
    queryKey: ['queues'],
    refetchInterval,
    queryFn: ({ signal }) => call('GET /v1/queues', { query: { limit: 500 } }, signal),
  })
  if (workers.isError && !workers.data)
    return (
      <div className="page">
        <Trouble error={workers.error} again={() => void workers.refetch()} />
      </div>
    )
  if (queues.isError && !queues.data)
    return (
      <div className="page">
        <Trouble error={queues.error} again={() => void queues.refetch()} />
      </div>
    )
  if (!workers.data || !queues.data) return <Loading />
  const known = workers.data.pages.flatMap(p => p.items)
  return (
    <div className="page">
      <div className="head">
        <h1>{t.title}</h1>
      </div>
      <Queues of={queues.data} />
      <section className="section" aria-label={t.workers}>
        <h2>
          {t.workers} <span className="faint">{atLeast(known.length, workers.hasNextPage)}</span>
        </h2>
        {known.length === 0 ? (
          <div className="panel">
            <Empty title={t.empty}>
              <Rich text={t.start} />
            </Empty>
          </div>
        ) : (
          <div className="panel table-box">
            <table>
              <thead>
                <tr>
                  <th>{t.worker}</th>
                  <th>{t.state}</th>
                  <th>{t.connection}</th>
                  <th>{t.services}</th>
                  <th>{t.labels}</th>
                  <th className="number">{t.jobs}</th>
                  <th>{t.seen}</th>
                  <th>
                    <span className="unseen">{texts.actions}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {known.map(w => (
                  <WorkerRow key={w.id} worker={w} />
                ))}
              </tbody>
            </table>
            {workers.hasNextPage && (
              <button
                disabled={workers.isFetchingNextPage}
                onClick={() => void workers.fetchNextPage()}
              >
                {t.more}
              </button>
            )}
          </div>
        )}
      </section>
    </div>
  )
}

function Queues({ of: { items: queues, next } }: { of: PageQueue }) {
  const { queue: meant } = route.useSearch()
  const first = (q: Queue) => Number(q.service === meant)
  const sorted = [...queues].sort(
    (a, b) =>
      first(b) - first(a) || Number(a.workers > 0) - Number(b.workers > 0) || b.waiting - a.waiting,
  )
  return (
    <section className="section" aria-label={texts.queues.title}>
      <h2>
        {texts.queues.title} <span className="faint">{atLeast(queues.length, Boolean(next))}</span>
      </h2>
      {meant && !next && !queues.some(q => q.service === meant) && (
        <p className="facts">{texts.queues.gone(meant)}</p>
      )}
      {queues.length === 0 ? (
        <div className="panel">
          <Empty title={texts.queues.empty} />
        </div>
      ) : (
        <QueueTable queues={sorted} meant={meant} />
      )}
    </section>
  )
}

function WorkerRow({ worker: w }: { worker: Worker }) {
  const queries = useQueryClient()
  const [asks, setAsks] = useState(false)
  const forget = useMutation({
    mutationFn: () => call('DELETE /v1/workers/{worker}', { path: { worker: w.id } }),
    onSuccess: () => {
      note({ text: t.removed(w.id) })
      void queries.invalidateQueries({ queryKey: ['workers'] })
    },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  return (
    <tr>
      <td className="strong">{w.id}</td>
      <td>
        <State state={w.state} />
      </td>
      <td><span title={w.url}>{t.types[w.type]}</span></td>
      <td>
        {w.services.map(s => (
          <span key={s} className="label">
            {s}
          </span>
        ))}
      </td>
      <td>
        {w.labels?.map(l => (
          <span key={l} className="label">
            {l}
          </span>
        ))}
      </td>
      <td className="number">{w.load}</td>
      <td className="time">
        <When at={w.last_heartbeat_at} />
      </td>
      <td className="number">
        <May call="DELETE /v1/workers/{worker}">
          <button
            className="quiet"
            disabled={forget.isPending}
            onClick={() => (w.state === 'offline' ? forget.mutate() : setAsks(true))}
          >
            {t.remove}
            <span className="unseen"> {w.id}</span>
          </button>
        </May>
        {asks && (
          <Ask title={t.confirm(w.id)} close={() => setAsks(false)}>
            <p>{t.confirmText}</p>
            <div className="buttons">
              <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
                {t.keep}
              </button>
              <button
                type="button"
                className="danger"
                onClick={e => {
                  forget.mutate()
                  e.currentTarget.closest('dialog')?.close()
                }}
              >
                {t.removeIt}
              </button>
            </div>
          </Ask>
        )}
      </td>
    </tr>
  )
}
