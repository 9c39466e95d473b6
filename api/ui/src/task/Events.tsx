import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Event } from '../api.gen'
import { call } from '../data/call'
import type { TaskView } from '../data/search'
import { exact } from '../data/time'
import { State } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'

const window = 100 // rows of the journal that are read at once

/** What happened, newest first. */
export function EventsTab({ task, seq, live, select }: { task: string; seq: number; live: boolean; select: (v: Partial<TaskView>) => void }) {
  const [older, setOlder] = useState(0), [word, setWord] = useState('')
  const after = Math.max(0, seq - window * (older + 1))
  const events = useQuery({
    queryKey: ['task', task, 'events', live ? seq : 'all', older], placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const found: Event[] = []
      for (let from = String(after); ;) {
        const page = await call('GET /v1/tasks/{task}/events', { path: { task }, query: { after: from, limit: 500 } }, signal)
        found.push(...page.items)
        if (!page.next || found.length > 5000) return found.reverse()
        from = page.next
      }
    },
  })
  if (events.isError) return <Trouble error={events.error} again={() => void events.refetch()} />
  if (!events.data) return <Loading />
  const rows = word ? events.data.filter(e => JSON.stringify(e).toLowerCase().includes(word.toLowerCase())) : events.data
  return (
    <div className="table-box">
      <div className="table-tools"><input type="search" value={word} onChange={e => setWord(e.target.value)} placeholder="Only with this text" aria-label="Only events with this text" /><span className="faint">{rows.length.toLocaleString('en')} events</span></div>
      <table>
        <thead><tr><th>Id</th><th>Time</th><th>What</th><th>Where</th><th>More</th></tr></thead>
        <tbody>
          {rows.slice(0, 1000).map(e => (
            <tr key={e.id}>
              <td className="mono faint">{e.id}</td>
              <td className="time">{exact(e.at)}</td>
              <td className="time">{e.type.replaceAll('_', ' ')} {e.state && <State state={e.state} />}</td>
              <td>{e.node && <button className="link" onClick={() => select({ node: e.node, scope: e.scope })}>{e.scope && `${e.scope}/`}{e.node}{(e.visit ?? 1) > 1 && ` ×${e.visit}`}{e.unit ? ` [${e.unit}]` : ''}</button>}{e.attempt && e.attempt > 1 ? <span className="faint"> attempt {e.attempt}</span> : null}</td>
              <td className="more"><span className="tone-failed">{e.error}</span> {e.action && <span className="faint">{e.action} → {e.next || 'the end'}</span>} {e.key && <code>{e.key}</code>} {brief(e)} {e.worker && <span className="faint">by {e.worker}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {after > 0 && <button onClick={() => setOlder(older + 1)}>Older events</button>}
    </div>
  )
}

function brief(e: Event) {
  const value = e.output ?? e.input ?? e.params
  if (value === undefined) return null
  const text = JSON.stringify(value)
  return <code className="brief" title={text.slice(0, 2000)}>{text.length > 80 ? text.slice(0, 80) + '…' : text}</code>
}
