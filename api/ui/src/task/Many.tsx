import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { BulkRequest, BulkFailure } from '../api.gen'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import { useMay } from '../data/me'
import type { TaskFilter } from '../data/search'
import { asked } from '../data/tasks'
import { now } from '../data/time'
import { Ask } from '../parts/Ask'
import { Loading, Trouble } from '../parts/Told'
import { texts } from '../texts'

const t = texts.bulk

type Action = Exclude<BulkRequest['action'], 'fork'>
const words: Record<Action, { verb: string; done: string }> = t.actions

/**
 * Many sends one command to all tasks that match the filters. It is hidden without a filter,
 * because a command to all tasks is never intended.
 */
export function Many({ filter }: { filter: TaskFilter }) {
  const [action, setAction] = useState<Action>()
  const { sort: _, ...narrow } = filter
  const may = useMay()
  if (!may('POST /v1/tasks/bulk') || Object.values(narrow).every(v => v === undefined)) return null
  return (
    <>
      <label className="inline">
        {t.label}
        <select value="" onChange={e => setAction(e.target.value as Action)} aria-label={t.aria}>
          <option value="" disabled>
            …
          </option>
          {Object.entries(words).map(([value, w]) => (
            <option key={value} value={value}>
              {w.verb}
            </option>
          ))}
        </select>
      </label>
      {action && <ManyAsk action={action} filter={filter} close={() => setAction(undefined)} />}
    </>
  )
}

interface Came {
  changed: number
  unchanged: number
  refused: number
  refusals: BulkFailure[]
}

function ManyAsk({
  action,
  filter,
  close,
}: {
  action: Action
  filter: TaskFilter
  close: () => void
}) {
  const queries = useQueryClient()
  const { verb, done } = words[action]
  // excludes the tasks that a rerun starts
  const [until] = useState(() => new Date(now()).toISOString())
  const body = (more: Partial<BulkRequest>): BulkRequest => ({
    action,
    filter: { ...(action === 'rerun' ? { created_to: until } : {}), ...asked(filter) },
    ...more,
  })
  const found = useQuery({
    queryKey: ['bulk', action, filter],
    gcTime: 0,
    queryFn: ({ signal }) => call('POST /v1/tasks/bulk', { body: body({ dry_run: true }) }, signal),
  })
  const [request] = useState(requestID)
  const give = useMutation({
    mutationFn: async () => {
      const came: Came = { changed: 0, unchanged: 0, refused: 0, refusals: [] }
      for (let cursor: string | undefined, first = true; first || cursor; first = false) {
        const part = await call('POST /v1/tasks/bulk', {
          header: { 'Request-Id': request },
          body: body({ cursor }),
        })
        came.changed += part.changed
        came.unchanged += part.unchanged
        came.refused += part.failed
        came.refusals.push(...part.failures.slice(0, 5 - came.refusals.length))
        cursor = part.next
      }
      return came
    },
    onSuccess: came => {
      note({ text: t.done(came.changed, done, came.unchanged), bad: came.refused > 0 })
      if (came.refused === 0) close()
    },
    onSettled: () => {
      for (const key of ['tasks', 'tasks-head', 'task-counts'])
        void queries.invalidateQueries({ queryKey: [key] })
    },
  })
  const came = give.data,
    none = found.data?.tasks === 0
  return (
    <Ask title={t.title(verb)} close={close}>
      {found.isError ? (
        <Trouble error={found.error} />
      ) : !found.data ? (
        <Loading />
      ) : (
        <p>
          {none
            ? found.data.exact
              ? t.none
              : t.noneYet(done)
            : t.will(found.data.tasks, found.data.exact, done)}
        </p>
      )}
      {give.isError && <Trouble error={give.error} />}
      {came && came.refused > 0 && (
        <div role="alert">
          <p className="tone-failed">{t.refused(came.refused)}</p>
          <ul>
            {came.refusals.map(r => (
              <li key={r.task}>
                <code>{r.task}</code> {r.message}
              </li>
            ))}
          </ul>
        </div>
      )}
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {came ? t.close : t.cancel}
        </button>
        {!came && (
          <button
            type="button"
            className={action === 'cancel' ? 'danger' : 'primary'}
            disabled={!found.data || (none && found.data.exact) || give.isPending}
            onClick={() => give.mutate()}
          >
            {t.confirm(verb, found.data?.tasks)}
          </button>
        )}
      </div>
    </Ask>
  )
}
