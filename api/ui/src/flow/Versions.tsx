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
import { texts } from '../texts'

const t = texts.versions

interface Props {
  flow: string
  known: Version[]
  more?: () => void
  view: FlowView
  set: (v: Partial<FlowView>) => void
}

/** Versions lists all versions of a flow, and compares two of them. */
export function Versions({ flow, known, more, view, set }: Props) {
  const to = view.to ?? known[0]?.number,
    from = view.from ?? known.find(v => v.number < to)?.number
  const pick = (name: 'from' | 'to', number: number | undefined) => (
    <select
      value={number ?? ''}
      onChange={e => set({ [name]: Number(e.target.value) })}
      aria-label={name === 'from' ? t.older : t.newer}
    >
      {number === undefined && <option value="">{texts.none}</option>}
      {known.map(v => (
        <option key={v.id} value={v.number}>
          v{v.number}
        </option>
      ))}
    </select>
  )
  return (
    <div className="table-box versions" tabIndex={0} role="region" aria-label={t.label}>
      <div className="heat-bar">
        <label className="inline">
          {t.compare} {pick('from', from)}
        </label>
        <label className="inline">
          {t.with} {pick('to', to)}
        </label>
      </div>
      {from === undefined ? (
        <p className="faint pad">{t.single}</p>
      ) : (
        <Diff flow={flow} from={from} to={to} />
      )}
      <table>
        <thead>
          <tr>
            <th>{t.version}</th>
            <th>{t.state}</th>
            <th>{t.published}</th>
            <th>{t.hash}</th>
            <th>{t.differences}</th>
          </tr>
        </thead>
        <tbody>
          {known.map((v, i) => (
            <tr key={v.id}>
              <td>
                <Link to="/flows/$flow" params={{ flow }} search={{ v: v.number }}>
                  v{v.number}
                </Link>
              </td>
              <td>{v.status}</td>
              <td className="time">
                <When at={v.created_at} />
              </td>
              <td className="mono faint">{v.hash?.slice(0, 16)}</td>
              <td>
                {known[i + 1] && (
                  <Link
                    to="/flows/$flow"
                    params={{ flow }}
                    search={{ ...view, from: known[i + 1].number, to: v.number }}
                    replace
                  >
                    {t.from(known[i + 1].number)}
                  </Link>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {more && <button onClick={more}>{t.more}</button>}
    </div>
  )
}

function Diff({ flow, from, to }: { flow: string; from: number; to: number }) {
  const diff = useQuery({
    queryKey: ['diff', flow, from, to],
    queryFn: ({ signal }) =>
      call('GET /v1/flows/{flow}/diff', { path: { flow }, query: { from, to } }, signal),
  })
  if (diff.isError) return <Trouble error={diff.error} again={() => void diff.refetch()} />
  if (!diff.data) return <Loading />
  const { changes, running_tasks: tasks } = diff.data
  const older = Math.min(from, to)
  return (
    <section className="diff" aria-label={t.diff(from, to)}>
      <p className="pad">
        <Link to="/tasks" search={filterOf(tasks.query)}>
          {t.running(tasks.count, tasks.exact, older)}
        </Link>
      </p>
      {changes.length === 0 ? (
        <p className="faint pad">{t.equal}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>{t.change}</th>
              <th>{t.node}</th>
              <th>{t.field}</th>
              <th>v{from}</th>
              <th>v{to}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((c, i) => (
              <Change key={i} of={c} />
            ))}
          </tbody>
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
      <td className={`time how-${c.change}`}>
        <b aria-hidden="true">{signs[c.change]}</b> {c.kind} {c.change}
      </td>
      <td>
        {c.scope && <span className="faint">{c.scope}/</span>}
        {c.node}
      </td>
      <td>{c.field}</td>
      <td>
        <code>{c.old}</code>
      </td>
      <td>
        <code>{c.new}</code>
      </td>
    </tr>
  )
}

/** Text compares the definitions of two versions as texts. */
function Text({ flow, from, to }: { flow: string; from: number; to: number }) {
  const old = useVersion(flow, from),
    now = useVersion(flow, to)
  const told = useMemo(
    () => old.data && now.data && blocks(differ(linesOf(old.data), linesOf(now.data))),
    [old.data, now.data],
  )
  if (!told) return null
  if (told.every(b => 'same' in b)) return <p className="faint pad">{t.sameText}</p>
  return (
    <pre className="text-diff" tabIndex={0} aria-label={t.text}>
      {told.map((b, i) =>
        'same' in b ? (
          <span key={i} className="faint">
            {t.unchanged(b.same)}
          </span>
        ) : (
          <span key={i} className={`how-${b.how}`}>
            {(b.how === 'added' ? '+ ' : b.how === 'removed' ? '− ' : '  ') + b.text + '\n'}
          </span>
        ),
      )}
    </pre>
  )
}

const linesOf = (v: Version) => stringify(v.definition, 2).split('\n')
