import { useState } from 'react'
import type { Unit } from '../api.gen'
import { useAct } from '../data/acts'
import { useMay } from '../data/me'
import { nodeNow, planned, type Digest } from '../data/digest'
import type { Graph } from '../data/plan'
import type { TaskView } from '../data/search'
import { isOver, useStep, useUnits, useUnitStates, valueAt } from '../data/task'
import { exact, now, span } from '../data/time'
import { Icon } from '../parts/Icon'
import { State, stateOf } from '../parts/State'
import { Loading, Trouble } from '../parts/Told'
import { Part } from '../parts/Value'
import { useTick } from '../parts/When'
import { LogView } from './Logs'
import { wordNow } from './TaskGraph'
import { UnitMap } from './UnitMap'
import { texts } from '../texts'

const t = texts.step

interface Props {
  digest: Digest
  graph?: Graph
  scope: string
  node: string
  unit?: number
  set: (v: Partial<TaskView>) => void
}

/**
 * Inspector shows everything about one step: its state and the reason, its units, its input and
 * output, and its log.
 */
export function Inspector({ digest, graph, scope, node, unit, set }: Props) {
  useTick()
  const at = digest.scopes.find(s => s.scope === scope)
  const i = at?.nodes.indexOf(node) ?? -1
  const here = at && i >= 0 ? nodeNow(digest, at, i) : undefined
  const plan = graph?.nodes.find(n => n.key === node && (n.scope ?? '') === planned(scope))
  const begun = (here?.visit ?? 0) > 0
  const step = useStep(digest.task, scope, node, begun)
  return (
    <aside className="split-side panel" aria-label={t.title(node)}>
      <div className="side-head">
        <h2>{node}</h2>
        <State state={wordNow(here)} />
        <button
          className="quiet"
          onClick={() => set({ node: undefined, scope: undefined, unit: undefined })}
          aria-label={texts.close}
          title={texts.closeKey}
        >
          <Icon name="cross" />
        </button>
      </div>
      {scope && <p className="faint mono">{scope}</p>}
      <dl className="about">
        {plan && (
          <div>
            <dt>{t.kind}</dt>
            <dd>
              {plan.kind}
              {plan.handler ? ` · ${plan.handler}` : ''}
            </dd>
          </div>
        )}
        {plan?.each && (
          <div>
            <dt>{t.each}</dt>
            <dd>
              <code>{plan.each}</code>
            </dd>
          </div>
        )}
        {plan?.when && (
          <div>
            <dt>{t.when}</dt>
            <dd>
              <code>{plan.when}</code>
            </dd>
          </div>
        )}
        {plan?.retry && (
          <div>
            <dt>{t.retry}</dt>
            <dd>{plan.retry}</dd>
          </div>
        )}
        {plan?.compensate && (
          <div>
            <dt>{t.compensate}</dt>
            <dd>{plan.compensate}</dd>
          </div>
        )}
        {here?.entered !== undefined && (
          <div>
            <dt>{t.started}</dt>
            <dd>{exact(here.entered)}</dd>
          </div>
        )}
        {here?.entered !== undefined && (
          <div>
            <dt>{t.took}</dt>
            <dd>{span((here.ended ?? now()) - here.entered)}</dd>
          </div>
        )}
        {here && here.visit > 1 && (
          <div>
            <dt>{t.visits}</dt>
            <dd>{here.visit}</dd>
          </div>
        )}
        {here?.reason && (
          <div>
            <dt>{t.reason}</dt>
            <dd>{here.reason}</dd>
          </div>
        )}
        {step.data?.waiting_for && (
          <div>
            <dt>{t.waitsFor}</dt>
            <dd>{step.data.waiting_for.join(', ')}</dd>
          </div>
        )}
        {step.data?.action && (
          <div>
            <dt>{t.action}</dt>
            <dd>{step.data.action}</dd>
          </div>
        )}
      </dl>
      {(here?.error || step.data?.error) && (
        <p className="failure">
          <Icon name="alert" /> <span>{step.data?.error || here?.error}</span>
        </p>
      )}
      <StepActs
        digest={digest}
        scope={scope}
        node={node}
        failed={here?.state === 'failed'}
        held={here?.held ?? false}
        begun={begun}
      />
      {!begun ? (
        <p className="faint">{t.notStarted}</p>
      ) : step.isLoadingError ? (
        <Trouble error={step.error} again={() => void step.refetch()} />
      ) : step.isPending ? (
        <Loading />
      ) : (
        <>
          {step.data?.output !== undefined && (
            <section>
              <h3>{t.output}</h3>
              <Part
                of={step.data.output}
                label={t.outputLabel}
                all={valueAt(digest.task, { of: 'output', scope, step: node })}
              />
            </section>
          )}
          <Units
            key={`${scope}\n${node}`}
            task={digest.task}
            scope={scope}
            node={node}
            error={step.data?.error}
            total={here?.total ?? 0}
            failed={here?.failed ?? 0}
            chosen={unit}
            set={set}
          />
          <LogView
            task={digest.task}
            node={[...planned(scope).split('/').filter(Boolean), node].join('/')}
            unit={unit}
          />
        </>
      )}
    </aside>
  )
}

