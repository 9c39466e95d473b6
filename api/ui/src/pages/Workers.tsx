import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { KnownWorker, PageKnownWorker, PageQueue, Queue } from '../api.gen'
import { note } from '../data/acts'
import { call } from '../data/call'
import { May } from '../data/me'
import { usePrefs } from '../data/prefs'
import { Ask } from '../parts/Ask'
import { QueueTable } from '../parts/QueueTable'
import { State } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'

const route = getRouteApi('/workers')

/** Who offers what, and how much waits for whom: what nobody serves comes first. */
export function Workers() {
  useTick()
  const { live } = usePrefs()
  const refetchInterval = live && 2000
  const workers = useInfiniteQuery({
    queryKey: ['workers'], refetchInterval, initialPageParam: '',
    queryFn: ({ pageParam, signal }) => call('GET /v1/workers', { query: { limit: 500, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageKnownWorker) => page.next || undefined,
  })
  const queues = useQuery({ queryKey: ['queues'], refetchInterval, queryFn: ({ signal }) => call('GET /v1/queues', { query: { limit: 500 } }, signal) })
  if (workers.isError && !workers.data) return <div className="page"><Trouble error={workers.error} again={() => void workers.refetch()} /></div>
  if (queues.isError && !queues.data) return <div className="page"><Trouble error={queues.error} again={() => void queues.refetch()} /></div>
  if (!workers.data || !queues.data) return <Loading />
  const known = workers.data.pages.flatMap(p => p.items)
  return (
    <div className="page">
      <div className="head"><h1>Workers and queues</h1></div>
      <Queues of={queues.data} />
      <section className="section" aria-label="Workers">
        <h2>Workers <span className="faint">{known.length.toLocaleString('en')}{workers.hasNextPage && '+'}</span></h2>
        {known.length === 0 ? <div className="panel"><Empty title="No worker has registered yet">Start one: <code>troupe worker --exec 'resize=./resize.sh'</code></Empty></div>
          : (
            <div className="panel table-box">
              <table>
                <thead><tr><th>Worker</th><th>State</th><th>How</th><th>Services</th><th>Labels</th><th className="number">Jobs</th><th>Last heard of</th><th><span className="unseen">Do</span></th></tr></thead>
                <tbody>{known.map(w => <WorkerRow key={w.id} worker={w} />)}</tbody>
              </table>
              {workers.hasNextPage && <button disabled={workers.isFetchingNextPage} onClick={() => void workers.fetchNextPage()}>More workers</button>}
            </div>
          )}
      </section>
    </div>
  )
}

function Queues({ of: { items: queues, next } }: { of: PageQueue }) {
  const { queue: meant } = route.useSearch()
  const first = (q: Queue) => Number(q.service === meant)
  const sorted = [...queues].sort((a, b) => first(b) - first(a) || Number(a.workers > 0) - Number(b.workers > 0) || b.waiting - a.waiting)
  return (
    <section className="section" aria-label="Queues">
      <h2>Queues <span className="faint">{queues.length}{next && '+'}</span></h2>
      {meant && !next && !queues.some(q => q.service === meant) && <p className="facts">Nothing waits in the queue of {meant} any longer.</p>}
      {queues.length === 0 ? <div className="panel"><Empty title="Nothing waits for a worker" /></div> : <QueueTable queues={sorted} meant={meant} />}
    </section>
  )
}

function WorkerRow({ worker: w }: { worker: KnownWorker }) {
  const queries = useQueryClient()
  const [asks, setAsks] = useState(false)
  const forget = useMutation({
    mutationFn: () => call('DELETE /v1/workers/{worker}', { path: { worker: w.id } }),
    onSuccess: () => { note({ text: `${w.id} is forgotten` }); void queries.invalidateQueries({ queryKey: ['workers'] }) },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  return (
    <tr>
      <td className="strong">{w.id}</td>
      <td><State state={w.state} /></td>
      <td>{w.url?.startsWith('http') ? <span title={w.url}>called</span> : 'asks'}</td>
      <td>{w.services.map(s => <span key={s} className="label">{s}</span>)}</td>
      <td>{w.labels?.map(l => <span key={l} className="label">{l}</span>)}</td>
      <td className="number">{w.load}</td>
      <td className="time"><When at={w.last_heartbeat} /></td>
      <td className="number">
        <May call="DELETE /v1/workers/{worker}"><button className="quiet" disabled={forget.isPending} onClick={() => (w.state === 'offline' ? forget.mutate() : setAsks(true))}>Forget<span className="unseen"> {w.id}</span></button></May>
        {asks && (
          <Ask title={`Forget ${w.id}?`} close={() => setAsks(false)}>
            <p>It is online. What it holds is given to others when its claims run out; it may register again at any time.</p>
            <div className="buttons">
              <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>Keep it</button>
              <button type="button" className="danger" onClick={e => { forget.mutate(); e.currentTarget.closest('dialog')?.close() }}>Forget it</button>
            </div>
          </Ask>
        )}
      </td>
    </tr>
  )
}
