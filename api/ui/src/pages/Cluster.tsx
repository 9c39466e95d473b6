import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { call } from '../data/call'
import { usePrefs } from '../data/prefs'
import { span } from '../data/time'
import { State } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { texts } from '../texts'

const t = texts.cluster

const hues = [248, 160, 28, 320, 200, 90, 0, 55]

/** Cluster shows the members and which tasks each of them owns. */
export function Cluster() {
  useTick()
  const { live } = usePrefs()
  const refetchInterval = live && 3000
  const members = useQuery({
    queryKey: ['members'],
    refetchInterval,
    queryFn: ({ signal }) => call('GET /v1/cluster/members', {}, signal),
  })
  const shards = useQuery({
    queryKey: ['shards'],
    refetchInterval,
    queryFn: ({ signal }) => call('GET /v1/cluster/shards', {}, signal),
  })
  const info = useQuery({
    queryKey: ['info'],
    queryFn: ({ signal }) => call('GET /v1/info', {}, signal),
  })
  const hue = useMemo(() => {
    const at = new Map(
      members.data?.items.map((m, i) => [
        m.incarnation,
        `oklch(0.62 0.15 ${hues[i % hues.length]})`,
      ]),
    )
    return (incarnation?: string) => (incarnation ? at.get(incarnation) : undefined)
  }, [members.data])
  if (members.isError && !members.data)
    return (
      <div className="page">
        <Trouble error={members.error} again={() => void members.refetch()} />
      </div>
    )
  if (!members.data) return <Loading />
  return (
    <div className="page">
      <div className="head">
        <h1>{t.title(members.data.name)}</h1>
        <span className="faint">{info.data && t.server(info.data.version, info.data.store)}</span>
      </div>
      {members.data.unowned > 0 && <p className="failure">{t.unowned(members.data.unowned)}</p>}
      <section className="section" aria-label={t.members}>
        <h2>{t.members}</h2>
        <div className="panel table-box">
          <table>
            <thead>
              <tr>
                <th>{t.member}</th>
                <th>{t.state}</th>
                <th>{t.version}</th>
                <th>{t.joined}</th>
                <th className="number">{t.lease}</th>
                <th className="number">{t.shards}</th>
                <th className="number">{t.active}</th>
                <th className="number">{t.resting}</th>
              </tr>
            </thead>
            <tbody>
              {members.data.items.map(m => (
                <tr key={m.incarnation}>
                  <td>
                    <span className="swatch" style={{ background: hue(m.incarnation) }} />
                    <b>{m.name}</b>
                    {m.current && <span className="faint">{t.answers}</span>}
                    <br />
                    <span className="faint mono">{m.url}</span>
                  </td>
                  <td>
                    <State state={m.state} />
                  </td>
                  <td>{m.version}</td>
                  <td className="time">
                    <When at={m.joined_at} />
                  </td>
                  <td className="number">{span(m.lease_ms)}</td>
                  <td className="number">{m.shards}</td>
                  <td className="number">{m.active_tasks.toLocaleString('en')}</td>
                  <td className="number">{m.idle_tasks.toLocaleString('en')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {shards.data && (
        <section className="section" aria-label={t.shards}>
          <h2>
            {t.shards} <span className="faint">{t.map(shards.data.items.length)}</span>
          </h2>
          <div
            className="panel strip"
            role="img"
            aria-label={t.mapLabel(shards.data.items.length, members.data.unowned)}
          >
            {shards.data.items.map(s => (
              <i
                key={s.shard}
                style={{ background: hue(s.owner) }}
                title={t.shard(s.shard, s.member, s.active_tasks, s.idle_tasks)}
              />
            ))}
          </div>
        </section>
      )}
      {(shards.data?.moves.length ?? 0) > 0 && (
        <section className="section" aria-label={t.moves}>
          <h2>{t.movesTitle}</h2>
          <div className="panel table-box">
            <table>
              <thead>
                <tr>
                  <th>{t.time}</th>
                  <th className="number">{t.shards}</th>
                  <th>{t.from}</th>
                  <th>{t.to}</th>
                </tr>
              </thead>
              <tbody>
                {[...shards.data!.moves]
                  .reverse()
                  .slice(0, 100)
                  .map((m, i) => (
                    <tr key={i}>
                      <td className="time">
                        <When at={m.at} />
                      </td>
                      <td className="number">{m.shards}</td>
                      <td>{m.from?.name ?? m.from?.incarnation ?? t.noOwner}</td>
                      <td>{m.to.name ?? m.to.incarnation}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </div>
  )
}
