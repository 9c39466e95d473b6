import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { call } from '../data/call'
import type { TaskFilter } from '../data/search'
import { most, type Row } from '../data/news'
import { size, useCounts, useTasks } from '../data/tasks'
import { between, exact, span } from '../data/time'
import { Icon } from '../parts/Icon'
import { Many } from '../task/Many'
import { Views } from '../task/Views'
import { usePageKeys } from '../parts/keys'
import { short } from '../parts/short'
import { Sign, State, stateOf } from '../parts/State'
import { Empty, Loading, outdated, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { atLeast, texts } from '../texts'

const words = texts.tasks,
  { times } = words

const route = getRouteApi('/tasks')
const states = ['running', 'failed', 'completed', 'paused', 'canceled', 'pending']

/**
 * Tasks lists the tasks, newest first. Every filter is in the address, and shown as a chip that can
 * be removed.
 */
export function Tasks() {
  const filter = route.useSearch()
  const found = useTasks(filter)
  return (
    <div className="page tasks">
      <div className="head">
        <h1>{words.title}</h1>
        <StateLinks filter={filter} />
      </div>
      <Views filter={filter} />
      <Chips filter={filter} />
      {found.error && found.rows.length === 0 ? (
        <Trouble error={found.error} again={() => void found.pages.refetch()} />
      ) : found.pages.isPending ? (
        <Loading />
      ) : found.rows.length === 0 && found.fresh.length === 0 ? (
        found.pages.hasNextPage ? (
          <NotYet found={found} />
        ) : (
          <Nothing filter={filter} />
        )
      ) : (
        <Rows key={JSON.stringify(filter)} found={found} />
      )}
    </div>
  )
}

function StateLinks({ filter }: { filter: TaskFilter }) {
  const only = filter.state?.length === 1 ? filter.state[0] : undefined
  const counts = useCounts(filter)
  const tally = (n: number, more?: boolean) => <b className="tally">{atLeast(n, more)}</b>
  const of = (s: string) => counts.data?.groups.find(g => g.key === s)
  return (
    <nav className="segments" aria-label={words.states}>
      <Link
        to="/tasks"
        search={{ ...filter, state: undefined }}
        className={filter.state ? '' : 'here'}
      >
        {words.all}
        {counts.data && tally(counts.data.count, !counts.data.exact)}
      </Link>
      {states.map(s => (
        <Link
          key={s}
          to="/tasks"
          search={{ ...filter, state: [s] }}
          className={only === s ? 'here' : ''}
        >
          <Sign state={s} size={14} />
          {s}
          {of(s) && tally(of(s)!.count, of(s)!.truncated)}
        </Link>
      ))}
    </nav>
  )
}

function Chips({ filter }: { filter: TaskFilter }) {
  const chip = (name: string, value: string, without: TaskFilter) => (
    <Link
      key={name + value}
      to="/tasks"
      search={without}
      className="chip"
      aria-label={words.removeFilter(name, value)}
    >
      <span>
        {name}: <b>{value}</b>
      </span>
      <Icon name="cross" size={12} />
    </Link>
  )
  return (
    <div className="chips" role="group" aria-label={words.filters}>
      {filter.state &&
        chip(words.state, filter.state.join(words.or), { ...filter, state: undefined })}
      {filter.waiting_for &&
        chip(words.waits, filter.waiting_for.join(words.or), { ...filter, waiting_for: undefined })}
      {filter.queued && chip(words.queued, filter.queued, { ...filter, queued: undefined })}
      {filter.flow && chip(words.flow, filter.flow, { ...filter, flow: undefined })}
      {filter.label?.map(l =>
        chip(words.label, l, { ...filter, label: filter.label!.filter(other => other !== l) }),
      )}
      {filter.since &&
        chip(words.since, times[filter.since] ?? filter.since, { ...filter, since: undefined })}
      {filter.version &&
        chip(words.version, String(filter.version), { ...filter, version: undefined })}
      {filter.error && chip(words.error, filter.error, { ...filter, error: undefined })}
      {filter.created_from &&
        chip(words.createdFrom, exact(filter.created_from), { ...filter, created_from: undefined })}
      {filter.ended_from &&
        chip(words.endedFrom, exact(filter.ended_from), { ...filter, ended_from: undefined })}
      {filter.q && chip(words.text, filter.q, { ...filter, q: undefined })}
      <AddFilter filter={filter} />
    </div>
  )
}

function AddFilter({ filter }: { filter: TaskFilter }) {
  const go = useNavigate()
  const [open, setOpen] = useState(false)
  const flows = useQuery({
    queryKey: ['flow-names'],
    enabled: open,
    staleTime: 60_000,
    queryFn: ({ signal }) => call('GET /v1/flows', { query: { limit: 500 } }, signal),
  })
  const add = (more: TaskFilter) => {
    setOpen(false)
    void go({ to: '/tasks', search: { ...filter, ...more } })
  }
  if (!open)
    return (
      <button className="quiet chip-add" onClick={() => setOpen(true)}>
        <Icon name="plus" size={12} /> {words.addFilter}
      </button>
    )
  return (
    <form
      className="add-filter"
      onKeyDown={e => e.key === 'Escape' && setOpen(false)}
      onSubmit={e => {
        e.preventDefault()
        const sent = new FormData(e.currentTarget)
        const label = String(sent.get('label') ?? '').trim()
        add({
          flow: String(sent.get('flow') ?? '') || filter.flow,
          since: String(sent.get('since') ?? '') || filter.since,
          label: label ? [...(filter.label ?? []), label] : filter.label,
        })
      }}
    >
      <label>
        {words.flow}
        <select name="flow" autoFocus defaultValue={filter.flow ?? ''}>
          <option value="">{texts.any}</option>
          {flows.data?.items.map(f => (
            <option key={f.id} value={f.slug ?? f.id}>
              {f.slug ?? f.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.since}
        <select name="since" defaultValue={filter.since ?? ''}>
          <option value="">{words.anyTime}</option>
          {Object.entries(times).map(([v, name]) => (
            <option key={v} value={v}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.label}
        <input
          name="label"
          placeholder={words.labelForm}
          pattern="[^:]+:.*"
          title={words.labelForm}
          spellCheck={false}
        />
      </label>
      <button className="primary">{words.apply}</button>
      <button type="button" className="quiet" onClick={() => setOpen(false)}>
        {texts.cancel}
      </button>
    </form>
  )
}

function Nothing({ filter }: { filter: TaskFilter }) {
  const narrow = Object.values(filter).some(v => v !== undefined)
  if (narrow)
    return (
      <Empty title={words.noMatch}>
        <Link to="/tasks">{words.clear}</Link>
      </Empty>
    )
  return (
    <Empty title={words.empty}>
      <Rich text={words.startOne} />
    </Empty>
  )
}

/**
 * NotYet reports that no task matches among those searched so far, and that there are older ones.
 */
function NotYet({ found: { pages, searched } }: { found: ReturnType<typeof useTasks> }) {
  return (
    <Empty title={words.noMatchYet}>
      {searched && (
        <>
          <Rich text={words.searched} parts={{ time: <When at={searched} /> }} />{' '}
        </>
      )}
      <button
        className="primary"
        disabled={pages.isFetchingNextPage}
        onClick={() => void pages.fetchNextPage()}
      >
        {pages.isFetchingNextPage ? words.searching : words.searchOlder}
      </button>
    </Empty>
  )
}

const rowHeight = 44

function Rows({ found }: { found: ReturnType<typeof useTasks> }) {
  useTick()
  const go = useNavigate()
  const { rows, fresh, gap, pages, takeIn, searched } = found
  const filter = route.useSearch()
  const box = useRef<HTMLDivElement>(null)
  const over = useRef(false)
  const [at, setAt] = useState(-1)
  const more = pages.hasNextPage
  const virtual = useVirtualizer({
    count: rows.length + (more ? 1 : 0),
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (
      more &&
      rows.length + size <= most &&
      !searched &&
      last >= rows.length - 20 &&
      !pages.isFetchingNextPage &&
      !pages.isError
    )
      void pages.fetchNextPage()
  }, [last, more, searched, rows.length, pages])
  useEffect(() => {
    // Rows never move under the cursor.
    const within =
      // a row focused with the keyboard
      document.activeElement !== box.current && box.current?.contains(document.activeElement)
    if (
      fresh.length > 0 &&
      !over.current &&
      !within &&
      at < 0 &&
      (box.current?.scrollTop ?? 0) < rowHeight
    )
      takeIn()
  })
  const step = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by))
    setAt(next)
    virtual.scrollToIndex(next)
  }
  usePageKeys({
    j: () => step(1),
    k: () => step(-1),
    Escape: () => setAt(-1),
    Enter: () => {
      if (rows[at]) void go({ to: '/tasks/$task', params: { task: rows[at].id } })
    },
  })
  return (
    <>
      <div className="list-told">
        <span>{words.count(rows.length, more)}</span>
        {found.error ? (
          <span className="tone-failed">{words.stale(outdated(found.error))}</span>
        ) : null}
        <label className="inline right">
          {words.sort}
          <select
            value={filter.sort ?? ''}
            onChange={e =>
              void go({
                to: '/tasks',
                search: { ...filter, sort: (e.target.value || undefined) as TaskFilter['sort'] },
              })
            }
          >
            {Object.entries(words.sorts).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Many filter={filter} />
        {filter.sort && (
          <button className="quiet" onClick={() => void pages.refetch()}>
            <Icon name="retry" size={13} /> {words.refresh}
          </button>
        )}
        {fresh.length > 0 && (
          <button
            className="pill"
            onClick={() => {
              takeIn()
              virtual.scrollToIndex(0)
            }}
          >
            {words.fresh(fresh.length, gap)}
          </button>
        )}
      </div>
      <div
        className="rows panel"
        ref={box}
        onPointerEnter={() => (over.current = true)}
        onPointerLeave={() => (over.current = false)}
        role="table"
        aria-label={words.title}
        aria-rowcount={more ? -1 : rows.length + 1}
        tabIndex={0}
      >
        <div className="row row-head" role="row" aria-rowindex={1}>
          {words.columns.map(h => (
            <span key={h} role="columnheader">
              {h}
            </span>
          ))}
        </div>
        <div className="row-space" style={{ height: virtual.getTotalSize() }} role="rowgroup">
          {items.map(v =>
            rows[v.index] ? (
              <TaskRow
                key={rows[v.index].id}
                task={rows[v.index]}
                top={v.start}
                index={v.index}
                chosen={v.index === at}
              />
            ) : (
              <div
                key="more"
                className="row"
                role="row"
                style={{ transform: `translateY(${v.start}px)` }}
              >
                <span role="cell" className="faint">
                  {rows.length + size > most ? (
                    words.limit(rows.length)
                  ) : searched && !pages.isFetchingNextPage ? (
                    <button className="quiet" onClick={() => void pages.fetchNextPage()}>
                      <Rich text={words.searchBefore} parts={{ time: <When at={searched} /> }} />
                    </button>
                  ) : (
                    words.more
                  )}
                </span>
              </div>
            ),
          )}
        </div>
      </div>
    </>
  )
}

function TaskRow({
  task: t,
  top,
  index,
  chosen,
}: {
  task: Row
  top: number
  index: number
  chosen: boolean
}) {
  return (
    <div
      className={`row${chosen ? ' chosen' : ''}${t.left ? ' left' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)` }}
      title={t.left ? words.left : undefined}
    >
      <span role="cell">
        <State state={stateOf(t)} />
      </span>
      <span role="cell" className="ellipsis">
        <Link to="/tasks" search={{ flow: t.flow }} className="plain strong">
          {t.flow_name || t.flow}
        </Link>{' '}
        <span className="faint">v{t.version}</span>
      </span>
      <span role="cell" className="ellipsis">
        <Link to="/tasks/$task" params={{ task: t.id }} className="cover mono" title={t.id}>
          {short(t.id)}
        </Link>
      </span>
      <span role="cell" className="ellipsis what">
        {t.error ? (
          <span className="tone-failed" title={t.error}>
            {t.error}
          </span>
        ) : t.state === 'running' && t.node ? (
          <span className="faint">{words.at(t.node)}</span>
        ) : null}
        {Object.entries(t.labels ?? {})
          .slice(0, 3)
          .map(([k, v]) => (
            <Link key={k} to="/tasks" search={{ label: [`${k}:${v}`] }} className="label">
              {k}:{v}
            </Link>
          ))}
      </span>
      <span role="cell" className="number">
        {t.steps}
      </span>
      <span role="cell" className="number">
        <When at={t.created_at} />
      </span>
      <span role="cell" className="number">
        {span(between(t.created_at, t.ended_at))}
      </span>
    </div>
  )
}
