import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FailureGroup, ListedTasks, Overview as Told, Queue } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { filterOf } from '../data/search'
import { span } from '../data/time'
import { QueueTable } from '../parts/QueueTable'
import { Sign } from '../parts/State'
import { Empty, Loading, outdated, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'

/** What is looked at first: every number leads to the list that it counts. */
export function Overview() {
  useTick()
  const { live } = usePrefs()
  const found = useQuery({ queryKey: ['overview'], refetchInterval: live && 2000, queryFn: ({ signal }) => call('GET /v1/overview', {}, signal) })
  if (!found.data) return found.isError ? <div className="page"><Trouble error={found.error} again={() => void found.refetch()} /></div> : <Loading />
  const o = found.data
  return (
    <div className="page overview">
      <div className="head">
        <h1>Overview</h1>
        {found.isError && <span className="tone-failed">of <When at={o.now} />: {outdated(found.error)}</span>}
      </div>
      <ul className="tiles" aria-label="Tasks by state">{o.states.map(s => <li key={s.state}><Tile state={s.state} of={s} name={s.state} /></li>)}</ul>
      <Recent of={o.recent} />
      <Failing of={o.failing} />
      <Slow of={o.slow} />
      <Queues queues={o.queues} services={o.services} />
      <Crew of={o} />
    </div>
  )
}

export function tally(n: ListedTasks): string {
  return n.count.toLocaleString('en') + (n.exact ? '' : '+')
}

function Tile({ state, of, name }: { state: string; of: ListedTasks; name: string }) {
  return <Link to="/tasks" search={filterOf(of.query)} className={`tile panel${of.count === 0 ? ' none' : ''}`}><b>{tally(of)}</b><span><Sign state={state} size={14} />{name}</span></Link>
}

function Recent({ of }: { of: Told['recent'] }) {
  return (
    <section className="section" aria-label="Of late">
      <h2>Of late</h2>
      <div className="panel table-box">
        <table>
          <thead><tr><th>In the last</th><th className="number">Started</th><th className="number">Completed</th><th className="number">Failed</th></tr></thead>
          <tbody>
            {of.map(r => (
              <tr key={r.window}>
                <td className="strong">{r.window === '1h' ? 'hour' : 'day'}</td>
                {[r.started, r.completed, r.failed].map((n, i) => <td key={i} className="number"><Link to="/tasks" search={filterOf(n.query)} className={i === 2 && n.count > 0 ? 'tone-failed strong' : ''}>{tally(n)}</Link></td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Failing({ of }: { of: Told['failing'] }) {
  return (
    <section className="section" aria-label="Failures">
      <h2>Failures <span className="faint">of {of.tasks.toLocaleString('en')} {of.tasks === 1 ? 'task' : 'tasks'} that failed since <When at={of.since} /></span></h2>
      {of.groups.length === 0 ? <div className="panel"><Empty title="No task has failed" /></div>
        : (
          <div className="panel table-box">
            <table>
              <thead><tr><th>Flow</th><th>Node</th><th>Error, # for numbers</th><th className="number">Tasks</th><th>Last</th></tr></thead>
              <tbody>{of.groups.map(g => <Failure key={g.query} of={g} />)}</tbody>
            </table>
          </div>
        )}
    </section>
  )
}

function Failure({ of: g }: { of: FailureGroup }) {
  const error = g.node && g.error.startsWith(`${g.node}: `) ? g.error.slice(g.node.length + 2) : g.error
  return (
    <tr>
      <td className="strong"><Link to="/flows/$flow" params={{ flow: g.flow }} search={{ heat: 'failures' }}>{g.flow}</Link></td>
      <td>{g.node}</td>
      <td className="error">{error}</td>
      <td className="number"><Link to="/tasks" search={filterOf(g.query)}>{g.count.toLocaleString('en')}</Link></td>
      <td className="time"><Link to="/tasks/$task" params={{ task: g.newest }}><When at={g.at} /></Link></td>
    </tr>
  )
}

function Slow({ of }: { of: Told['slow'] }) {
  if (of.length === 0) return null
  return (
    <section className="section" aria-label="Slower than before">
      <h2>Slower than before <span className="faint">99 % of tasks of the last day, and of the week before</span></h2>
      <div className="panel table-box">
        <table>
          <thead><tr><th>Flow</th><th className="number">Took</th><th className="number">Took before</th></tr></thead>
          <tbody>
            {of.map(f => (
              <tr key={f.flow}>
                <td className="strong"><Link to="/flows/$flow" params={{ flow: f.flow }} search={{ tab: 'stats', window: '7d' }}>{f.flow}</Link></td>
                <td className="number">{span(f.p99_ms)}</td>
                <td className="number">{span(f.before_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Queues({ queues, services }: { queues: Queue[]; services: number }) {
  return (
    <section className="section" aria-label="Queues">
      <h2>Queues <span className="faint">{services.toLocaleString('en')}</span></h2>
      {queues.length === 0 ? <div className="panel"><Empty title="Nothing waits for a worker" /></div> : <QueueTable queues={queues} />}
    </section>
  )
}

function Crew({ of: { workers, members } }: { of: Told }) {
  const facts: [string, number, string, '/workers' | '/cluster'][] = [['online', workers.online, 'workers online', '/workers'], ['offline', workers.offline, 'workers offline', '/workers']]
  if (members) facts.push(['living', members.living, 'members living', '/cluster'], ['draining', members.draining, 'members draining', '/cluster'], ['overdue', members.overdue, 'members overdue', '/cluster'])
  return (
    <section className="section" aria-label="Workers and members">
      <h2>Workers and members</h2>
      <ul className="tiles">{facts.map(([state, n, name, to]) => <li key={name}><Link to={to} className={`tile panel${n === 0 ? ' none' : ''}`}><b>{n.toLocaleString('en')}</b><span><Sign state={state} size={14} />{name}</span></Link></li>)}</ul>
    </section>
  )
}
