import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { note } from '../data/acts'
import { call } from '../data/call'
import { useMay } from '../data/me'
import { filterOf, print, type TaskFilter } from '../data/search'
import { Icon } from '../parts/Icon'
import { texts } from '../texts'

const t = texts.views

const queryOf = (filter: TaskFilter) => print({ ...filter }).replace(/^\?/, '')

/**
 * Views lists the named lists and lets the user name the current one. They are visible to all
 * users.
 */
export function Views({ filter }: { filter: TaskFilter }) {
  const may = useMay()
  const queries = useQueryClient()
  const views = useQuery({
    queryKey: ['views'],
    staleTime: 30_000,
    queryFn: ({ signal }) => call('GET /v1/views', {}, signal),
  })
  const bad = (problem: Error) => note({ text: problem.message, bad: true })
  const again = () => queries.invalidateQueries({ queryKey: ['views'] })
  const remove = useMutation({
    mutationFn: (view: string) => call('DELETE /v1/views/{view}', { path: { view } }),
    onSuccess: again,
    onError: bad,
  })
  const here = queryOf(filter),
    known = views.data?.items ?? []
  const shown = known.find(v => queryOf(filterOf(v.query)) === here)
  const changes = may('PUT /v1/views/{view}')
  if (known.length === 0 && (here === '' || !changes)) return null
  return (
    <div className="chips views" role="group" aria-label={t.title}>
      {known.map(v => (
        <Link
          key={v.name}
          to="/tasks"
          search={filterOf(v.query)}
          className={`chip${v === shown ? ' chosen' : ''}`}
          aria-current={v === shown ? 'page' : undefined}
        >
          {v.name}
        </Link>
      ))}
      {shown && changes && (
        <button
          className="quiet"
          disabled={remove.isPending}
          onClick={() => remove.mutate(shown.name)}
        >
          {t.remove(shown.name)}
        </button>
      )}
      {!shown && here !== '' && changes && <Name query={here} done={again} />}
    </div>
  )
}

function Name({ query, done }: { query: string; done: () => unknown }) {
  const go = useNavigate()
  const [open, setOpen] = useState(false)
  const save = useMutation({
    mutationFn: (view: string) => call('PUT /v1/views/{view}', { path: { view }, body: { query } }),
    onSuccess: () => {
      setOpen(false)
      void done()
      void go({ to: '/tasks', search: filterOf(query), replace: true })
    },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  if (!open)
    return (
      <button className="quiet chip-add" onClick={() => setOpen(true)}>
        <Icon name="plus" size={12} /> {t.add}
      </button>
    )
  return (
    <form
      className="add-filter"
      onKeyDown={e => e.key === 'Escape' && setOpen(false)}
      onSubmit={e => {
        e.preventDefault()
        save.mutate(String(new FormData(e.currentTarget).get('name')).trim())
      }}
    >
      <label>
        {t.name}
        <input name="name" required maxLength={80} pattern=".*\S.*" autoFocus spellCheck={false} />
      </label>
      <button className="primary" disabled={save.isPending}>
        {texts.save}
      </button>
      <button type="button" className="quiet" onClick={() => setOpen(false)}>
        {texts.cancel}
      </button>
    </form>
  )
}
