import { texts } from '../texts'

/** The color, sign and word of each state, so that no state depends on color alone. */
const looks: Record<string, { tone: string; sign: string }> = {
  pending: { tone: 'idle', sign: 'dashed' },
  created: { tone: 'idle', sign: 'dashed' },
  running: { tone: 'running', sign: 'arc' },
  started: { tone: 'running', sign: 'arc' },
  dispatched: { tone: 'running', sign: 'arc' },
  claimed: { tone: 'running', sign: 'arc' },
  completed: { tone: 'completed', sign: 'check' },
  ok: { tone: 'completed', sign: 'check' },
  online: { tone: 'completed', sign: 'check' },
  alive: { tone: 'completed', sign: 'check' },
  failed: { tone: 'failed', sign: 'cross' },
  error: { tone: 'failed', sign: 'cross' },
  timeout: { tone: 'failed', sign: 'clock' },
  overdue: { tone: 'failed', sign: 'clock' },
  waiting: { tone: 'waiting', sign: 'clock' },
  retrying: { tone: 'waiting', sign: 'retry' },
  draining: { tone: 'waiting', sign: 'clock' },
  paused: { tone: 'paused', sign: 'pause' },
  held: { tone: 'paused', sign: 'pause' },
  canceling: { tone: 'waiting', sign: 'slash' },
  canceled: { tone: 'over', sign: 'slash' },
  skipped: { tone: 'over', sign: 'skip' },
  offline: { tone: 'over', sign: 'slash' },
  gone: { tone: 'over', sign: 'slash' },
}

const signs: Record<string, string> = {
  check: 'M4.8 8.3 7 10.5l4.3-4.8',
  cross: 'M5.7 5.7l4.6 4.6M10.3 5.7 5.7 10.3',
  clock: 'M8 5v3.2l2 1.3',
  pause: 'M6.6 5.8v4.4M9.4 5.8v4.4',
  slash: 'M5.5 10.5l5-5',
  skip: 'M5.5 5.5 8 8l-2.5 2.5M8.5 5.5 11 8l-2.5 2.5',
  retry: 'M10.5 8A2.5 2.5 0 1 1 9.5 6M10.5 4.8V6.5H8.8',
}

export function toneOf(state: string): string {
  return looks[state]?.tone ?? 'idle'
}

export function wordOf(state: string): string {
  return texts.states[state] ?? state
}

export function Sign({ state, size = 16 }: { state: string; size?: number }) {
  const { sign, tone } = looks[state] ?? looks.pending
  const ring = sign === 'arc' ? '28 12' : sign === 'dashed' ? '2.5 3' : undefined
  return (
    <svg
      className={`sign tone-${tone}${sign === 'arc' ? ' turning' : ''}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <circle cx="8" cy="8" r="6.2" strokeDasharray={ring} />
      {signs[sign] && <path d={signs[sign]} />}
    </svg>
  )
}

export function State({ state, word }: { state: string; word?: string }) {
  return (
    <span className={`state tone-${toneOf(state)}`}>
      <Sign state={state} size={14} />
      {word ?? wordOf(state)}
    </span>
  )
}

/**
 * stateOf returns the state that a task is shown with: a paused task is paused, whatever its state.
 */
export function stateOf(t: { state: string; paused?: boolean }): string {
  return t.paused && !['completed', 'failed', 'canceled'].includes(t.state) ? 'paused' : t.state
}
