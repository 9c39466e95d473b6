import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { call, Refused } from '../data/call'
import { useInfo } from '../data/info'
import { setPrefs, usePrefs, type Prefs } from '../data/prefs'
import { follow, useLive } from '../data/socket'
import { Ask } from './Ask'
import { Icon } from './Icon'
import { places, useKeys } from './keys'
import { Notes } from './Notes'
import { Empty, Trouble } from './Told'
import { useTick } from './When'
import { Rich } from './Rich'
import { texts } from '../texts'

const t = texts.shell

/** Frame hides the navigation from a user with a link to an approval. */
export function Frame() {
  const linked = useRouterState({ select: s => /\/approve\//.test(s.location.pathname) })
  return linked ? (
    <>
      <Outlet />
      <Notes />
    </>
  ) : (
    <Shell />
  )
}

/** Shell surrounds every page with the navigation, the search, and the state of the connection. */
function Shell() {
  const [help, setHelp] = useState(false)
  const prefs = usePrefs()
  const search = useRef<HTMLInputElement>(null)
  useKeys({ help: () => setHelp(true), search: () => search.current?.focus() })
  const info = useInfo(60_000)
  const refused = info.error instanceof Refused && info.error.problem.status === 401
  return (
    <div className={prefs.folded ? 'shell folded' : 'shell'}>
      <a className="skip" href="#page">
        {t.skip}
      </a>
      <Bar folded={prefs.folded} />
      <header className="top">
        <button
          className="quiet fold"
          onClick={() => setPrefs({ folded: !prefs.folded })}
          aria-label={prefs.folded ? t.expand : t.collapse}
          aria-expanded={!prefs.folded}
        >
          <Icon name="menu" />
        </button>
        <Search input={search} />
        <Dot down={info.isError && !refused} />
        <Zone />
        <Theme />
        <button
          className="quiet"
          onClick={() => setHelp(true)}
          aria-label={t.keys}
          title={t.keysKey}
        >
          ?
        </button>
      </header>
      <main id="page" tabIndex={-1}>
        {refused ? <SignIn /> : <Outlet />}
      </main>
      <Notes />
      {help && <Keys close={() => setHelp(false)} />}
    </div>
  )
}

function Bar({ folded }: { folded: boolean }) {
  return (
    <nav className="bar" aria-label={t.pages}>
      <Link to="/" className="brand" aria-label={texts.product}>
        <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" fill="var(--brand)" />
          <g fill="none" stroke="#fff" strokeWidth="2.4">
            <path d="M10 10.5c6 0 5 11 12 11M10 10.5h12" />
          </g>
          <g fill="#fff">
            <circle cx="9" cy="10.5" r="3.2" />
            <circle cx="23" cy="10.5" r="3.2" />
            <circle cx="23" cy="21.5" r="3.2" />
          </g>
        </svg>
        <span>{texts.product}</span>
      </Link>
      {places.map(p => (
        <Link
          key={p.to}
          to={p.to}
          className="place"
          activeOptions={{ exact: p.to === '/' }}
          title={folded ? p.name : t.place(p.name, p.key)}
          activeProps={{ className: 'place here', 'aria-current': 'page' }}
        >
          <Icon name={p.icon} />
          <span>{p.name}</span>
        </Link>
      ))}
    </nav>
  )
}

/** Search leads to the tasks with a text in their id, labels or error; name:value is a label. */
function Search({ input }: { input: React.RefObject<HTMLInputElement | null> }) {
  const go = useNavigate()
  const [text, setText] = useState('')
  const submit = () => {
    const what = text.trim()
    if (!what) return
    setText('')
    input.current?.blur()
    if (/^[\w.-]+:\S+$/.test(what)) void go({ to: '/tasks', search: { label: [what] } })
    else void go({ to: '/tasks', search: { q: what } })
  }
  return (
    <form
      className="search"
      role="search"
      onSubmit={e => {
        e.preventDefault()
        submit()
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        value={text}
        onChange={e => setText(e.target.value)}
        placeholder={t.search}
        aria-label={t.searchLabel}
        spellCheck={false}
      />
      <kbd>/</kbd>
    </form>
  )
}

/** Dot shows whether the page is up to date. */
function Dot({ down }: { down: boolean }) {
  useTick()
  const live = useLive(),
    prefs = usePrefs()
  const off = live.state === 'off' || down
  const left = live.until && Math.max(0, Math.ceil((live.until - Date.now()) / 1000))
  const retries = left === undefined ? t.reconnecting : t.reconnectingIn(left)
  const text = !prefs.live
    ? t.paused
    : off
      ? retries
      : live.state === 'connecting'
        ? t.connecting
        : t.live
  return (
    <button
      className={`live ${!prefs.live ? 'still' : off ? 'off' : 'on'}`}
      aria-pressed={prefs.live}
      title={t.liveTitle}
      onClick={() => {
        setPrefs({ live: !prefs.live })
        follow()
      }}
    >
      <i aria-hidden="true" />
      {text}
    </button>
  )
}

function Zone() {
  const { zone } = usePrefs()
  return (
    <button
      className="quiet"
      title={t.zoneTitle}
      onClick={() => setPrefs({ zone: zone === 'UTC' ? 'local' : 'UTC' })}
    >
      {zone === 'UTC' ? t.utc : t.local}
    </button>
  )
}

const themes: Record<Prefs['theme'], { next: Prefs['theme']; icon: string }> = {
  system: { next: 'light', icon: 'settings' },
  light: { next: 'dark', icon: 'sun' },
  dark: { next: 'system', icon: 'moon' },
}

function Theme() {
  const { theme } = usePrefs()
  return (
    <button
      className="quiet"
      onClick={() => setPrefs({ theme: themes[theme].next })}
      aria-label={t.theme(theme)}
      title={t.themeKey(theme)}
    >
      <Icon name={themes[theme].icon} />
    </button>
  )
}

function SignIn() {
  const queries = useQueryClient()
  const [token, setToken] = useState('')
  const open = useMutation({
    mutationFn: () => call('POST /v1/session', { body: { token } }),
    onSuccess: () => queries.resetQueries(),
  })
  return (
    <form
      className="sign-in panel"
      onSubmit={e => {
        e.preventDefault()
        open.mutate()
      }}
    >
      <h1>{texts.signIn.title}</h1>
      <p>
        <Rich text={texts.signIn.text} />
      </p>
      <label>
        {texts.signIn.token}
        <input
          type="password"
          value={token}
          onChange={e => setToken(e.target.value)}
          autoComplete="current-password"
          required
        />
      </label>
      {open.isError && <Trouble error={open.error} />}
      <button className="primary" disabled={open.isPending}>
        {texts.signIn.title}
      </button>
    </form>
  )
}

function Keys({ close }: { close: () => void }) {
  const prefs = usePrefs()
  const [first, second, ...others] = Object.entries(texts.keys.rows)
  const rows = [first, second, ...places.map(p => [`g ${p.key}`, p.name]), ...others]
  return (
    <Ask title={texts.keys.title} close={close}>
      <dl className="keys">
        {rows.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((k, i) => (
                <kbd key={i}>{k}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label className="check">
        <input
          type="checkbox"
          checked={prefs.keys}
          onChange={e => setPrefs({ keys: e.target.checked })}
        />{' '}
        {texts.keys.single}
      </label>
      <div className="buttons">
        <button formMethod="dialog" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {texts.close}
        </button>
      </div>
    </Ask>
  )
}

export function Missing() {
  const path = useRouterState({ select: s => s.location.pathname })
  return (
    <Empty title={t.notFound(path)}>
      <Link to="/tasks">{t.allTasks}</Link>
    </Empty>
  )
}
