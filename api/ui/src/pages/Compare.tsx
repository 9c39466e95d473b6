import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Comparison, TaskSummary, VisitPair, VisitTold } from '../api.gen'
import { call } from '../data/call'
import type { CompareView } from '../data/search'
import { between, span } from '../data/time'
import { State, stateOf } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { MergedGraph } from './MergedGraph'

const route = getRouteApi('/compare')

/** What two tasks did, node by node. */
export function Compare() {
  const view = route.useSearch()
  const { a, b } = view
  const told = useQuery({
    queryKey: ['compare', a, b], enabled: Boolean(a && b), staleTime: Infinity,
    queryFn: ({ signal }) => call('GET /v1/tasks/{task}/compare/{other}', { path: { task: a ?? '', other: b ?? '' } }, signal),
  })
  return (
    <div className="page">
      <div className="head"><h1>Compare tasks</h1></div>
      <Pick key={`${a} ${b}`} a={a} b={b} />
      {!a || !b ? <div className="panel"><Empty title="Which two tasks?">Their ids are on their pages.</Empty></div>
        : told.isError ? <Trouble error={told.error} again={() => void told.refetch()} />
          : told.data ? <Told told={told.data} view={view} /> : <Loading />}
    </div>
  )
}

function Pick({ a, b }: CompareView) {
  const go = useNavigate()
  const [one, setOne] = useState(a ?? ''), [other, setOther] = useState(b ?? '')
  return (
    <form className="head" onSubmit={e => { e.preventDefault(); void go({ to: '/compare', search: { a: one.trim(), b: other.trim() } }) }}>
      <label>A <input value={one} onChange={e => setOne(e.target.value)} placeholder="id of a task" size={40} required /></label>
      <label>B <input value={other} onChange={e => setOther(e.target.value)} placeholder="id of another one" size={40} required /></label>
      <button className="primary">Compare</button>
    </form>
  )
}

function Told({ told, view }: { told: Comparison; view: CompareView }) {
  const go = useNavigate()
  const shown = view.different ? told.visits.filter(p => !p.a || !p.b || p.differs.length > 0) : told.visits
  return (
    <section className="section" aria-label="Comparison">
      <Side name="A" task={told.a} />
      <Side name="B" task={told.b} />
      <p className="facts" role="status">
        <span>{told.same} the same, {told.different} different, {told.only_a} only in A, {told.only_b} only in B</span>
        <label><input type="checkbox" checked={Boolean(view.different)} onChange={e => void go({ to: '/compare', search: { ...view, different: e.target.checked || undefined }, replace: true })} /> only what is not the same</label>
        {told.cut && <span>Only the first visits of each are compared.</span>}
      </p>
      {told.visits.length > 0 && <MergedGraph told={told} />}
      {shown.length === 0 ? <div className="panel"><Empty title={told.visits.length === 0 ? 'Neither has begun' : 'Both did the same'} /></div>
        : (
          <div className="panel table-box">
            <table>
              <thead><tr><th>Step</th><th>A</th><th>B</th><th className="number">Time A</th><th className="number">Time B</th><th>Differs</th></tr></thead>
              <tbody>{shown.map(p => <Row key={`${p.scope}/${p.node}#${p.visit}`} pair={p} />)}</tbody>
            </table>
          </div>
        )}
    </section>
  )
}

function Side({ name, task: t }: { name: string; task: TaskSummary }) {
  return (
    <p className="facts">
      <b>{name}</b>
      <Link to="/tasks/$task" params={{ task: t.id }}>{t.id}</Link>
      <span>{t.flow} v{t.version}</span>
      <State state={stateOf(t)} />
      <span className="faint">{span(between(t.created_at, t.ended_at))}</span>
    </p>
  )
}

function Row({ pair: p }: { pair: VisitPair }) {
  const time = (v?: VisitTold) => (v && v.duration_ms > 0 ? span(v.duration_ms) : '')
  return (
    <tr>
      <td className="strong">{p.scope && <span className="faint">{p.scope}/</span>}{p.node}{p.visit > 1 && <span className="faint"> #{p.visit}</span>}</td>
      <td><Went visit={p.a} /></td>
      <td><Went visit={p.b} /></td>
      <td className="number">{time(p.a)}</td>
      <td className="number">{time(p.b)}</td>
      <td>
        {!p.a ? 'only in B' : !p.b ? 'only in A' : p.differs.join(', ')}
        {p.a && p.b && p.differs.includes('output') && <div className="mono faint">{p.a.output || 'none'} / {p.b.output || 'none'}</div>}
        {p.differs.includes('error') && <div className="mono faint">{p.a?.error || p.a?.reason || 'none'} / {p.b?.error || p.b?.reason || 'none'}</div>}
      </td>
    </tr>
  )
}

function Went({ visit: v }: { visit?: VisitTold }) {
  if (!v) return <span className="faint">not there</span>
  return <><State state={v.state} />{v.attempts > 1 && <span className="faint"> {v.attempts} attempts</span>}</>
}
