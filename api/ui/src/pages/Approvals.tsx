import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { TaskSummary } from '../api.gen'
import { useAct } from '../data/acts'
import { useMay } from '../data/me'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { ValuesTab } from '../task/Values'
import { Icon } from '../parts/Icon'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'

const most = 200
const remembered = 'troupe-answers-as'

/** What waits for somebody's approval, and the answer. It is made for a phone as well. */
export function Approvals() {
  useTick()
  const { live } = usePrefs()
  const [by, setBy] = useState(() => localStorage.getItem(remembered) ?? '')
  const found = useQuery({
    queryKey: ['approvals'], refetchInterval: live && 2000,
    queryFn: ({ signal }) => call('GET /v1/tasks', { query: { waits: ['approval'], sort: 'created', limit: most } }, signal),
  })
  if (found.isError && !found.data) return <div className="page"><Trouble error={found.error} again={() => void found.refetch()} /></div>
  if (!found.data) return <Loading />
  return (
    <div className="page approvals">
      <div className="head">
        <h1>Approvals</h1>
        <label className="as">Answer as <input value={by} onChange={e => { setBy(e.target.value); localStorage.setItem(remembered, e.target.value) }} placeholder="your name" maxLength={200} autoComplete="name" /></label>
      </div>
      {found.data.items.length === 0 && <div className="panel"><Empty title="Nothing waits for an approval" /></div>}
      <ul>{found.data.items.map(t => t.wait && <Approval key={`${t.id} ${t.wait.scope ?? ''} ${t.wait.node} ${t.wait.visit}`} task={t} wait={t.wait} by={by} />)}</ul>
      {found.data.items.length === most && <p className="faint">These have waited longest; there are more.</p>}
    </div>
  )
}

function Approval({ task: t, wait: w, by }: { task: TaskSummary; wait: NonNullable<TaskSummary['wait']>; by: string }) {
  const queries = useQueryClient()
  const act = useAct(t.id)
  const may = useMay()
  const [open, setOpen] = useState(false)
  const where = w.scope ? `${w.scope}/${w.node}` : w.node
  const send = (value: boolean, did: string) => act.mutate({ act: 'signal', did, body: { key: w.key, value, by: by || undefined } }, { onSettled: () => void queries.invalidateQueries({ queryKey: ['approvals'] }) })
  return (
    <li className="panel" aria-label={`${t.flow}: ${where}`}>
      <div className="what">
        <strong>{where}</strong>
        <span>of <Link to="/flows/$flow" params={{ flow: t.flow }}>{t.flow}</Link></span>
        <Link to="/tasks/$task" params={{ task: t.id }} title={t.id}>{t.id.slice(0, 18)}…</Link>
        {Object.entries(t.labels ?? {}).map(([name, text]) => <span key={name} className="faint">{name}: {text}</span>)}
        <span className="faint">since <When at={w.since} /></span>
        {w.until && <span className="faint">until <When at={w.until} /></span>}
      </div>
      <div className="answers">
        {may('POST /v1/tasks/{task}/signal') && <>
          <button className="primary" disabled={act.isPending || !w.key} onClick={() => send(true, `${where} is approved`)}><Icon name="check" size={14} /> Approve</button>
          <button disabled={act.isPending || !w.key} onClick={() => send(false, `${where} is rejected`)}><Icon name="cross" size={14} /> Reject</button>
        </>}
        <button className="quiet" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name={open ? 'down' : 'open'} size={12} /> What it is about</button>
      </div>
      {open && <ValuesTab task={t.id} />}
    </li>
  )
}
