import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { FlowStats, NodeStats } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import type { FlowView, Window } from '../data/search'
import { span } from '../data/time'
import { Trend } from '../parts/Chart'
import { short } from '../parts/short'
import { Sign } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { placeOf, share } from './heat'
import { digits, texts } from '../texts'

const t = texts.stats

export function useStats(
  flow: string,
  version: number | undefined,
  window: Window,
  wanted: boolean,
) {
  const { live } = usePrefs()
  return useQuery({
    queryKey: ['stats', flow, version, window],
    enabled: wanted && version !== undefined,
    refetchInterval: live && 10_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      call('GET /v1/flows/{flow}/stats', { path: { flow }, query: { window, version } }, signal),
  })
}

export function WindowOf({ view, set }: { view: FlowView; set: (v: Partial<FlowView>) => void }) {
  return (
    <label className="inline">
      {t.period}
      <select
        value={view.window ?? '24h'}
        onChange={e => set({ window: e.target.value as Window })}
      >
        {(['1h', '24h', '7d'] as const).map(w => (
          <option key={w} value={w}>
            {t.periods[w]}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Ended shows the number of tasks behind the statistics. */
export function Ended({ of: { tasks } }: { of: FlowStats }) {
  const n = tasks.completed + tasks.failed + tasks.canceled
  return <span className="faint">{t.ended(n)}</span>
}

/** Stats shows the statistics of a version and of each of its nodes. */
export function Stats({
  flow,
  version,
  view,
  set,
}: {
  flow: string
  version: number
  view: FlowView
  set: (v: Partial<FlowView>) => void
}) {
  const found = useStats(flow, version, view.window ?? '24h', true)
  if (!found.data)
    return found.isError ? (
      <Trouble error={found.error} again={() => void found.refetch()} />
    ) : (
      <Loading />
    )
  const s = found.data
  const times = s.tasks.duration
  const ended = s.tasks.completed + s.tasks.failed + s.tasks.canceled
  return (
    <div className="stats" tabIndex={0} role="region" aria-label={t.label}>
      <div className="heat-bar">
        <WindowOf view={view} set={set} />
        <Ended of={s} />
      </div>
      <ul className="tiles" aria-label={t.endedTasks}>
        {(['completed', 'failed', 'canceled'] as const).map(state => (
          <li key={state}>
            <Link
              to="/tasks"
              search={{ flow, state: [state], version, ended_from: s.since }}
              className={`tile panel${s.tasks[state] === 0 ? ' none' : ''}`}
            >
              <b>{digits(s.tasks[state])}</b>
              <span>
                <Sign state={state} size={14} />
                {state}
              </span>
            </Link>
          </li>
        ))}
        {ended > 0 &&
          (
            [
              [t.columns.p50, times.p50_ms],
              [t.columns.p95, times.p95_ms],
              [t.columns.p99, times.p99_ms],
            ] as const
          ).map(([name, ms]) => (
            <li key={name} className="tile panel">
              <b>{span(ms)}</b>
              <span>{name}</span>
            </li>
          ))}
      </ul>
      {s.nodes.length > 0 && <Nodes nodes={s.nodes} />}
    </div>
  )
}

const columns: [name: string, of: (n: NodeStats) => number | string][] = [
  [t.columns.node, placeOf],
  [t.columns.count, n => n.count],
  [t.columns.failed, n => share(n.failed, n.count)],
  [t.columns.retried, n => share(n.retried, n.units)],
  [t.columns.skipped, n => share(n.skipped, n.count)],
  [t.columns.p50, n => n.duration.p50_ms],
  [t.columns.p95, n => n.duration.p95_ms],
  [t.columns.p99, n => n.duration.p99_ms],
  [t.columns.wait, n => n.wait?.p95_ms ?? -1],
]

/**
 * Nodes lists the statistics of each node, sorted by a column: names ascending, numbers descending.
 */
function Nodes({ nodes }: { nodes: NodeStats[] }) {
  const [by, setBy] = useState(0)
  const value = columns[by][1]
  const sorted = by === 0 ? nodes : nodes.toSorted((a, b) => Number(value(b)) - Number(value(a)))
  return (
    <div className="panel table-box">
      <table>
        <thead>
          <tr>
            {columns.map(([name], i) => (
              <th
                key={name}
                className={i > 0 ? 'number' : ''}
                aria-sort={i !== by ? 'none' : i === 0 ? 'ascending' : 'descending'}
              >
                <button className="quiet sort" onClick={() => setBy(i)}>
                  {name}
                  {i === by && <span aria-hidden="true"> {i === 0 ? '↑' : '↓'}</span>}
                </button>
              </th>
            ))}
            <th>{t.columns.trend}</th>
            <th>{t.columns.lastFailed}</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map(n => (
            <NodeRow key={placeOf(n)} node={n} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function trendOf(n: NodeStats): string {
  const least = Math.min(...n.p95_trend_ms.filter(v => v > 0), n.duration.max_ms)
  return t.trend(n.key, span(least), span(Math.max(...n.p95_trend_ms)))
}

function percent(n: number, of: number): string {
  return n === 0 ? '0' : `${(100 * share(n, of)).toFixed(1)} %`
}

function NodeRow({ node: n }: { node: NodeStats }) {
  return (
    <tr>
      <td className="strong">
        {n.scope && <span className="faint">{n.scope}/</span>}
        {n.key}
      </td>
      <td className="number">{digits(n.count)}</td>
      <td
        className={`number${n.failed > 0 ? ' tone-failed' : ''}`}
        title={t.share(n.failed, n.count)}
      >
        {percent(n.failed, n.count)}
      </td>
      <td className="number" title={t.retries(n.retried, n.units)}>
        {percent(n.retried, n.units)}
      </td>
      <td className="number" title={t.share(n.skipped, n.count)}>
        {percent(n.skipped, n.count)}
      </td>
      <td className="number">{span(n.duration.p50_ms)}</td>
      <td className="number">{span(n.duration.p95_ms)}</td>
      <td className="number">{span(n.duration.p99_ms)}</td>
      <td className="number">{n.wait ? span(n.wait.p95_ms) : '—'}</td>
      <td>
        <Trend values={n.p95_trend_ms} label={trendOf(n)} />
      </td>
      <td>
        {n.last_failed && (
          <Link to="/tasks/$task" params={{ task: n.last_failed }} className="mono">
            {short(n.last_failed)}
          </Link>
        )}
      </td>
    </tr>
  )
}
