import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { FlowChange, Version } from '../api.gen'
import { call } from '../data/call'
import { blocks, differ } from '../data/lines'
import { filterOf, type FlowView } from '../data/search'
import { useVersion } from '../data/task'
import { Loading, Trouble } from '../parts/Told'
import { When } from '../parts/When'
import { stringify } from '../data/json'

interface Props { flow: string; known: Version[]; more?: () => void; view: FlowView; set: (v: Partial<FlowView>) => void }

/** All versions of a flow, and how two of them differ. */
export function Versions({ flow, known, more, view, set }: Props) {
  const to = view.to ?? known[0]?.number, from = view.from ?? known.find(v => v.number < to)?.number
  const pick = (name: 'from' | 'to', number: number | undefined) => (
    <select value={number ?? ''} onChange={e => set({ [name]: Number(e.target.value) })} aria-label={name === 'from' ? 'Older version' : 'Newer version'}>
      {number === undefined && <option value="">none</option>}
      {known.map(v => <option key={v.id} value={v.number}>v{v.number}</option>)}
    </select>
  )
  return (
    <div className="table-box versions" tabIndex={0} role="region" aria-label="Versions">
      <div className="heat-bar"><label className="inline">compare {pick('from', from)}</label><label className="inline">with {pick('to', to)}</label></div>
      {from === undefined ? <p className="faint pad">There is no other version to compare it with.</p> : <Diff flow={flow} from={from} to={to} />}
      <table>
        <thead><tr><th>Version</th><th>State</th><th>Published</th><th>Hash</th><th>Differences</th></tr></thead>
        <tbody>{known.map((v, i) => (
          <tr key={v.id}>
            <td><Link to="/flows/$flow" params={{ flow }} search={{ v: v.number }}>v{v.number}</Link></td><td>{v.status}</td><td className="time"><When at={v.created_at} /></td><td className="mono faint">{v.hash?.slice(0, 16)}</td>
            <td>{known[i + 1] && <Link to="/flows/$flow" params={{ flow }} search={{ ...view, from: known[i + 1].number, to: v.number }} replace>from v{known[i + 1].number}</Link>}</td>
          </tr>
        ))}</tbody>
      </table>
      {more && <button onClick={more}>Older versions</button>}
    </div>
  )
}

function Diff({ flow, from, to }: { flow: string; from: number; to: number }) {
  const diff = useQuery({ queryKey: ['diff', flow, from, to], queryFn: ({ signal }) => call('GET /v1/flows/{flow}/diff', { path: { flow }, query: { from, to } }, signal) })
  if (diff.isError) return <Trouble error={diff.error} again={() => void diff.refetch()} />
  if (!diff.data) return <Loading />
  const { changes, under_way: tasks } = diff.data
  const older = Math.min(from, to)
  return (
    <section className="diff" aria-label={`Differences of v${from} and v${to}`}>
      <p className="pad"><Link to="/tasks" search={filterOf(tasks.query)}>{tasks.count.toLocaleString('en')}{tasks.exact ? '' : '+'} {tasks.count === 1 ? 'task goes' : 'tasks go'} on with v{older}</Link></p>
      {changes.length === 0 ? <p className="faint pad">They do the same, however they are written.</p> : (
        <table>
          <thead><tr><th>Change</th><th>Where</th><th>What</th><th>v{from}</th><th>v{to}</th></tr></thead>
          <tbody>{changes.map((c, i) => <Change key={i} of={c} />)}</tbody>
        </table>
      )}
      <Text flow={flow} from={from} to={to} />
    </section>
  )
}

const signs = { added: '+', removed: '−', changed: '~' } as const

function Change({ of: c }: { of: FlowChange }) {
  return (
    <tr>
      <td className={`time how-${c.how}`}><b aria-hidden="true">{signs[c.how]}</b> {c.what} {c.how}</td>
      <td>{c.scope && <span className="faint">{c.scope}/</span>}{c.node}</td><td>{c.field}</td>
      <td><code>{c.old}</code></td><td><code>{c.new}</code></td>
    </tr>
  )
}

/** The definitions as texts. */
function Text({ flow, from, to }: { flow: string; from: number; to: number }) {
  const old = useVersion(flow, from), now = useVersion(flow, to)
  const told = useMemo(() => old.data && now.data && blocks(differ(linesOf(old.data), linesOf(now.data))), [old.data, now.data])
  if (!told) return null
  if (told.every(b => 'same' in b)) return <p className="faint pad">The definitions are the same.</p>
  return (
    <pre className="text-diff" tabIndex={0} aria-label="Differences of the definitions">
      {told.map((b, i) => 'same' in b ? <span key={i} className="faint">{`  … ${b.same.toLocaleString('en')} the same\n`}</span> : <span key={i} className={`how-${b.how}`}>{(b.how === 'added' ? '+ ' : b.how === 'removed' ? '− ' : '  ') + b.text + '\n'}</span>)}
    </pre>
  )
}

const linesOf = (v: Version) => stringify(v.definition, 2).split('\n')
