import type { ReactNode } from 'react'
import { Refused } from '../data/call'
import { Icon } from './Icon'

/** What went wrong: what, where, what to do, and by which name the server's log knows it. */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const p = error instanceof Refused ? error.problem : undefined
  return (
    <div className="trouble" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{p?.what ?? (error instanceof TypeError ? 'the server cannot be reached' : String(error))}</strong>
        {p?.where && <span className="faint"> at <code>{p.where}</code></span>}
        {p?.hint && <p>{p.hint}</p>}
        {p?.faults?.map((f, i) => <p key={i}><code>{f.where}</code> {f.what}</p>)}
        {p?.request && <p className="faint">request <code>{p.request}</code></p>}
      </div>
      {again && <button onClick={again}><Icon name="retry" size={14} /> Try again</button>}
    </div>
  )
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
