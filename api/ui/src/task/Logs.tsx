import { useVirtualizer } from '@tanstack/react-virtual'
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { LogEntry } from '../api.gen'
import { marked, useLog, withText } from '../data/log'
import { exact } from '../data/time'
import { Copy } from '../parts/Copy'
import { texts } from '../texts'

const t = texts.logs

/**
 * LogView shows the output of attempts as it grows, newest last. It stays at the end until the user
 * scrolls up.
 */
export function LogView({
  task,
  node,
  unit,
  tall,
}: {
  task: string
  node?: string
  unit?: number
  tall?: boolean
}) {
  const [written, setWritten] = useState(''),
    [wrap, setWrap] = useState(true),
    [stream, setStream] = useState('')
  const word = useDeferredValue(written)
  const log = useLog(task, { node, unit, stream: stream || undefined })
  const lines = useMemo(() => withText(log.lines, word), [log.lines, word])
  if (log.lines.length === 0 && !stream && !tall) return null
  return (
    <section className={tall ? 'log-view tall' : 'log-view'}>
      {!tall && <h3>{t.title}</h3>}
      <div className="table-tools">
        <input
          type="search"
          value={written}
          onChange={e => setWritten(e.target.value)}
          placeholder={t.search}
          aria-label={t.searchLabel}
        />
        <label className="inline">
          {t.stream}
          <select
            value={stream}
            onChange={e => setStream(e.target.value)}
            aria-label={t.streamLabel}
          >
            <option value="">{texts.all}</option>
            {streams.map(s => (
              <option key={s}>{s}</option>
            ))}
          </select>
        </label>
        <button aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          {t.wrap}
        </button>
        <Copy text={() => lines.map(l => l.text).join('\n')} label={t.copy} />
        <span className="faint">
          {t.count(lines.length, word ? log.lines.length : undefined)}
          {log.dropped > 0 && t.dropped(log.dropped)}
          {log.state === 'broken' && t.broken}
        </span>
      </div>
      {lines.length > 0 ? (
        <Lines lines={lines} word={word} wrap={wrap} named={node === undefined} />
      ) : (
        <p className="faint log-none">
          {word ? t.noMatch : log.state === 'over' ? t.empty : t.emptyYet}
        </p>
      )}
    </section>
  )
}

const streams = ['stdout', 'stderr', 'log']

const tones: Record<string, string> = { stderr: 'tone-failed', log: 'tone-running' }

function Lines({
  lines,
  word,
  wrap,
  named,
}: {
  lines: LogEntry[]
  word: string
  wrap: boolean
  named: boolean
}) {
  const box = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true),
    top = useRef(0)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => 19,
    overscan: 20,
    getItemKey: i => lines[i].id,
  })
  useEffect(() => {
    if (atEnd.current) virtual.scrollToIndex(lines.length - 1, { align: 'end' })
  }, [lines.length, wrap])
  useEffect(() => virtual.measure(), [wrap])
  const scrolled = () => {
    // The user or this component has scrolled. In the second case lines may have arrived meanwhile,
    // and the end is further down.
    const b = box.current!
    if (b.scrollHeight - b.scrollTop - b.clientHeight < 30) atEnd.current = true
    else if (b.scrollTop < top.current) atEnd.current = false
    top.current = b.scrollTop
  }
  return (
    <div
      className={`log${wrap ? '' : ' straight'}`}
      ref={box}
      onScroll={scrolled}
      onWheel={e => e.deltaY < 0 && (atEnd.current = false)}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label={t.title}
    >
      <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map(v => {
          const l = lines[v.index]
          return (
            <div
              key={v.key}
              ref={virtual.measureElement}
              data-index={v.index}
              className={`log-line ${tones[l.stream ?? ''] ?? ''}`}
              style={{ transform: `translateY(${v.start}px)` }}
              title={`${exact(l.at)} ${l.stream ?? ''}`}
            >
              {named && (
                <span className="faint">
                  {l.node}
                  {l.unit ? `[${l.unit}]` : ''}{' '}
                </span>
              )}
              {l.omitted && <span className="faint">{t.missing(l.omitted.lines)}</span>}
              {marked(l.text, word).map((p, i) => (p.hit ? <mark key={i}>{p.text}</mark> : p.text))}
              {l.text === '' && '\u00a0'}
            </div>
          )
        })}
      </div>
    </div>
  )
}
