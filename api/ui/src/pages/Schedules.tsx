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

/** What starts tasks by the clock. */
export function Schedules() {
  useTick()
  const { live } = usePrefs()
  const found = useInfiniteQuery({
    queryKey: ['schedules'], refetchInterval: live && 5000, initialPageParam: '',
    queryFn: ({ pageParam, signal }) => call('GET /v1/schedules', { query: { limit: 500, cursor: pageParam || undefined } }, signal),
    getNextPageParam: (page: PageSchedule) => page.next || undefined,
  })
  if (found.isError && !found.data) return <div className="page"><Trouble error={found.error} again={() => void found.refetch()} /></div>
  if (!found.data) return <Loading />
  const schedules = found.data.pages.flatMap(p => p.items)
  return (
    <div className="page">
      <div className="head"><h1>Schedules</h1></div>
      {schedules.length === 0 ? <div className="panel"><Empty title="No task begins by the clock">Set one: <code>troupe schedule set nightly --flow order --cron '30 2 * * *'</code></Empty></div>
        : (
          <div className="panel table-box">
            <table>
              <thead><tr><th>Schedule</th><th>State</th><th>Flow</th><th>When</th><th>Next</th><th>Last task</th><th className="number">Begun</th><th className="number">Skipped</th><th><span className="unseen">Do</span></th></tr></thead>
              <tbody>{schedules.map(s => <Row key={s.name} schedule={s} />)}</tbody>
            </table>
            {found.hasNextPage && <button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>More schedules</button>}
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
    mutationFn: () => (s.enabled ? call('POST /v1/schedules/{schedule}/disable', { path }) : call('POST /v1/schedules/{schedule}/enable', { path })),
    onSuccess: () => { note({ text: s.enabled ? `${s.name} does not fire any longer` : `${s.name} fires again` }); void queries.invalidateQueries({ queryKey: ['schedules'] }) },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  const trigger = useMutation({
    mutationFn: () => call('POST /v1/schedules/{schedule}/trigger', { path, body: { idempotency_key: requestID() } }),
    onSuccess: made => { note({ text: `a task of ${s.name} has begun`, task: made.id }); if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } }) },
    onError: problem => note({ text: problem.message, bad: true }),
  })
  return (
    <>
      <tr>
        <td><button className="link" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name={open ? 'down' : 'open'} size={12} />{s.name}</button></td>
        <td>{s.enabled ? <State state="living" word="fires" /> : <State state="paused" word="off" />}</td>
        <td><Link to="/flows/$flow" params={{ flow: s.flow }}>{s.flow}</Link></td>
        <td><code>{s.cron ?? `every ${s.every}`}</code>{s.cron && <span className="faint"> {s.timezone}</span>}</td>
        <td className="time" title={exact(s.next)}><When at={s.next} /></td>
        <td>{s.last_task ? <Link to="/tasks/$task" params={{ task: s.last_task }}><When at={s.last_slot} /></Link> : <span className="faint">none</span>}{s.error && <p className="tone-failed">{s.error}</p>}</td>
        <td className="number"><Link to="/tasks" search={{ label: [`schedule:${s.name}`] }}>{s.begun.toLocaleString('en')}</Link></td>
        <td className="number">{s.skipped.toLocaleString('en')}</td>
        <td className="number"><May call="POST /v1/schedules/{schedule}/trigger"><span className="acts">
          <button disabled={trigger.isPending} onClick={() => trigger.mutate()}><Icon name="play" size={13} /> Now<span className="unseen"> {s.name}</span></button>
          <button disabled={turn.isPending} onClick={() => turn.mutate()}>{s.enabled ? 'Turn off' : 'Turn on'}<span className="unseen"> {s.name}</span></button>
        </span></May></td>
      </tr>
      {open && <tr><td colSpan={9}><Next schedule={s} /></td></tr>}
    </>
  )
}

function Next({ schedule: s }: { schedule: Schedule }) {
  const slots = useQuery({ queryKey: ['slots', s.name, s.next], queryFn: ({ signal }) => call('GET /v1/schedules/{schedule}/next', { path: { schedule: s.name }, query: { count: 5 } }, signal) })
  return (
    <dl className="about">
      <div><dt>next</dt><dd>{slots.data?.items.map(n => <div key={n.slot}>{exact(n.slot)} <span className="faint">{n.local} {n.notes?.join('; ')}</span></div>)}</dd></div>
      {s.clock_change && <div><dt>clock change</dt><dd>{s.clock_change.note} <code>{s.dst}</code></dd></div>}
      <div><dt>missed slots</dt><dd>{({ one: 'the last one fires', none: 'are left out', all: 'all fire' } as Record<string, string>)[s.catchup]}</dd></div>
      <div><dt>overlap</dt><dd>{({ allow: 'is allowed', skip: 'is skipped', queue: 'waits', cancel_running: 'cancels what runs' } as Record<string, string>)[s.overlap]}</dd></div>
      {s.params !== undefined && <div><dt>params</dt><dd><code>{stringify(s.params)}</code></dd></div>}
    </dl>
  )
}
