import { Link } from '@tanstack/react-router'
import type { Queue } from '../api.gen'
import { Icon } from './Icon'
import { When } from './When'

/** Queues, and who serves them. The number of tasks leads to the list of these. One may be pointed out. */
export function QueueTable({ queues, meant }: { queues: Queue[]; meant?: string }) {
  return (
    <div className="panel table-box">
      <table>
        <thead><tr><th>Service</th><th className="number">Jobs</th><th className="number">Tasks</th><th>Oldest since</th><th>Workers that are there</th></tr></thead>
        <tbody>
          {queues.map(q => (
            <tr key={q.service} aria-current={q.service === meant || undefined}>
              <td className="strong"><Link to="/workers" search={{ queue: q.service }}>{q.service}</Link></td>
              <td className="number">{q.waiting.toLocaleString('en')}</td>
              <td className="number"><Link to="/tasks" search={{ queued: q.service }}>{q.tasks.toLocaleString('en')}<span className="unseen"> tasks of {q.service}</span></Link></td>
              <td className="time"><When at={q.oldest} /></td>
              <td>{q.workers > 0 ? q.workers : <span className="state tone-failed"><Icon name="alert" size={14} />nobody serves this</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
