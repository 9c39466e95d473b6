import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { CreateToken, Token } from '../api.gen'
import { note } from '../data/acts'
import { call } from '../data/call'
import { useMay, useMe } from '../data/me'
import { exact, span } from '../data/time'
import { Ask } from '../parts/Ask'
import { Copy } from '../parts/Copy'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'

/** Who one is, who else may come in, and how the member is set. */
export function Settings() {
  useTick()
  const may = useMay()
  return (
    <div className="page settings">
      <div className="head"><h1>Settings</h1></div>
      <Me />
      {may('GET /v1/tokens') && <Tokens />}
      <Configuration />
      <section className="panel" aria-labelledby="keyboard"><h2 id="keyboard">Keyboard</h2><p>Press <kbd>?</kbd> on any page for its keys, and to turn single keys off.</p></section>
    </div>
  )
}

function Me() {
  const me = useMe()
  const queries = useQueryClient()
  const leave = useMutation({ mutationFn: () => call('DELETE /v1/session', {}), onSuccess: () => queries.resetQueries(), onError: problem => note({ text: problem.message, bad: true }) })
  if (!me.data) return null
  const { name, role, needs_token } = me.data
  return (
    <section className="panel" aria-labelledby="me">
      <h2 id="me">You</h2>
      <p>{!needs_token ? <>Everybody who reaches this server may do everything: it was started without a token.</>
        : <>You are <strong>{name === 'flag' ? 'an admin, by a token that the server was started with' : `${name}, ${role}`}</strong>: {does[role]}.</>}</p>
      {needs_token && <div className="buttons left"><button disabled={leave.isPending} onClick={() => leave.mutate()}>Sign out</button></div>}
    </section>
  )
}

const does: Record<Token['role'], string> = {
  viewer: 'sees everything but tokens', approver: 'answers approvals, too', operator: 'starts and steers tasks, too', author: 'publishes flows, schedules and hooks, too',
  admin: 'does everything', worker: 'carries out jobs and nothing else',
}

function Tokens() {
  const found = useQuery({ queryKey: ['tokens'], queryFn: ({ signal }) => call('GET /v1/tokens', {}, signal) })
  const [gone, setGone] = useState<Token>()
  const me = useMe()
  return (
    <section className="panel" aria-labelledby="tokens">
      <h2 id="tokens">Tokens</h2>
      {found.isLoadingError ? <Trouble error={found.error} again={() => void found.refetch()} /> : !found.data ? <Loading />
        : found.data.items.length === 0 ? <Empty title="Nobody has a token of his own">{me.data?.needs_token ? 'Make one below.' : 'A server that was started without a token makes none: start it with --token-file.'}</Empty>
          : (
            <div className="table-box">
              <table>
                <thead><tr><th>Name</th><th>Role</th><th>Last used</th><th>Expires</th><th>Made</th><th><span className="unseen">Do</span></th></tr></thead>
                <tbody>{found.data.items.map(t => (
                  <tr key={t.id}>
                    <td>{t.name}</td><td title={does[t.role]}>{t.role}</td>
                    <td>{t.last_used_at ? <When at={t.last_used_at} /> : <span className="faint">never</span>}</td>
                    <td>{t.expires_at ? exact(t.expires_at) : <span className="faint">never</span>}</td>
                    <td><When at={t.created_at} />{t.created_by && t.created_by !== 'flag' && <span className="faint"> by {t.created_by}</span>}</td>
                    <td className="number"><button className="quiet" onClick={() => setGone(t)}>Delete<span className="unseen"> {t.name}</span></button></td>
                  </tr>
                ))}</tbody>
              </table>
            </div>
          )}
      {me.data?.needs_token && <NewToken />}
      {gone && <DeleteAsk token={gone} close={() => setGone(undefined)} />}
    </section>
  )
}

function DeleteAsk({ token, close }: { token: Token; close: () => void }) {
  const queries = useQueryClient()
  const drop = useMutation({
    mutationFn: () => call('DELETE /v1/tokens/{token}', { path: { token: token.id } }),
    onSuccess: () => note({ text: `the token ${token.name} is good no longer` }),
    onError: problem => note({ text: problem.message, bad: true }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ['tokens'] }),
  })
  return (
    <Ask title={`Delete the token ${token.name}?`} close={close}>
      <p>Whoever has it is kept out at once, and so are browsers that were signed in with it.</p>
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>Keep it</button>
        <button type="button" className="danger" onClick={e => { drop.mutate(); e.currentTarget.closest('dialog')?.close() }}>Delete it</button>
      </div>
    </Ask>
  )
}

const day = 86_400_000
const times: [string, number][] = [['until it is deleted', 0], ['a day', day], ['30 days', 30 * day], ['a year', 365 * day]]

function NewToken() {
  const queries = useQueryClient()
  const [asked, setAsked] = useState<CreateToken>({ name: '', role: 'viewer', expires_in_ms: 0 })
  const make = useMutation({
    mutationFn: () => call('POST /v1/tokens', { body: asked }),
    onSuccess: () => { setAsked({ ...asked, name: '' }); void queries.invalidateQueries({ queryKey: ['tokens'] }) },
  })
  return (
    <form className="token-form" onSubmit={e => { e.preventDefault(); make.mutate() }}>
      <label>Name<input value={asked.name} onChange={e => setAsked({ ...asked, name: e.target.value })} required maxLength={64} pattern="[A-Za-z0-9][A-Za-z0-9@._\-]*" title="Letters, digits, @ . _ -" spellCheck={false} /></label>
      <label>Role<select value={asked.role} onChange={e => setAsked({ ...asked, role: e.target.value as Token['role'] })}>
        {(Object.keys(does) as Token['role'][]).map(r => <option key={r} value={r}>{r}: {does[r]}</option>)}
      </select></label>
      <label>Good<select value={asked.expires_in_ms} onChange={e => setAsked({ ...asked, expires_in_ms: Number(e.target.value) })}>
        {times.map(([text, ms]) => <option key={ms} value={ms}>{text}</option>)}
      </select></label>
      <button className="primary" disabled={make.isPending}>Make a token</button>
      {make.isError && <Trouble error={make.error} />}
      {make.data && (
        <p role="status">The token of {make.data.name} is shown this once: <code>{make.data.secret}</code>{' '}
          <Copy text={make.data.secret} label="Copy the token" size={13} /></p>
      )}
    </form>
  )
}

function Configuration() {
  const set = useQuery({ queryKey: ['settings'], queryFn: ({ signal }) => call('GET /v1/settings', {}, signal) })
  const info = useQuery({ queryKey: ['info'], queryFn: ({ signal }) => call('GET /v1/info', {}, signal) })
  if (set.isLoadingError) return <Trouble error={set.error} again={() => void set.refetch()} />
  if (!set.data || !info.data) return <Loading />
  const s = set.data
  const rows: [string, string][] = [
    ['member', info.data.member], ['version', info.data.version], ['store', info.data.store], ['tokens of the start', String(s.tokens)], ['TLS', s.tls ? 'yes' : 'no'],
    ['allowed origins', s.allow_origins.join(', ') || 'those of this computer'], ['allowed hosts', s.allow_hosts.join(', ') || 'its address'],
    ['largest request', `${(s.max_body / 1_048_576).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`],
    ['time for a request', span(s.read_timeout_ms)], ['idle connections', span(s.idle_timeout_ms)], ['grace when it stops', span(s.grace_ms)],
  ]
  return (
    <section className="panel" aria-labelledby="configuration">
      <h2 id="configuration">This member</h2>
      <dl className="about">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  )
}
