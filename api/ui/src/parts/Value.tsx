import { useState } from 'react'
import { Icon } from './Icon'

const long = 4000 // characters that are shown at once

/** Any JSON, as text, cut where it is long. */
export function Value({ of, label }: { of: unknown; label?: string }) {
  const [all, setAll] = useState(false)
  if (of === undefined) return <span className="faint">none</span>
  const text = typeof of === 'string' ? of : JSON.stringify(of, null, 2)
  const cut = !all && text.length > long
  return (
    <div className="value">
      <pre tabIndex={0} aria-label={label ?? 'value'}>{cut ? text.slice(0, long) + ' …' : text}</pre>
      <div className="value-tools">
        {cut && <button className="quiet" onClick={() => setAll(true)}>show all {text.length.toLocaleString('en')} characters</button>}
        <button className="quiet" onClick={() => void navigator.clipboard?.writeText(text)} title="Copy" aria-label={`Copy ${label ?? 'value'}`}><Icon name="copy" size={14} /></button>
      </div>
    </div>
  )
}
