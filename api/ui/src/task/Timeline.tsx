import { nodeNow, type Digest } from '../data/digest'
import type { TaskView } from '../data/search'
import { now, span } from '../data/time'
import { isOver } from '../data/task'
import { Sign, toneOf, wordOf } from '../parts/State'
import { useTick } from '../parts/When'
import { wordNow } from './TaskGraph'

const most = 400

/** When each step was under way: the newest visit of each, from the beginning of the task to its end or now. */
export function TimelineTab({ digest, view, set }: { digest: Digest; view: TaskView; set: (v: Partial<TaskView>) => void }) {
  useTick()
  const end = isOver(digest.state) && digest.ended_at ? Date.parse(digest.ended_at) : now()
  const whole = Math.max(1, end - digest.base)
  const rows = digest.scopes.flatMap(scope => scope.nodes.map((key, i) => ({ key, scope: scope.scope, now: nodeNow(digest, scope, i) })))
    .filter(r => r.now.entered !== undefined).sort((a, b) => a.now.entered! - b.now.entered!)
  const at = (ms: number) => `${(100 * (ms - digest.base)) / whole}%`
  return (
    <div className="table-box timeline">
      <div className="timeline-axis" aria-hidden="true">{[0, 0.25, 0.5, 0.75, 1].map(f => <span key={f} style={{ left: `${100 * f}%` }}>{f === 0 ? '0' : span(f * whole)}</span>)}</div>
      <ol>
        {rows.slice(0, most).map(r => {
          const word = wordNow(r.now), ended = r.now.ended ?? end
          return (
            <li key={r.scope + '\n' + r.key} className={r.key === view.node && r.scope === (view.scope ?? '') ? 'chosen' : ''}>
              <button className="timeline-name" onClick={() => set({ node: r.key, scope: r.scope || undefined, unit: undefined })}>
                <Sign state={word} size={14} /><span className="ellipsis">{r.scope && <span className="faint">{r.scope}/</span>}{r.key}</span><span className="unseen">{wordOf(word)}</span>
              </button>
              <span className="timeline-track">
                <i className={`bar-of tone-${toneOf(word)}`} style={{ left: at(r.now.entered!), width: `${(100 * (ended - r.now.entered!)) / whole}%` }} />
              </span>
              <span className="number">{span(ended - r.now.entered!)}</span>
            </li>
          )
        })}
      </ol>
      {rows.length > most && <p className="table-tools faint">the first {most} of {rows.length.toLocaleString('en')} steps; the tab Steps has all</p>}
    </div>
  )
}
