import { useState } from 'react'
import { Copy } from './Copy'
import { stringify } from '../data/json'

const long = 4000 // characters that are shown at once

/** A value as the API tells it where it is not to be too much: all of it when it is small, else its beginning. */
export interface Wrapped { bytes: number; value?: unknown; preview?: string; truncated?: boolean }

/** A value of which all can be fetched: at an address. */
export function Part({ of, label, all }: { of: unknown; label: string; all: string }) {
  const told = of as Wrapped
  if (!told.truncated) return <Value of={told.value} label={label} />
  return (
    <div className="value">
      <pre tabIndex={0} aria-label={label}>{told.preview} …</pre>
      <a href={all} target="_blank" rel="noreferrer">all of it, {size(told.bytes)}</a>
    </div>
  )
}

function size(bytes: number): string {
  return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`
}

/** Any JSON, as text, cut where it is long. */
export function Value({ of, label }: { of: unknown; label?: string }) {
  const [all, setAll] = useState(false)
  if (of === undefined) return <span className="faint">none</span>
  const text = typeof of === 'string' ? of : stringify(of, 2)
  const cut = !all && text.length > long
  return (
    <div className="value">
      <pre tabIndex={0} aria-label={label ?? 'value'}>{cut ? text.slice(0, long) + ' …' : text}</pre>
      <div className="value-tools">
        {cut && <button className="quiet" onClick={() => setAll(true)}>show all {text.length.toLocaleString('en')} characters</button>}
        <Copy text={text} label={`Copy ${label ?? 'value'}`} title="Copy" />
      </div>
    </div>
  )
}
