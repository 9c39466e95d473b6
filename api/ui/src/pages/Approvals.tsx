import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import type { Approval } from '../api.gen'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { usePageKeys } from '../parts/keys'
import { Empty, Loading, Trouble } from '../parts/Told'
import { Since, useTick, When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { texts } from '../texts'

const t = texts.approvals

const most = 200

/** Approvals lists the approvals that tasks wait for. The page is designed for a phone as well. */
export function Approvals() {
  useTick()
  const { live } = usePrefs()
  const [state, setState] = useState<Approval['state']>('open'),
    [q, setQ] = useState('')
  const found = useInfiniteQuery({
    queryKey: ['approvals', state, q],
    refetchInterval: live && 2000,
    placeholderData: keepPreviousData,
    initialPageParam: '',
    queryFn: ({ signal, pageParam: cursor }) =>
      call(
        'GET /v1/approvals',
        { query: { state, q, limit: most, ...(cursor && { cursor }) } },
        signal,
      ),
    // the server searches a limited number at a time and continues on request
    getNextPageParam: page => page.searched_until && page.next,
  })
  const rows = useRef<HTMLUListElement>(null)
  const step = (by: number) => {
    // The keyboard focus stays on the row while other rows arrive, and Enter opens the row.
    const links = [...(rows.current?.querySelectorAll<HTMLElement>('strong a') ?? [])]
    links[
      Math.max(
        0,
        Math.min(links.length - 1, links.findIndex(a => a === document.activeElement) + by),
      )
    ]?.focus()
  }
  usePageKeys({
    j: () => step(1),
    k: () => step(-1),
    Escape: () => (document.activeElement as HTMLElement | null)?.blur(),
  })
  if (found.isError && !found.data)
    return (
      <div className="page">
        <Trouble error={found.error} again={() => void found.refetch()} />
      </div>
    )
  if (!found.data) return <Loading />
  const list = found.data.pages.flatMap(page => page.items),
    last = found.data.pages.at(-1)
  return (
    <div className="page approvals">
      <div className="head">
        <h1>{t.title}</h1>
        <label className="as">
          {t.search}{' '}
          <input
            type="search"
            value={q}
            onChange={e => setQ(e.target.value)}
            placeholder={t.searchExample}
            maxLength={256}
          />
        </label>
        <label>
          {t.state}{' '}
          <select value={state} onChange={e => setState(e.target.value as Approval['state'])}>
            {(['open', 'answered', 'ended'] as const).map(s => (
              <option key={s} value={s}>
                {t.states[s]}
              </option>
            ))}
          </select>
        </label>
      </div>
      {list.length === 0 && !found.hasNextPage && (
        <div className="panel">
          <Empty title={state === 'open' && !q ? t.empty : t.noMatch} />
        </div>
      )}
      <ul ref={rows}>
        {list.map(a => (
          <Row key={a.id} of={a} />
        ))}
      </ul>
      {last?.searched_until && (
        <button
          className="quiet"
          disabled={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          <Rich
            text={state === 'open' ? t.searchAfter : t.searchBefore}
            parts={{ time: <When at={last.searched_until} /> }}
          />
        </button>
      )}
      {last?.next && !last.searched_until && <p className="faint">{t.more}</p>}
    </div>
  )
}

function Row({ of: a }: { of: Approval }) {
  const where = a.scope ? `${a.scope}/${a.node}` : a.node
  return (
    <li className="panel">
      <div className="what">
        <strong>
          <Link to="/approvals/$approval" params={{ approval: a.id }}>
            {a.title || where}
          </Link>
        </strong>
        <span>
          <Rich
            text={t.flow}
            parts={{
              flow: (
                <Link to="/flows/$flow" params={{ flow: a.flow }}>
                  {a.flow}
                </Link>
              ),
            }}
          />
        </span>
        <Link to="/tasks/$task" params={{ task: a.task }} title={a.task}>
          {a.task.slice(0, 18)}…
        </Link>
        <span className="faint">
          <Since at={a.waiting_since} />
        </span>
        {a.deadline && a.state === 'open' && (
          <span className="faint">
            {t.due} <When at={a.deadline} />
          </span>
        )}
        {a.state !== 'open' && (
          <span>
            {a.action || t.states[a.state]}
            {a.answered_by && t.by(a.answered_by)} <When at={a.ended_at} />
          </span>
        )}
      </div>
    </li>
  )
}
