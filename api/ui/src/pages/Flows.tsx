import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useDeferredValue, useState } from 'react'
import type { Flow, FlowSummary, PageFlow } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { span } from '../data/time'
import { Icon } from '../parts/Icon'
import { Sign } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { digits, texts } from '../texts'

const t = texts.flows

/** Flows lists the flows and their statistics, newest first. */
export function Flows() {
  const { live } = usePrefs()
  const [word, setWord] = useState('')
  const q = useDeferredValue(word.trim()) || undefined
  const flows = useInfiniteQuery({
    queryKey: ['flows', q],
    initialPageParam: '',
    refetchInterval: live && 10_000,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      call(
        'GET /v1/flows',
        { query: { limit: 50, cursor: pageParam || undefined, q, with: 'summary' } },
        signal,
      ),
    getNextPageParam: (page: PageFlow) => page.next || undefined,
  })
  const found = flows.data?.pages.flatMap(p => p.items) ?? []
  return (
    <div className="page">
      <div className="head">
        <h1>{t.title}</h1>
        <Link to="/edit" className="button">
          <Icon name="plus" size={14} /> {t.create}
        </Link>
        <input
          type="search"
          className="narrow right"
          value={word}
          onChange={e => setWord(e.target.value)}
          placeholder={t.search}
          aria-label={t.search}
          maxLength={200}
        />
      </div>
      {flows.isError && found.length === 0 ? (
        <Trouble error={flows.error} again={() => void flows.refetch()} />
      ) : flows.isPending ? (
        <Loading />
      ) : found.length > 0 ? (
        <Table
          flows={found}
          more={flows.hasNextPage ? () => void flows.fetchNextPage() : undefined}
        />
      ) : q ? (
        <Empty title={t.noMatch(word)}>
          <button onClick={() => setWord('')}>{t.showAll}</button>
        </Empty>
      ) : (
        <Empty title={t.empty}>
          <Rich text={t.publish} parts={{ link: <Link to="/edit">{t.write}</Link> }} />
        </Empty>
      )}
    </div>
  )
}

function Table({ flows, more }: { flows: Flow[]; more?: () => void }) {
  return (
    <div className="panel table-box" tabIndex={0} role="region" aria-label={t.title}>
      <table>
        <thead>
          <tr>
            <th>{t.flow}</th>
            <th>{t.last}</th>
            <th className="number">{t.started}</th>
            <th className="number">{t.failed}</th>
            <th className="number">{t.p50}</th>
            <th className="number">{t.p95}</th>
            <th>{t.next}</th>
            <th>
              <span className="unseen">{texts.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {flows.map(f => (
            <Row key={f.id} flow={f} />
          ))}
        </tbody>
      </table>
      {more && <button onClick={more}>{t.more}</button>}
    </div>
  )
}

function Row({ flow: f }: { flow: Flow }) {
  const name = f.slug ?? f.id,
    s = f.summary
  const since = s?.since,
    ended = s && s.tasks.completed + s.tasks.failed + s.tasks.canceled > 0
  return (
    <tr>
      <td>
        <Link to="/flows/$flow" params={{ flow: name }} className="strong">
          {f.slug ?? f.name}
        </Link>
        {f.slug && f.name !== f.slug && <span className="faint"> {f.name}</span>}
        {f.description && <div className="faint">{f.description}</div>}
      </td>
      <td>{s && <Newest of={s} />}</td>
      <td className="number">
        <Link to="/tasks" search={{ flow: name, created_from: since }}>
          {s && digits(s.tasks.started)}
        </Link>
      </td>
      <td className="number">
        <Link
          to="/tasks"
          search={{ flow: name, state: ['failed'], ended_from: since }}
          className={s?.tasks.failed ? 'tone-failed strong' : ''}
        >
          {s && digits(s.tasks.failed)}
        </Link>
      </td>
      <td className="number">{ended && span(s.tasks.duration.p50_ms)}</td>
      <td className="number">{ended && span(s.tasks.duration.p95_ms)}</td>
      <td className="time">{s?.next_at && <When at={s.next_at} />}</td>
      <td className="number">
        <Link
          to="/flows/$flow"
          params={{ flow: name }}
          search={{ tab: 'start' }}
          className="button"
        >
          <Icon name="play" size={13} /> {t.start}
          <span className="unseen"> {f.slug}</span>
        </Link>
      </td>
    </tr>
  )
}

/** Newest shows the states of the latest tasks as signs, the newest at the right. */
function Newest({ of }: { of: FlowSummary }) {
  return (
    <span className="newest">
      {of.latest_tasks
        .slice(0, 10)
        .reverse()
        .map(({ id, state }) => (
          <Link key={id} to="/tasks/$task" params={{ task: id }} title={t.task(id, state)}>
            <Sign state={state} size={12} />
            <span className="unseen">{state}</span>
          </Link>
        ))}
    </span>
  )
}
