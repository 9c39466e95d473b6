import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { span } from '../data/time'
import { State } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'

const hues = [248, 160, 28, 320, 200, 90, 0, 55]

/** Who is there, and who looks after which tasks. */
export function Cluster() {
  useTick()
  const { live } = usePrefs()
  const refetchInterval = live && 3000
  const members = useQuery({ queryKey: ['members'], refetchInterval, queryFn: ({ signal }) => call('GET /v1/cluster/members', {}, signal) })
  const shards = useQuery({ queryKey: ['shards'], refetchInterval, queryFn: ({ signal }) => call('GET /v1/cluster/shards', {}, signal) })
  const info = useQuery({ queryKey: ['info'], queryFn: ({ signal }) => call('GET /v1/info', {}, signal) })
  const hue = useMemo(() => {
    const at = new Map(members.data?.items.map((m, i) => [m.incarnation, `oklch(0.62 0.15 ${hues[i % hues.length]})`]))
    return (incarnation?: string) => (incarnation ? at.get(incarnation) : undefined)
  }, [members.data])
  if (members.isError && !members.data) return <div className="page"><Trouble error={members.error} again={() => void members.refetch()} /></div>
  if (!members.data) return <Loading />
  return (
    <div className="page">
      <div className="head"><h1>Cluster {members.data.name}</h1><span className="faint">{info.data && `Troupe ${info.data.version} on ${info.data.store}`}</span></div>
      {members.data.unowned > 0 && <p className="failure">{members.data.unowned} shards have no owner for the moment: their tasks wait.</p>}
      <section className="section" aria-label="Members">
        <h2>Members</h2>
        <div className="panel table-box">
          <table>
            <thead><tr><th>Member</th><th>State</th><th>Version</th><th>Joined</th><th className="number">Lease</th><th className="number">Shards</th><th className="number">Active tasks</th><th className="number">Resting tasks</th></tr></thead>
            <tbody>
              {members.data.items.map(m => (
                <tr key={m.incarnation}>
                  <td><span className="swatch" style={{ background: hue(m.incarnation) }} /><b>{m.name}</b>{m.answers && <span className="faint"> answers</span>}<br /><span className="faint mono">{m.url}</span></td>
                  <td><State state={m.state} /></td><td>{m.version}</td><td className="time"><When at={m.joined_at} /></td>
                  <td className="number">{span(m.lease_ms)}</td><td className="number">{m.shards}</td><td className="number">{m.active.toLocaleString('en')}</td><td className="number">{m.resting.toLocaleString('en')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {shards.data && (
        <section className="section" aria-label="Shards">
          <h2>Shards <span className="faint">each square is one of {shards.data.items.length.toLocaleString('en')}, in the color of its member</span></h2>
          <div className="panel strip" role="img" aria-label={`${shards.data.items.length} shards, of which ${members.data.unowned} have no owner`}>
            {shards.data.items.map(s => <i key={s.shard} style={{ background: hue(s.owner) }} title={`shard ${s.shard}: ${s.member ?? 'nobody'}, ${s.active} active, ${s.resting} resting`} />)}
          </div>
        </section>
      )}
      {(shards.data?.moves.length ?? 0) > 0 && (
        <section className="section" aria-label="Moves">
          <h2>Moves of the last ten minutes</h2>
          <div className="panel table-box"><table>
            <thead><tr><th>When</th><th className="number">Shards</th><th>From</th><th>To</th></tr></thead>
            <tbody>{[...shards.data!.moves].reverse().slice(0, 100).map((m, i) => <tr key={i}><td className="time"><When at={m.at} /></td><td className="number">{m.shards}</td><td>{m.from?.name ?? m.from?.incarnation ?? 'nobody'}</td><td>{m.to.name ?? m.to.incarnation}</td></tr>)}</tbody>
          </table></div>
        </section>
      )}
    </div>
  )
}
