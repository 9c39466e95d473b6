import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { isOver, useDigest, useDigestAt, useGraph, useWaiting } from '../data/task'
import type { TaskView } from '../data/search'
import { usePageKeys } from '../parts/keys'
import { Loading, Trouble } from '../parts/Told'
import { EventsTab } from '../task/Events'
import { Head } from '../task/Head'
import { Inspector } from '../task/Inspector'
import { LogView } from '../task/Logs'
import { Replay } from '../task/Replay'
import { StepsTab } from '../task/Steps'
import { TaskGraph } from '../task/TaskGraph'
import { TimelineTab } from '../task/Timeline'
import { ValuesTab } from '../task/Values'
import { Waits } from '../task/Waits'
import { texts } from '../texts'

const route = getRouteApi('/tasks/$task')
const t = texts.task,
  { tabs } = t
type Tab = keyof typeof tabs

/**
 * Task shows one task: its whole plan by state, its waits, and each part one click away. All of
 * this state is in the address.
 */
export function Task() {
  const { task } = route.useParams()
  const view = route.useSearch()
  const go = useNavigate()
  const chosen =
    view.scope && !view.scope.startsWith('~') && !view.open?.includes(view.scope)
      ? [view.scope]
      : [] // the scopes of undo and clean-up are always read
  const open = [...(view.open ?? []), ...chosen]
  const digest = useDigest(task, open)
  const graph = useGraph(digest.data?.flow, digest.data?.version)
  const ended = isOver(digest.data?.state)
  const then = useDigestAt(task, open, view.at)
  const waiting = useWaiting(task, digest.isSuccess && !ended)
  const tab = (view.tab && view.tab in tabs ? view.tab : 'graph') as Tab
  const set = (change: Partial<TaskView>) =>
    void go({ to: '/tasks/$task', params: { task }, search: { ...view, ...change }, replace: true })
  usePageKeys(
    Object.fromEntries(
      Object.keys(tabs).map((name, i) => [String(i + 1), () => set({ tab: name })]),
    ),
  )

  const failed = digest.data?.state === 'failed' ? firstFailed(digest.data) : undefined
  const untouched = view.node === undefined && view.tab === undefined
  const led = useRef<string>(undefined)
  useEffect(() => {
    // A failed task opens at the failed node. This happens once, because the address is also empty
    // for a moment when the user leaves.
    if (!failed || led.current === task) return
    led.current = task
    if (untouched) set({ node: failed.node, scope: failed.scope || undefined })
  }, [task, failed?.node, failed?.scope, untouched])

  if (digest.isError && !digest.data)
    return (
      <div className="page">
        <Trouble error={digest.error} again={() => void digest.refetch()} />
      </div>
    )
  if (!digest.data) return <Loading />
  const d = digest.data,
    shown = view.at === undefined ? d : (then.data ?? d)
  return (
    <div className="page task">
      <Head digest={d} />
      {!ended && (
        <Waits
          task={task}
          waits={waiting.data?.waits ?? d.waits ?? []}
          select={w => set({ node: w.node, scope: w.scope, tab: undefined })}
        />
      )}
      <nav className="tabs" aria-label={t.tabsLabel}>
        {(Object.keys(tabs) as Tab[]).map((name, i) => (
          <Link
            key={name}
            to="/tasks/$task"
            params={{ task }}
            search={{ ...view, tab: name === 'graph' ? undefined : name }}
            replace
            className={name === tab ? 'here' : ''}
            aria-current={name === tab ? 'page' : undefined}
            title={t.tab(tabs[name], i + 1)}
          >
            {tabs[name]}
          </Link>
        ))}
      </nav>
      <div className={view.node !== undefined ? 'split with-side' : 'split'}>
        <div className="split-main panel">
          {tab === 'graph' &&
            (graph.data ? (
              <div className="with-replay">
                <div className="replayed">
                  <TaskGraph
                    digest={shown}
                    until={view.at === undefined ? undefined : Date.parse(shown.updated_at)}
                    graph={graph.data}
                    view={view}
                    set={set}
                  />
                </div>
                <Replay task={task} last={d.seq} at={view.at} set={set} />
              </div>
            ) : graph.isError ? (
              <Trouble error={graph.error} again={() => void graph.refetch()} />
            ) : (
              <Loading />
            ))}
          {tab === 'timeline' && <TimelineTab digest={d} view={view} set={set} />}
          {tab === 'steps' && <StepsTab digest={d} graph={graph.data} view={view} set={set} />}
          {tab === 'events' && <EventsTab digest={d} view={view} set={set} />}
          {tab === 'values' && <ValuesTab task={task} />}
          {tab === 'logs' && <LogView task={task} tall />}
        </div>
        {view.node !== undefined && (
          <Inspector
            digest={d}
            graph={graph.data}
            scope={view.scope ?? ''}
            node={view.node}
            unit={view.unit}
            set={set}
          />
        )}
      </div>
    </div>
  )
}

/** firstFailed returns where a task failed: the innermost failed node that is known. */
function firstFailed(
  d: NonNullable<ReturnType<typeof useDigest>['data']>,
): { scope: string; node: string } | undefined {
  for (const scope of [...d.scopes].reverse()) {
    if (scope.scope.startsWith('~')) continue
    const i = scope.state.indexOf(3)
    if (i >= 0) return { scope: scope.scope, node: scope.nodes[i] }
  }
  return undefined
}