function StepActs({
  digest,
  scope,
  node,
  failed,
  held,
  begun,
}: {
  digest: Digest
  scope: string
  node: string
  failed: boolean
  held: boolean
  begun: boolean
}) {
  const act = useAct(digest.task)
  const may = useMay()
  const body = { step: node, scope: scope || undefined }
  const dag = digest.mode === 'dag' && !scope
  if (!may('POST /v1/tasks/{task}/hold')) return null
  return (
    <div className="acts">
      {dag && failed && digest.state === 'failed' && (
        <button
          disabled={act.isPending}
          onClick={() => act.mutate({ act: 'retry', did: t.retried(node), body: { step: node } })}
        >
          <Icon name="retry" size={14} /> {t.retryStep}
        </button>
      )}
      {dag && !begun && !held && !isOver(stateOf(digest)) && (
        <button
          disabled={act.isPending}
          onClick={() => act.mutate({ act: 'hold', did: t.held(node), body })}
        >
          <Icon name="pause" size={14} /> {t.hold}
        </button>
      )}
      {held && (
        <button
          className="primary"
          disabled={act.isPending}
          onClick={() => act.mutate({ act: 'release', did: texts.waits.released(node), body })}
        >
          <Icon name="play" size={14} /> {texts.waits.release}
        </button>
      )}
    </div>
  )
}

/** Units lists the units of a step, with quick access to the failed ones. */
function Units({
  task,
  scope,
  node,
  error,
  total,
  failed,
  chosen,
  set,
}: {
  task: string
  error?: string
  scope: string
  node: string
  total: number
  failed: number
  chosen?: number
  set: (v: Partial<TaskView>) => void
}) {
  const [only, setOnly] = useState(failed > 0),
    [from, setFrom] = useState<number>()
  const units = useUnits(task, scope, node, only && failed > 0 ? 'failed' : undefined, from)
  const states = useUnitStates(task, scope, node, total > 1)
  const items = units.data?.items ?? []
  if (items.length === 0) return null
  if (total <= 1)
    return <UnitFacts task={task} scope={scope} step={node} unit={items[0]} told={error} />
  return (
    <section>
      <h3>{t.units}</h3>
      {states.data && (
        <UnitMap
          states={states.data}
          choose={u => {
            setOnly(false)
            setFrom(u)
            set({ unit: u })
          }}
        />
      )}
      {failed > 0 && (
        <div className="segments">
          <button
            className={only ? 'here' : ''}
            aria-pressed={only}
            onClick={() => {
              setOnly(true)
              setFrom(undefined)
            }}
          >
            {t.failedUnits(failed)}
          </button>
          <button
            className={only ? '' : 'here'}
            aria-pressed={!only}
            onClick={() => {
              setOnly(false)
              setFrom(undefined)
            }}
          >
            {t.allUnits(total)}
          </button>
        </div>
      )}
      <ul className="units">
        {items.map(u => (
          <li key={u.unit}>
            <button
              className="unit"
              aria-expanded={u.unit === chosen}
              onClick={() => set({ unit: u.unit === chosen ? undefined : u.unit })}
            >
              <span className="mono">{u.name ?? u.unit}</span>
              <State state={u.state} />
              <span className="tone-failed ellipsis">{u.error}</span>
              {(u.attempt ?? 1) > 1 && <span className="faint">{t.attempt(u.attempt ?? 1)}</span>}
            </button>
            {u.unit === chosen && <UnitFacts task={task} scope={scope} step={node} unit={u} />}
          </li>
        ))}
      </ul>
      {units.data?.next && (
        <p className="table-tools">
          <span className="faint">{t.page(items.length, total)}</span>
          <button onClick={() => setFrom(items[items.length - 1].unit + 1)}>{t.next}</button>
        </p>
      )}
    </section>
  )
}

function UnitFacts({
  task,
  scope,
  step,
  unit: u,
  told,
}: {
  task: string
  scope: string
  step: string
  unit: Unit
  told?: string
}) {
  const all = (of: string) => valueAt(task, { of, scope, step, unit: u.unit })
  return (
    <div className="unit-facts">
      <dl className="about">
        {u.worker && (
          <div>
            <dt>{t.worker}</dt>
            <dd>{u.worker}</dd>
          </div>
        )}
        {u.attempt !== undefined && u.attempt > 1 && (
          <div>
            <dt>{t.attemptLabel}</dt>
            <dd>{u.attempt}</dd>
          </div>
        )}
        {u.retry_at && (
          <div>
            <dt>{t.retryAt}</dt>
            <dd>{exact(u.retry_at)}</dd>
          </div>
        )}
        {u.status_text && (
          <div>
            <dt>{t.note}</dt>
            <dd>{u.status_text}</dd>
          </div>
        )}
      </dl>
      {u.error && u.error !== told && (
        <p className="failure">
          <Icon name="alert" /> <span>{u.error}</span>
        </p>
      )}
      {u.details !== undefined && (
        <>
          <h3>{t.details}</h3>
          <Part of={u.details} label={t.detailsLabel} all={all('details')} />
        </>
      )}
      {u.input !== undefined && (
        <>
          <h3>{t.input}</h3>
          <Part of={u.input} label={t.inputLabel} all={all('input')} />
        </>
      )}
      {u.output !== undefined && (
        <>
          <h3>{t.output}</h3>
          <Part of={u.output} label={t.outputLabel} all={all('output')} />
        </>
      )}
    </div>
  )
}
