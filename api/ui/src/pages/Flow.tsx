import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { PageVersion } from '../api.gen'
import { call } from '../data/call'
import type { FlowView } from '../data/search'
import { useGraph, useVersion } from '../data/task'
import { FlowGraph } from '../flow/FlowGraph'
import { StartForm } from '../flow/StartForm'
import { Stats } from '../flow/Stats'
import { TaskTable } from '../flow/TaskTable'
import { Versions } from '../flow/Versions'
import { Icon } from '../parts/Icon'
import { usePageKeys } from '../parts/keys'
import { Loading, Trouble } from '../parts/Told'
import { Value } from '../parts/Value'
import { texts } from '../texts'

const route = getRouteApi('/flows/$flow')
const t = texts.flow,
  { tabs } = t
type Tab = keyof typeof tabs

/** Flow shows one flow: its plan, its versions, its latest tasks, and the form to start one. */
export function Flow() {
  const { flow } = route.useParams()
  const view = route.useSearch()
  const go = useNavigate()
  const versions = useInfiniteQuery({
    queryKey: ['versions', flow],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      call(
        'GET /v1/flows/{flow}/versions',
        { path: { flow }, query: { limit: 100, cursor: pageParam || undefined } },
        signal,
      ),
    getNextPageParam: (page: PageVersion) => page.next || undefined,
  })
  const about = useQuery({
    queryKey: ['flow', flow],
    queryFn: ({ signal }) => call('GET /v1/flows/{flow}', { path: { flow } }, signal),
  })
  const known = versions.data?.pages.flatMap(p => p.items) ?? []
  const number = view.v ?? known[0]?.number
  const graph = useGraph(number === undefined ? undefined : flow, number)
  const tab = (view.tab && view.tab in tabs ? view.tab : 'graph') as Tab
  const set = (change: Partial<FlowView>) =>
    void go({ to: '/flows/$flow', params: { flow }, search: { ...view, ...change }, replace: true })
  usePageKeys(
    Object.fromEntries(
      Object.keys(tabs).map((name, i) => [String(i + 1), () => set({ tab: name })]),
    ),
  )

  if (about.isLoadingError || versions.isLoadingError)
    return (
      <div className="page">
        <Trouble
          error={about.error ?? versions.error}
          again={() => {
            void about.refetch()
            void versions.refetch()
          }}
        />
      </div>
    )
  if (!about.data || !versions.data) return <Loading />
  return (
    <div className="page task">
      <header className="task-head">
        <div className="head">
          <h1>{about.data.slug ?? about.data.name}</h1>
          <label className="inline">
            {texts.version}
            <select
              value={number ?? ''}
              onChange={e => set({ v: Number(e.target.value), node: undefined })}
            >
              {known.map(v => (
                <option key={v.id} value={v.number}>
                  {v.status === 'published' ? v.number : t.versionOf(v.number, v.status)}
                </option>
              ))}
            </select>
          </label>
          {about.data.slug && (
            <Link to="/edit/$flow" params={{ flow: about.data.slug }} className="button">
              <Icon name="edit" size={14} /> {t.edit}
            </Link>
          )}
        </div>
        {about.data.description && <p className="faint">{about.data.description}</p>}
      </header>
      <nav className="tabs" aria-label={t.tabsLabel}>
        {(Object.keys(tabs) as Tab[]).map((name, i) => (
          <Link
            key={name}
            to="/flows/$flow"
            params={{ flow }}
            search={{ ...view, tab: name === 'graph' ? undefined : name }}
            replace
            className={name === tab ? 'here' : ''}
            aria-current={name === tab ? 'page' : undefined}
            title={texts.task.tab(tabs[name], i + 1)}
          >
            {tabs[name]}
          </Link>
        ))}
      </nav>
      <div className="split">
        <div className="split-main panel">
          {number === undefined ? (
            <p className="loading">{t.noVersion}</p>
          ) : tab === 'graph' ? (
            graph.data ? (
              <FlowGraph graph={graph.data} view={view} set={set} />
            ) : graph.isError ? (
              <Trouble error={graph.error} />
            ) : (
              <Loading />
            )
          ) : tab === 'stats' ? (
            <Stats flow={flow} version={number} view={view} set={set} />
          ) : tab === 'tasks' ? (
            <TaskTable flow={flow} known={known} version={view.of} set={set} />
          ) : tab === 'definition' ? (
            <Definition flow={flow} version={number} />
          ) : tab === 'start' ? (
            <StartForm
              key={number}
              flow={flow}
              version={number}
              newest={number === known[0]?.number}
            />
          ) : (
            <Versions
              flow={flow}
              known={known}
              more={versions.hasNextPage ? () => void versions.fetchNextPage() : undefined}
              view={view}
              set={set}
            />
          )}
        </div>
      </div>
    </div>
  )
}

function Definition({ flow, version }: { flow: string; version: number }) {
  const found = useVersion(flow, version)
  if (found.isError) return <Trouble error={found.error} />
  return found.data ? (
    <div className="values">
      <Value of={found.data.definition} label={t.definition} />
    </div>
  ) : (
    <Loading />
  )
}
