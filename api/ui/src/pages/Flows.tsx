import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { PageFlow } from '../api.gen'
import { call } from '../data/call'
import { Icon } from '../parts/Icon'
import { Empty, Loading, Trouble } from '../parts/Told'
import { When } from '../parts/When'

/** All flows, newest first. */
export function Flows() {
  const [word, setWord] = useState('')
  const flows = useInfiniteQuery({
    queryKey: ['flows'], initialPageParam: '', refetchInterval: 10_000,
    queryFn: ({ pageParam, signal }) => call('GET /v1/flows', { query: { limit: 200, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageFlow) => page.next || undefined,
  })
  const all = flows.data?.pages.flatMap(p => p.items) ?? []
  const found = all.filter(f => `${f.slug} ${f.name} ${f.description}`.toLowerCase().includes(word.toLowerCase()))
  return (
    <div className="page">
      <div className="head">
        <h1>Flows</h1>
        <Link to="/edit" className="button"><Icon name="plus" size={14} /> New</Link>
        <input type="search" className="narrow right" value={word} onChange={e => setWord(e.target.value)} placeholder="Only with this text" aria-label="Only flows with this text" />
      </div>
      {flows.isError && all.length === 0 ? <Trouble error={flows.error} again={() => void flows.refetch()} />
        : flows.isPending ? <Loading />
        : all.length === 0 ? <Empty title="There is no flow yet">Publish one: <code>troupe flow apply examples/flows/11-local-function.yaml</code>, or <Link to="/edit">write one here</Link>.</Empty>
        : found.length === 0 ? <Empty title={`No flow has the text “${word}”`}><button onClick={() => setWord('')}>Show all {all.length}</button></Empty>
        : (
          <div className="panel table-box">
            <table>
              <thead><tr><th>Flow</th><th>What it is for</th><th>First published</th><th>Tasks</th><th><span className="unseen">Do</span></th></tr></thead>
              <tbody>
                {found.map(f => (
                  <tr key={f.id}>
                    <td><Link to="/flows/$flow" params={{ flow: f.slug ?? f.id }} className="strong">{f.slug ?? f.name}</Link>{f.slug && f.name !== f.slug && <span className="faint"> {f.name}</span>}</td>
                    <td className="faint">{f.description}</td>
                    <td className="time"><When at={f.created_at} /></td>
                    <td className="time">
                      {['running', 'failed'].map(s => <Link key={s} to="/tasks" search={{ flow: f.slug ?? f.id, state: [s] }} className="label">{s}</Link>)}
                      <Link to="/tasks" search={{ flow: f.slug ?? f.id }} className="label">all</Link>
                    </td>
                    <td className="number"><Link to="/flows/$flow" params={{ flow: f.slug ?? f.id }} search={{ tab: 'start' }} className="button"><Icon name="play" size={13} /> Start<span className="unseen"> {f.slug}</span></Link></td>
                  </tr>
                ))}
              </tbody>
            </table>
            {flows.hasNextPage && <button onClick={() => void flows.fetchNextPage()}>More flows</button>}
          </div>
        )}
    </div>
  )
}
