import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { PageSchedule, Schedule } from '../api.gen'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import { May } from '../data/me'
import { usePrefs } from '../data/prefs'
import { exact } from '../data/time'
import { Icon } from '../parts/Icon'
import { State } from '../parts/State'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { stringify } from '../data/json'
import { Rich } from '../parts/Rich'
import { digits, texts } from '../texts'

const t = texts.schedules

/** Schedules lists the schedules that start tasks. */
export function Schedules() {
  useTick()
  const { live } = usePrefs()
  const found = useInfiniteQuery({
    queryKey: ['schedules'],
    refetchInterval: live && 5000,
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      call('GET /v1/schedules', { query: { limit: 500, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageSchedule) => page.next || undefined,
  })
  if (found.isError && !found.data)
    return (
      <div className="page">
        <Trouble error={found.error} again={() => void found.refetch()} />
      </div>
    )
  if (!found.data) return <Loading />
  const schedules = found.data.pages.flatMap(p => p.items)
  return (
    <div className="page">
      <div className="head">
        <h1>{t.title}</h1>
      </div>
      {schedules.length === 0 ? (
        <div className="panel">
          <Empty title={t.empty}>
            <Rich text={t.create} />
          </Empty>
        </div>
      ) : (
        <div className="panel table-box">
          <table>
            <thead>
              <tr>
                <th>{t.schedule}</th>
                <th>{t.state}</th>
                <th>{t.flow}</th>
                <th>{t.times}</th>
                <th>{t.next}</th>
                <th>{t.last}</th>
                <th className="number">{t.started}</th>
                <th className="number">{t.skipped}</th>
                <th>
                  <span className="unseen">{texts.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {schedules.map(s => (
                <Row key={s.name} schedule={s} />
              ))}
            </tbody>
          </table>
          {found.hasNextPage && (
            <button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
              {t.more}
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Row({ schedule: s }: { schedule: Schedule }) {
  const queries = useQueryClient()
  const go = useNavigate()
  const [open, setOpen] = useState(false)
  const path = { schedule: s.name }
  const turn = useMutation({
    mutationFn: () =>
      s.enabled
        ? call('POST /v1/schedules/{schedule}/disable', { path })
        : call('POST /v1/schedules/{schedule}/enable', { path }),
    onSuccess: () => {
      note({ text: (s.enabled ? t.nowDisabled : t.nowEnabled)(s.name) })
      void queries.invalidateQueries({ queryKey: ['schedules'] })
    },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  const trigger = useMutation({
    mutationFn: () =>
      call('POST /v1/schedules/{schedule}/trigger', {
        path,
        body: { idempotency_key: requestID() },
      }),
    onSuccess: made => {
      note({ text: t.triggered(s.name), task: made.id })
      if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } })
    },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  return (
    <>
      <tr>
        <td>
          <button className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            <Icon name={open ? 'down' : 'open'} size={12} />
            {s.name}
          </button>
        </td>
        <td>
          {s.enabled ? (
            <State state="alive" word={t.enabled} />
          ) : (
            <State state="paused" word={t.disabled} />
          )}
        </td>
        <td>
          <Link to="/flows/$flow" params={{ flow: s.flow }}>
            {s.flow}
          </Link>
        </td>
        <td>
          <code>{s.cron ?? t.every(s.every ?? '')}</code>
          {s.cron && <span className="faint"> {s.timezone}</span>}
        </td>
        <td className="time" title={exact(s.next_at)}>
          <When at={s.next_at} />
        </td>
        <td>
          {s.last_task ? (
            <Link to="/tasks/$task" params={{ task: s.last_task }}>
              <When at={s.last_slot} />
            </Link>
          ) : (
            <span className="faint">{t.never}</span>
          )}
          {s.error && <p className="tone-failed">{s.error}</p>}
        </td>
        <td className="number">
          <Link to="/tasks" search={{ label: [`schedule:${s.name}`] }}>
            {digits(s.started_count)}
          </Link>
        </td>
        <td className="number">{digits(s.skipped_count)}</td>
        <td className="number">
          <May call="POST /v1/schedules/{schedule}/trigger">
            <span className="acts">
              <button disabled={trigger.isPending} onClick={() => trigger.mutate()}>
                <Icon name="play" size={13} /> {t.trigger}
                <span className="unseen"> {s.name}</span>
              </button>
              <button disabled={turn.isPending} onClick={() => turn.mutate()}>
                {s.enabled ? t.disable : t.enable}
                <span className="unseen"> {s.name}</span>
              </button>
            </span>
          </May>
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={9}>
            <Next schedule={s} />
          </td>
        </tr>
      )}
    </>
  )
}

function Next({ schedule: s }: { schedule: Schedule }) {
  const slots = useQuery({
    queryKey: ['slots', s.name, s.next_at],
    queryFn: ({ signal }) =>
      call(
        'GET /v1/schedules/{schedule}/next',
        { path: { schedule: s.name }, query: { count: 5 } },
        signal,
      ),
  })
  return (
    <dl className="about">
      <div>
        <dt>{t.nextRuns}</dt>
        <dd>
          {slots.data?.items.map(n => (
            <div key={n.slot}>
              {exact(n.slot)}{' '}
              <span className="faint">
                {n.local} {n.notes?.join('; ')}
              </span>
            </div>
          ))}
        </dd>
      </div>
      {s.clock_change && (
        <div>
          <dt>{t.clockChange}</dt>
          <dd>
            {s.clock_change.note} <code>{s.dst}</code>
          </dd>
        </div>
      )}
      <div>
        <dt>{t.catchup}</dt>
        <dd>{t.catchups[s.catchup]}</dd>
      </div>
      <div>
        <dt>{t.overlap}</dt>
        <dd>{t.overlaps[s.overlap]}</dd>
      </div>
      {s.params !== undefined && (
        <div>
          <dt>{t.params}</dt>
          <dd>
            <code>{stringify(s.params)}</code>
          </dd>
        </div>
      )}
    </dl>
  )
}
