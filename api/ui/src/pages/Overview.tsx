import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FailureGroup, TaskQuery, Overview as Told, Queue } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { filterOf } from '../data/search'
import { elapsed, span } from '../data/time'
import { QueueTable } from '../parts/QueueTable'
import { Sign } from '../parts/State'
import { Empty, Loading, outdated, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { atLeast, digits, texts } from '../texts'

const t = texts.overview

/** Overview is the first page. Each number leads to the list that it counts. */
export function Overview() {
  useTick()
  const { live } = usePrefs()
  const found = useQuery({
    queryKey: ['overview'],
    refetchInterval: live && 2000,
    queryFn: ({ signal }) => call('GET /v1/overview', {}, signal),
  })
  if (!found.data)
    return found.isError ? (
      <div className="page">
        <Trouble error={found.error} again={() => void found.refetch()} />
      </div>
    ) : (
      <Loading />
    )
  const o = found.data
  return (
    <div className="page overview">
      <div className="head">
        <h1>{t.title}</h1>
        {found.isError && (
          <span className="tone-failed">
            {t.staleBefore} <When at={o.store_time} />. {outdated(found.error)}
          </span>
        )}
      </div>
      <ul className="tiles" aria-label={t.byState}>
        {o.states.map(s => (
          <li key={s.state}>
            <Tile state={s.state} of={s} name={s.state} />
          </li>
        ))}
      </ul>
      <Recent of={o.recent} />
      <Failing of={o.recent_failures} />
      <Slow of={o.slower_flows} />
      <Queues queues={o.queues} services={o.queue_count} />
      <Crew of={o} />
    </div>
  )
}

export function tally(n: TaskQuery): string {
  return atLeast(n.count, !n.exact)
}

function Tile({ state, of, name }: { state: string; of: TaskQuery; name: string }) {
  return (
    <Link
      to="/tasks"
      search={filterOf(of.query)}
      className={`tile panel${of.count === 0 ? ' none' : ''}`}
    >
      <b>{tally(of)}</b>
      <span>
        <Sign state={state} size={14} />
        {name}
      </span>
    </Link>
  )
}

function Recent({ of }: { of: Told['recent'] }) {
  return (
    <section className="section" aria-label={t.activity}>
      <h2>{t.activity}</h2>
      <div className="panel table-box">
        <table>
          <thead>
            <tr>
              <th>{t.period}</th>
              <th className="number">{t.started}</th>
              <th className="number">{t.completed}</th>
              <th className="number">{t.failed}</th>
            </tr>
          </thead>
          <tbody>
            {of.map(r => (
              <tr key={r.window}>
                <td className="strong">{r.window === '1h' ? t.lastHour : t.lastDay}</td>
                {[r.started, r.completed, r.failed].map((n, i) => (
                  <td key={i} className="number">
                    <Link
                      to="/tasks"
                      search={filterOf(n.query)}
                      className={i === 2 && n.count > 0 ? 'tone-failed strong' : ''}
                    >
                      {tally(n)}
                    </Link>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Failing({ of }: { of: Told['recent_failures'] }) {
  return (
    <section className="section" aria-label={t.failures}>
      <h2>
        {t.failures} <span className="faint">{t.failuresOf(of.tasks, elapsed(of.since))}</span>
      </h2>
      {of.groups.length === 0 ? (
        <div className="panel">
          <Empty title={t.noFailures} />
        </div>
      ) : (
        <div className="panel table-box">
          <table>
            <thead>
              <tr>
                <th>{t.flow}</th>
                <th>{t.node}</th>
                <th>{t.error}</th>
                <th className="number">{t.tasks}</th>
                <th>{t.last}</th>
              </tr>
            </thead>
            <tbody>
              {of.groups.map(g => (
                <Failure key={g.query} of={g} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function Failure({ of: g }: { of: FailureGroup }) {
  const error =
    g.node && g.error.startsWith(`${g.node}: `) ? g.error.slice(g.node.length + 2) : g.error
  return (
    <tr>
      <td className="strong">
        <Link to="/flows/$flow" params={{ flow: g.flow }} search={{ heat: 'failures' }}>
          {g.flow}
        </Link>
      </td>
      <td>{g.node}</td>
      <td className="error">{error}</td>
      <td className="number">
        <Link to="/tasks" search={filterOf(g.query)}>
          {digits(g.count)}
        </Link>
      </td>
      <td className="time">
        <Link to="/tasks/$task" params={{ task: g.latest_task }}>
          <When at={g.failed_at} />
        </Link>
      </td>
    </tr>
  )
}

function Slow({ of }: { of: Told['slower_flows'] }) {
  if (of.length === 0) return null
  return (
    <section className="section" aria-label={t.slower}>
      <h2>
        {t.slower} <span className="faint">{t.slowerNote}</span>
      </h2>
      <div className="panel table-box">
        <table>
          <thead>
            <tr>
              <th>{t.flow}</th>
              <th className="number">{t.p99}</th>
              <th className="number">{t.p99Before}</th>
            </tr>
          </thead>
          <tbody>
            {of.map(f => (
              <tr key={f.flow}>
                <td className="strong">
                  <Link
                    to="/flows/$flow"
                    params={{ flow: f.flow }}
                    search={{ tab: 'stats', window: '7d' }}
                  >
                    {f.flow}
                  </Link>
                </td>
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
    <section className="section" aria-label={texts.queues.title}>
      <h2>
        {texts.queues.title} <span className="faint">{digits(services)}</span>
      </h2>
      {queues.length === 0 ? (
        <div className="panel">
          <Empty title={texts.queues.empty} />
        </div>
      ) : (
        <QueueTable queues={queues} />
      )}
    </section>
  )
}

function Crew({ of: { workers, members } }: { of: Told }) {
  const facts: [string, number, string, '/workers' | '/cluster'][] = [
    ['online', workers.online, t.workersOnline, '/workers'],
    ['offline', workers.offline, t.workersOffline, '/workers'],
  ]
  if (members)
    facts.push(
      ['living', members.alive, t.membersLiving, '/cluster'],
      ['draining', members.draining, t.membersDraining, '/cluster'],
      ['overdue', members.overdue, t.membersOverdue, '/cluster'],
    )
  return (
    <section className="section" aria-label={t.crew}>
      <h2>{t.crew}</h2>
      <ul className="tiles">
        {facts.map(([state, n, name, to]) => (
          <li key={name}>
            <Link to={to} className={`tile panel${n === 0 ? ' none' : ''}`}>
              <b>{digits(n)}</b>
              <span>
                <Sign state={state} size={14} />
                {name}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
