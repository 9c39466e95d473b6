import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Comparison, TaskSummary, VisitComparison, VisitSummary } from '../api.gen'
import { call } from '../data/call'
import type { CompareView } from '../data/search'
import { between, span } from '../data/time'
import { State, stateOf } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { MergedGraph } from './MergedGraph'
import { texts } from '../texts'

const words = texts.compare

const route = getRouteApi('/compare')

/** Compare compares two tasks node by node. */
export function Compare() {
  const view = route.useSearch()
  const { a, b } = view
  const told = useQuery({
    queryKey: ['compare', a, b],
    enabled: Boolean(a && b),
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/tasks/{task}/compare/{other}',
        { path: { task: a ?? '', other: b ?? '' } },
        signal,
      ),
  })
  return (
    <div className="page">
      <div className="head">
        <h1>{words.title}</h1>
      </div>
      <Pick key={`${a} ${b}`} a={a} b={b} />
      {!a || !b ? (
        <div className="panel">
          <Empty title={words.pick}>{words.pickHint}</Empty>
        </div>
      ) : told.isError ? (
        <Trouble error={told.error} again={() => void told.refetch()} />
      ) : told.data ? (
        <Told told={told.data} view={view} />
      ) : (
        <Loading />
      )}
    </div>
  )
}

function Pick({ a, b }: CompareView) {
  const go = useNavigate()
  const [one, setOne] = useState(a ?? ''),
    [other, setOther] = useState(b ?? '')
  return (
    <form
      className="head"
      onSubmit={e => {
        e.preventDefault()
        void go({ to: '/compare', search: { a: one.trim(), b: other.trim() } })
      }}
    >
      <label>
        {words.a}{' '}
        <input
          value={one}
          onChange={e => setOne(e.target.value)}
          placeholder={words.id}
          size={40}
          required
        />
      </label>
      <label>
        {words.b}{' '}
        <input
          value={other}
          onChange={e => setOther(e.target.value)}
          placeholder={words.id}
          size={40}
          required
        />
      </label>
      <button className="primary">{words.button}</button>
    </form>
  )
}

function Told({ told, view }: { told: Comparison; view: CompareView }) {
  const go = useNavigate()
  const shown = view.different
    ? told.visits.filter(p => !p.task || !p.other || p.differences.length > 0)
    : told.visits
  return (
    <section className="section" aria-label={words.label}>
      <Side name={words.a} task={told.task} />
      <Side name={words.b} task={told.other} />
      <p className="facts" role="status">
        <span>{words.summary(told.same, told.different, told.only_in_task, told.only_in_other)}</span>
        <label>
          <input
            type="checkbox"
            checked={Boolean(view.different)}
            onChange={e =>
              void go({
                to: '/compare',
                search: { ...view, different: e.target.checked || undefined },
                replace: true,
              })
            }
          />{' '}
          {words.differentOnly}
        </label>
        {told.truncated && <span>{words.cut}</span>}
      </p>
      {told.visits.length > 0 && <MergedGraph told={told} />}
      {shown.length === 0 ? (
        <div className="panel">
          <Empty title={told.visits.length === 0 ? words.notStarted : words.equal} />
        </div>
      ) : (
        <div className="panel table-box">
          <table>
            <thead>
              <tr>
                <th>{words.step}</th>
                <th>{words.a}</th>
                <th>{words.b}</th>
                <th className="number">{words.durationA}</th>
                <th className="number">{words.durationB}</th>
                <th>{words.differences}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(p => (
                <Row key={`${p.scope}/${p.node}#${p.visit}`} pair={p} />
              ))}
            </tbody>
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
      <Link to="/tasks/$task" params={{ task: t.id }}>
        {t.id}
      </Link>
      <span>
        {t.flow} v{t.version}
      </span>
      <State state={stateOf(t)} />
      <span className="faint">{span(between(t.created_at, t.ended_at))}</span>
    </p>
  )
}

function Row({ pair: p }: { pair: VisitComparison }) {
  const time = (v?: VisitSummary) => (v && v.duration_ms > 0 ? span(v.duration_ms) : '')
  return (
    <tr>
      <td className="strong">
        {p.scope && <span className="faint">{p.scope}/</span>}
        {p.node}
        {p.visit > 1 && <span className="faint"> #{p.visit}</span>}
      </td>
      <td>
        <Went visit={p.task} />
      </td>
      <td>
        <Went visit={p.other} />
      </td>
      <td className="number">{time(p.task)}</td>
      <td className="number">{time(p.other)}</td>
      <td>
        {!p.task ? words.onlyB : !p.other ? words.onlyA : p.differences.join(', ')}
        {p.task && p.other && p.differences.includes('output') && (
          <div className="mono faint">{words.pair(p.task.output ?? '', p.other.output ?? '')}</div>
        )}
        {p.differences.includes('error') && (
          <div className="mono faint">
            {words.pair(p.task?.error || p.task?.reason || '', p.other?.error || p.other?.reason || '')}
          </div>
        )}
      </td>
    </tr>
  )
}

function Went({ visit: v }: { visit?: VisitSummary }) {
  if (!v) return <span className="faint">{words.missing}</span>
  return (
    <>
      <State state={v.state} />
      {v.attempts > 1 && <span className="faint">{words.attempts(v.attempts)}</span>}
    </>
  )
}
