import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { TokenRequest, Token } from '../api.gen'
import { note } from '../data/acts'
import { call } from '../data/call'
import { useMay, useMe } from '../data/me'
import { exact, span } from '../data/time'
import { Ask } from '../parts/Ask'
import { Copy } from '../parts/Copy'
import { Empty, Loading, Trouble } from '../parts/Told'
import { useTick, When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { texts } from '../texts'

const words = texts.settings

/** Settings shows the user's identity, the access tokens, and the settings of the member. */
export function Settings() {
  useTick()
  const may = useMay()
  return (
    <div className="page settings">
      <div className="head">
        <h1>{words.title}</h1>
      </div>
      <Me />
      {may('GET /v1/tokens') && <Tokens />}
      <Configuration />
      <section className="panel" aria-labelledby="keyboard">
        <h2 id="keyboard">{words.keyboard}</h2>
        <p>
          <Rich text={words.keyboardText} parts={{ '?': <kbd>?</kbd> }} />
        </p>
      </section>
    </div>
  )
}

function Me() {
  const me = useMe()
  const queries = useQueryClient()
  const leave = useMutation({
    mutationFn: () => call('DELETE /v1/session', {}),
    onSuccess: () => queries.resetQueries(),
    onError: problem => note({ text: problem.message, bad: true }),
  })
  if (!me.data) return null
  const { name, role, needs_token } = me.data
  const you = <strong>{name === 'flag' ? words.flag : words.named(name ?? '', role)}</strong>
  return (
    <section className="panel" aria-labelledby="me">
      <h2 id="me">{words.you}</h2>
      <p>
        {needs_token ? (
          <Rich text={words.youAre} parts={{ you, role: words.roles[role] }} />
        ) : (
          words.open
        )}
      </p>
      {needs_token && (
        <div className="buttons left">
          <button disabled={leave.isPending} onClick={() => leave.mutate()}>
            {words.signOut}
          </button>
        </div>
      )}
    </section>
  )
}

const does: Record<Token['role'], string> = words.roles

function Tokens() {
  const found = useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) => call('GET /v1/tokens', {}, signal),
  })
  const [gone, setGone] = useState<Token>()
  const me = useMe()
  return (
    <section className="panel" aria-labelledby="tokens">
      <h2 id="tokens">{words.tokens}</h2>
      {found.isLoadingError ? (
        <Trouble error={found.error} again={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading />
      ) : found.data.items.length === 0 ? (
        <Empty title={words.noTokens}>
          {me.data?.needs_token ? words.createBelow : words.noTokenServer}
        </Empty>
      ) : (
        <div className="table-box">
          <table>
            <thead>
              <tr>
                <th>{words.name}</th>
                <th>{words.roleLabel}</th>
                <th>{words.lastUsed}</th>
                <th>{words.expires}</th>
                <th>{words.created}</th>
                <th>
                  <span className="unseen">{texts.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.data.items.map(t => (
                <tr key={t.id}>
                  <td>{t.name}</td>
                  <td title={does[t.role]}>{t.role}</td>
                  <td>
                    {t.last_used_at ? (
                      <When at={t.last_used_at} />
                    ) : (
                      <span className="faint">{words.never}</span>
                    )}
                  </td>
                  <td>
                    {t.expires_at ? (
                      exact(t.expires_at)
                    ) : (
                      <span className="faint">{words.never}</span>
                    )}
                  </td>
                  <td>
                    <When at={t.created_at} />
                    {t.created_by && t.created_by !== 'flag' && (
                      <span className="faint">{words.by(t.created_by)}</span>
                    )}
                  </td>
                  <td className="number">
                    <button className="quiet" onClick={() => setGone(t)}>
                      {words.delete}
                      <span className="unseen"> {t.name}</span>
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
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
    onSuccess: () => note({ text: words.deleted(token.name) }),
    onError: problem => note({ text: problem.message, bad: true }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ['tokens'] }),
  })
  return (
    <Ask title={words.confirm(token.name)} close={close}>
      <p>{words.confirmText}</p>
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {words.keep}
        </button>
        <button
          type="button"
          className="danger"
          onClick={e => {
            drop.mutate()
            e.currentTarget.closest('dialog')?.close()
          }}
        >
          {words.deleteIt}
        </button>
      </div>
    </Ask>
  )
}

const day = 86_400_000
const times: [string, number][] = [
  [words.lifetimes.never, 0],
  [words.lifetimes.day, day],
  [words.lifetimes.month, 30 * day],
  [words.lifetimes.year, 365 * day],
]

function NewToken() {
  const queries = useQueryClient()
  const [asked, setAsked] = useState<TokenRequest>({ name: '', role: 'viewer', expires_in_ms: 0 })
  const make = useMutation({
    mutationFn: () => call('POST /v1/tokens', { body: asked }),
    onSuccess: () => {
      setAsked({ ...asked, name: '' })
      void queries.invalidateQueries({ queryKey: ['tokens'] })
    },
  })
  return (
    <form
      className="token-form"
      onSubmit={e => {
        e.preventDefault()
        make.mutate()
      }}
    >
      <label>
        {words.name}
        <input
          value={asked.name}
          onChange={e => setAsked({ ...asked, name: e.target.value })}
          required
          maxLength={64}
          pattern="[A-Za-z0-9][A-Za-z0-9@._\-]*"
          title={words.nameRule}
          spellCheck={false}
        />
      </label>
      <label>
        {words.roleLabel}
        <select
          value={asked.role}
          onChange={e => setAsked({ ...asked, role: e.target.value as Token['role'] })}
        >
          {(Object.keys(does) as Token['role'][]).map(r => (
            <option key={r} value={r}>
              {words.role(r, does[r])}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.expiry}
        <select
          value={asked.expires_in_ms}
          onChange={e => setAsked({ ...asked, expires_in_ms: Number(e.target.value) })}
        >
          {times.map(([text, ms]) => (
            <option key={ms} value={ms}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <button className="primary" disabled={make.isPending}>
        {words.create}
      </button>
      {make.isError && <Trouble error={make.error} />}
      {make.data && (
        <p role="status">
          <Rich
            text={words.secret}
            parts={{ name: make.data.name, secret: <code>{make.data.secret}</code> }}
          />{' '}
          <Copy text={make.data.secret} label={words.copy} size={13} />
        </p>
      )}
    </form>
  )
}

function Configuration() {
  const set = useQuery({
    queryKey: ['settings'],
    queryFn: ({ signal }) => call('GET /v1/settings', {}, signal),
  })
  const info = useQuery({
    queryKey: ['info'],
    queryFn: ({ signal }) => call('GET /v1/info', {}, signal),
  })
  if (set.isLoadingError) return <Trouble error={set.error} again={() => void set.refetch()} />
  if (!set.data || !info.data) return <Loading />
  const s = set.data
  const rows: [string, string][] = [
    [words.member, info.data.member],
    [words.version, info.data.version],
    [words.store, info.data.store],
    [words.startTokens, String(s.tokens)],
    [words.tls, s.tls ? words.yes : words.no],
    [words.origins, s.allow_origins.join(', ') || words.originsDefault],
    [words.hosts, s.allow_hosts.join(', ') || words.hostsDefault],
    [
      words.maxBody,
      `${(s.max_body / 1_048_576).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`,
    ],
    [words.readTimeout, span(s.read_timeout_ms)],
    [words.idleTimeout, span(s.idle_timeout_ms)],
    [words.grace, span(s.grace_ms)],
  ]
  return (
    <section className="panel" aria-labelledby="configuration">
      <h2 id="configuration">{words.server}</h2>
      <dl className="about">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
