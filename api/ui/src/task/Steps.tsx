import { useState } from 'react'
import { nodeNow, planned, type Digest } from '../data/digest'
import { kindOf, type Graph } from '../data/plan'
import type { TaskView } from '../data/search'
import { exact, now, span } from '../data/time'
import { State } from '../parts/State'
import { useTick } from '../parts/When'
import { wordNow } from './TaskGraph'
import { texts } from '../texts'

const t = texts.steps

const atOnce = 500

/**
 * StepsTab shows the graph as a table: every step of the visible scopes, in the order of the plan.
 */
export function StepsTab({
  digest,
  graph,
  view,
  set,
}: {
  digest: Digest
  graph?: Graph
  view: TaskView
  set: (v: Partial<TaskView>) => void
}) {
  useTick()
  const [failed, setFailed] = useState(false),
    [most, setMost] = useState(atOnce)
  const rows = digest.scopes
    .flatMap(scope => {
      const plan = graph?.scopes.find(s => s.scope === planned(scope.scope))
      return scope.nodes.map((key, i) => ({
        key,
        scope: scope.scope,
        node: plan && graph?.nodes[plan.first_node + i],
        now: nodeNow(digest, scope, i),
      }))
    })
    .filter(r => (failed ? r.now.state === 'failed' || r.now.failed > 0 : !r.node?.generated))
  return (
    <div className="table-box">
      <div className="table-tools">
        <label className="check">
          <input type="checkbox" checked={failed} onChange={e => setFailed(e.target.checked)} />{' '}
          {t.failedOnly}
        </label>
        <span className="faint">{t.count(rows.length)}</span>
      </div>
      <table>
        <thead>
          <tr>
            <th>{t.step}</th>
            <th>{t.state}</th>
            <th>{t.kind}</th>
            <th className="number">{t.units}</th>
            <th className="number">{t.visits}</th>
            <th>{t.started}</th>
            <th className="number">{t.took}</th>
            <th>{t.reason}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map(r => (
            <tr
              key={r.scope + '\n' + r.key}
              className={r.key === view.node && r.scope === (view.scope ?? '') ? 'chosen' : ''}
            >
              <td>
                <button
                  className="link"
                  onClick={() => set({ node: r.key, scope: r.scope || undefined, unit: undefined })}
                >
                  {r.scope && <span className="faint">{r.scope}/</span>}
                  {r.key}
                </button>
              </td>
              <td>
                <State state={wordNow(r.now)} />
              </td>
              <td className="faint">{r.node ? kindOf(r.node).word : ''}</td>
              <td className="number">{r.now.total > 1 ? `${r.now.done}/${r.now.total}` : ''}</td>
              <td className="number">{r.now.visit > 1 ? r.now.visit : ''}</td>
              <td className="time">{exact(r.now.entered)}</td>
              <td className="number">
                {r.now.entered !== undefined ? span((r.now.ended ?? now()) - r.now.entered) : ''}
              </td>
              <td className="tone-failed">{r.now.error ?? r.now.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && (
        <button onClick={() => setMost(most + atOnce)}>
          {t.more(Math.min(atOnce, rows.length - most))}
        </button>
      )}
    </div>
  )
}
