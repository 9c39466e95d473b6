import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FlowStats, NodeStats } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { filterOf, type FlowView, type Window } from '../data/search'
import { span } from '../data/time'
import { short } from '../parts/short'
import { Sign } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'

export function useStats(flow: string, version: number | undefined, window: Window, wanted: boolean) {
  const { live } = usePrefs()
  return useQuery({
    queryKey: ['stats', flow, version, window], enabled: wanted && version !== undefined, refetchInterval: live && 10_000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => call('GET /v1/flows/{flow}/stats', { path: { flow }, query: { window, version } }, signal),
  })
}

export function WindowOf({ view, set }: { view: FlowView; set: (v: Partial<FlowView>) => void }) {
  return (
    <label className="inline">ended in the last
      <select value={view.window ?? '24h'} onChange={e => set({ window: e.target.value as Window })}><option value="1h">hour</option><option value="24h">24 hours</option><option value="7d">7 days</option></select>
    </label>
  )
}

/** How much of what there is has been read. */
export function Sampled({ of: s }: { of: FlowStats }) {
  return <span className="faint">{s.of === 0 ? 'no task has ended' : s.sampled === s.of ? `all ${s.of.toLocaleString('en')} tasks` : `the newest ${s.sampled} of ${s.of.toLocaleString('en')} tasks`}</span>
}

/** How the tasks of a version go, and what each node does. */
export function Stats({ flow, version, view, set }: { flow: string; version: number; view: FlowView; set: (v: Partial<FlowView>) => void }) {
  const found = useStats(flow, version, view.window ?? '24h', true)
  if (!found.data) return found.isError ? <Trouble error={found.error} again={() => void found.refetch()} /> : <Loading />
  const s = found.data
  const times = s.duration
  return (
    <div className="stats" tabIndex={0} role="region" aria-label="Statistics">
      <div className="heat-bar"><WindowOf view={view} set={set} /><Sampled of={s} /></div>
      <ul className="tiles" aria-label="Tasks that ended">
        {s.states.map(n => <li key={n.state}><Link to="/tasks" search={filterOf(n.query)} className={`tile panel${n.count === 0 ? ' none' : ''}`}><b>{n.count.toLocaleString('en')}{n.exact ? '' : '+'}</b><span><Sign state={n.state} size={14} />{n.state}</span></Link></li>)}
        {s.sampled > 0 && ([['half', times.p50_ms], ['95 %', times.p95_ms], ['99 %', times.p99_ms]] as const).map(([name, ms]) => <li key={name} className="tile panel"><b>{span(ms)}</b><span>{name} took no longer</span></li>)}
      </ul>
      {s.nodes.length > 0 && (
        <div className="panel table-box">
          <table>
            <thead><tr><th>Node</th><th className="number">Visits</th><th className="number">Failed</th><th className="number">Retried</th><th className="number">p50</th><th className="number">p95</th><th className="number">Longest</th><th>Failed last</th></tr></thead>
            <tbody>{s.nodes.map(n => <NodeRow key={`${n.scope}/${n.key}`} node={n} />)}</tbody>
          </table>
        </div>
      )}
    </div>
  )
}

function NodeRow({ node: n }: { node: NodeStats }) {
  return (
    <tr>
      <td className="strong">{n.scope && <span className="faint">{n.scope}/</span>}{n.key}</td>
      <td className="number">{n.visits}</td>
      <td className={`number${n.failures > 0 ? ' tone-failed' : ''}`}>{n.failures}</td>
      <td className="number">{n.retries}</td>
      <td className="number">{span(n.duration.p50_ms)}</td>
      <td className="number">{span(n.duration.p95_ms)}</td>
      <td className="number">{span(n.duration.max_ms)}</td>
      <td>{n.last_failed && <Link to="/tasks/$task" params={{ task: n.last_failed }} className="mono">{short(n.last_failed)}</Link>}</td>
    </tr>
  )
}
