import { useState } from 'react'
import type { CancelRequest } from '../api.gen'
import { Ask } from '../parts/Ask'
import { parse } from '../data/json'
import { texts } from '../texts'

const t = texts.cancelTask,
  signal = texts.sendSignal

/** CancelAsk confirms a cancellation and describes its effects. */
export function CancelAsk({
  close,
  cancel,
}: {
  close: () => void
  cancel: (body: CancelRequest) => void
}) {
  const [how, setHow] = useState('now')
  return (
    <Ask title={t.title} close={close}>
      <div className="ways" role="radiogroup" aria-label={t.method}>
        {t.ways.map(([value, name, text]) => (
          <label key={value} className="way">
            <input
              type="radio"
              name="how"
              value={value}
              checked={how === value}
              onChange={() => setHow(value)}
            />
            <span>
              <b>{name}</b>
              <br />
              {text}
            </span>
          </label>
        ))}
      </div>
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {t.keep}
        </button>
        <button
          type="button"
          className="danger"
          onClick={e => {
            cancel({ graceful: how === 'graceful' || undefined, force: how === 'force' || undefined })
            e.currentTarget.closest('dialog')?.close()
          }}
        >
          {t.confirm}
        </button>
      </div>
    </Ask>
  )
}

/** SignalAsk sends a signal: any JSON, or a text. */
export function SignalAsk({
  close,
  send,
  name = '',
}: {
  close: () => void
  send: (body: { key: string; value: unknown; by?: string }) => void
  name?: string
}) {
  const [key, setKey] = useState(name),
    [value, setValue] = useState('true')
  return (
    <Ask title={signal.title} close={close}>
      <label>
        {signal.key}
        <input
          value={key}
          onChange={e => setKey(e.target.value)}
          required
          spellCheck={false}
          autoFocus={!name}
        />
      </label>
      <label>
        {signal.value}
        <textarea
          rows={4}
          value={value}
          onChange={e => setValue(e.target.value)}
          spellCheck={false}
          autoFocus={Boolean(name)}
        />
      </label>
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {texts.close}
        </button>
        <button
          type="button"
          className="primary"
          disabled={!key.trim()}
          onClick={e => {
            send({ key: key.trim(), value: read(value) })
            e.currentTarget.closest('dialog')?.close()
          }}
        >
          {signal.send}
        </button>
      </div>
    </Ask>
  )
}

/** read returns the value of a text that is JSON, and otherwise the text itself. */
export function read(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return text
  }
}
