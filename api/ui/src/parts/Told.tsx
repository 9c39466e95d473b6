import type { ReactNode } from 'react'
import { Away, Refused } from '../data/call'
import { Icon } from './Icon'
import { texts } from '../texts'

const t = texts.trouble

/**
 * Trouble shows an error: the problem, its place, the remedy, and the request id that the server's
 * log contains.
 */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const p = error instanceof Refused ? error.problem : undefined
  return (
    <div className="trouble" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{p?.message ?? (error instanceof Error ? error.message : String(error))}</strong>
        {p?.hint && <p>{p.hint}</p>}
        {p?.errors?.map((f, i) => (
          <p key={i}>
            <code>{f.field}</code> {f.message}
          </p>
        ))}
        {error instanceof Away && again && <p>{t.retrying}</p>}
        {(p?.field || p?.request_id) && (
          <details className="faint">
            <summary>{t.details}</summary>
            {p.field && (
              <div>
                {t.at} <code>{p.field}</code>
              </div>
            )}
            {p.request_id && (
              <div>
                {t.request} <code>{p.request_id}</code>
              </div>
            )}
          </details>
        )}
      </div>
      {again && (
        <button onClick={again}>
          <Icon name="retry" size={14} /> {t.retry}
        </button>
      )}
    </div>
  )
}

/** outdated describes an error in a few words, for data that is shown as it was. */
export function outdated(error: Error): string {
  return error instanceof Away ? t.stale(error.message) : error.message
}

/** Empty explains why there is no data, and offers the next step. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children && <div>{children}</div>}
    </div>
  )
}

export function Loading() {
  return (
    <div className="loading" role="status">
      {texts.loading}
    </div>
  )
}
