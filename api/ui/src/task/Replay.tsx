import { useQuery } from '@tanstack/react-query'
import { call } from '../data/call'
import type { TaskView } from '../data/search'
import { exact } from '../data/time'
import { Icon } from '../parts/Icon'
import { usePageKeys } from '../parts/keys'
import { texts } from '../texts'

const t = texts.replay

/** Replay steps through the commits of a task. The graph shows the state at each of them. */
export function Replay({
  task,
  last,
  at,
  set,
}: {
  task: string
  last: number
  at?: number
  set: (v: Partial<TaskView>) => void
}) {
  const here = Math.min(at ?? last, last)
  const go = (to: number) => set({ at: to >= last ? undefined : Math.max(1, to) })
  usePageKeys({ ',': () => go(here - 1), '.': () => go(here + 1) })
  const events = useQuery({
    queryKey: ['task', task, 'row', here],
    enabled: at !== undefined,
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      call(
        'GET /v1/tasks/{task}/events',
        {
          path: { task },
          query: { order: 'desc', before: `${here + 1}.0`, limit: 20, values: 'none' },
        },
        signal,
      ),
  })
  const told = (events.data?.items ?? []).filter(e => e.seq === here).reverse()
  return (
    <div className="replay" role="group" aria-label={t.label}>
      <button
        className="quiet"
        disabled={here <= 1}
        onClick={() => go(1)}
        aria-label={t.first}
        title={t.first}
      >
        «
      </button>
      <button
        className="quiet"
        disabled={here <= 1}
        onClick={() => go(here - 1)}
        aria-label={t.back}
        title={t.backKey}
      >
        ‹
      </button>
      <input
        type="range"
        min={1}
        max={Math.max(1, last)}
        value={here}
        onChange={e => go(Number(e.target.value))}
        aria-label={t.label}
        aria-valuetext={at === undefined ? t.now : t.step(here, last)}
      />
      <button
        className="quiet"
        disabled={at === undefined}
        onClick={() => go(here + 1)}
        aria-label={t.forward}
        title={t.forwardKey}
      >
        ›
      </button>
      <button disabled={at === undefined} onClick={() => set({ at: undefined })}>
        <Icon name="play" size={12} /> {t.now}
      </button>
      <span className="faint replay-told" role="status">
        {at === undefined ? (
          t.current
        ) : (
          <>
            {t.step(here, last)}
            {told[0] && t.at(exact(told[0].at))}
            {told
              .slice(0, 3)
              .map(e => `${e.type.replaceAll('_', ' ')}${e.node ? ` ${e.node}` : ''}`)
              .join('; ')}
            {told.length > 3 && t.more(told.length - 3)}
          </>
        )}
      </span>
    </div>
  )
}
