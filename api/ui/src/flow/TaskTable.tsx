import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Version } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import type { FlowView } from '../data/search'
import { between, span } from '../data/time'
import { short } from '../parts/short'
import { State, stateOf } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { When } from '../parts/When'
import { texts } from '../texts'

const words = texts.flowTasks

/** TaskTable lists the latest tasks of a flow, or of one version. */
export function TaskTable({
  flow,
  known,
  version,
  set,
}: {
  flow: string
  known: Version[]
  version?: number
  set: (v: Partial<FlowView>) => void
}) {
  const { live } = usePrefs()
  const tasks = useQuery({
    queryKey: ['tasks-of', flow, version],
    refetchInterval: live && 3000,
    queryFn: ({ signal }) =>
      call('GET /v1/tasks', { query: { flow: [flow], version, limit: 50 } }, signal),
  })
  if (tasks.isLoadingError)
    return <Trouble error={tasks.error} again={() => void tasks.refetch()} />
  if (!tasks.data) return <Loading />
  if (tasks.data.items.length === 0 && version === undefined)
    return (
      <Empty title={words.empty}>
        <Link to="/flows/$flow" params={{ flow }} search={{ tab: 'start' }}>
          {words.startOne}
        </Link>
      </Empty>
    )
  return (
    <div className="table-box">
      <div className="table-tools">
        <label className="inline">
          {words.filter}
          <select
            value={version ?? ''}
            onChange={e => set({ of: Number(e.target.value) || undefined })}
          >
            <option value="">{texts.any}</option>
            {known.map(v => (
              <option key={v.id} value={v.number}>
                v{v.number}
              </option>
            ))}
          </select>
        </label>
        {tasks.data.items.length === 0 && (
          <span className="faint">{version !== undefined && words.none(version)}</span>
        )}
      </div>
      <table>
        <thead>
          <tr>
            <th>{words.state}</th>
            <th>{words.task}</th>
            <th>{words.version}</th>
            <th>{words.error}</th>
            <th>{words.started}</th>
            <th className="number">{words.took}</th>
          </tr>
        </thead>
        <tbody>
          {tasks.data.items.map(t => (
            <tr key={t.id}>
              <td>
                <State state={stateOf(t)} />
              </td>
              <td>
                <Link to="/tasks/$task" params={{ task: t.id }} className="mono" title={t.id}>
                  {short(t.id)}
                </Link>
              </td>
              <td>v{t.version}</td>
              <td className="tone-failed">{t.error}</td>
              <td className="time">
                <When at={t.created_at} />
              </td>
              <td className="number">{span(between(t.created_at, t.ended_at))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tasks.data.next && (
        <p className="table-tools">
          <Link to="/tasks" search={{ flow, version }}>
            {words.all}
          </Link>
        </p>
      )}
    </div>
  )
}
