import type { ReactNode } from 'react'
import { Away, Refused } from '../data/call'
import { Icon } from './Icon'

/** What went wrong: what, where, what to do, and by which name the server's log knows it. */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const p = error instanceof Refused ? error.problem : undefined
  return (
    <div className="trouble" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{p?.what ?? (error instanceof Error ? error.message : String(error))}</strong>
        {p?.where && <span className="faint"> at <code>{p.where}</code></span>}
        {p?.hint && <p>{p.hint}</p>}
        {p?.faults?.map((f, i) => <p key={i}><code>{f.where}</code> {f.what}</p>)}
        {error instanceof Away && again && <p>It is asked again every few seconds.</p>}
        {p?.request && <p className="faint">request <code>{p.request}</code></p>}
      </div>
      {again && <button onClick={again}><Icon name="retry" size={14} /> Try again</button>}
    </div>
  )
}

/** The same in a few words, of what is shown as it was. */
export function outdated(error: Error): string {
  return error instanceof Away ? `${error.message}, and is asked again` : error.message
}

/** Why there is nothing, and the one next step. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children && <div>{children}</div>}
    </div>
  )
}

export function Loading() {
  return <div className="loading" role="status">Loading …</div>
}
