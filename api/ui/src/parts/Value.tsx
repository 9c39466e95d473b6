import { useState } from 'react'
import { Copy } from './Copy'
import { stringify } from '../data/json'
import { texts } from '../texts'

const t = texts.value

const long = 4000 // characters that are shown at first

/**
 * Wrapped is a value as the API sends it where size is limited: complete if small, otherwise a
 * preview.
 */
export interface Wrapped {
  bytes: number
  value?: unknown
  preview?: string
  truncated?: boolean
}

/** Part shows a value whose whole content can be fetched from an address. */
export function Part({ of, label, all }: { of: unknown; label: string; all: string }) {
  const told = of as Wrapped
  if (!told.truncated) return <Value of={told.value} label={label} />
  return (
    <div className="value">
      <pre tabIndex={0} aria-label={label}>
        {told.preview} …
      </pre>
      <a href={all} target="_blank" rel="noreferrer">
        {t.whole(size(told.bytes))}
      </a>
    </div>
  )
}

function size(bytes: number): string {
  return bytes < 1 << 20
    ? `${Math.ceil(bytes / 1024)} KiB`
    : `${(bytes / (1 << 20)).toFixed(1)} MiB`
}

/** Value shows any JSON as text and shortens it if it is long. */
export function Value({ of, label }: { of: unknown; label?: string }) {
  const [all, setAll] = useState(false)
  if (of === undefined) return <span className="faint">{t.none}</span>
  const text = typeof of === 'string' ? of : stringify(of, 2)
  const cut = !all && text.length > long
  return (
    <div className="value">
      <pre tabIndex={0} aria-label={label ?? t.name}>
        {cut ? text.slice(0, long) + ' …' : text}
      </pre>
      <div className="value-tools">
        {cut && (
          <button className="quiet" onClick={() => setAll(true)}>
            {t.more(text.length)}
          </button>
        )}
        <Copy text={text} label={texts.copy.of(label ?? t.name)} title={texts.copy.title} />
      </div>
    </div>
  )
}
