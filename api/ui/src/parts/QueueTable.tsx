import { Link } from '@tanstack/react-router'
import type { Queue } from '../api.gen'
import { Icon } from './Icon'
import { When } from './When'
import { digits, texts } from '../texts'

const t = texts.queues

/**
 * QueueTable lists the queues and their workers. The number of tasks links to their list. One queue
 * can be highlighted.
 */
export function QueueTable({ queues, meant }: { queues: Queue[]; meant?: string }) {
  return (
    <div className="panel table-box">
      <table>
        <thead>
          <tr>
            <th>{t.service}</th>
            <th className="number">{t.jobs}</th>
            <th className="number">{t.tasks}</th>
            <th>{t.oldest}</th>
            <th>{t.workers}</th>
          </tr>
        </thead>
        <tbody>
          {queues.map(q => (
            <tr key={q.service} aria-current={q.service === meant || undefined}>
              <td className="strong">
                <Link to="/workers" search={{ queue: q.service }}>
                  {q.service}
                </Link>
              </td>
              <td className="number">{digits(q.waiting)}</td>
              <td className="number">
                <Link to="/tasks" search={{ queued: q.service }}>
                  {digits(q.tasks)}
                  <span className="unseen">{t.tasksOf(q.service)}</span>
                </Link>
              </td>
              <td className="time">
                <When at={q.oldest_at} />
              </td>
              <td>
                {q.workers > 0 ? (
                  q.workers
                ) : (
                  <span className="state tone-failed">
                    <Icon name="alert" size={14} />
                    {t.unserved}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
