import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Code } from '../edit/Code'
import { keepDraft } from '../edit/drafts'
import { looksLikeJSON, type Editor } from '../edit/editor'
import { PlanGraph } from '../edit/PlanGraph'
import { Problems } from '../edit/Problems'
import { inserted, snippets } from '../edit/snippets'
import { nodeAt, troubled } from '../edit/spots'
import { Tried } from '../edit/Tried'
import { latestOf, publishedAs, useCheck, useDraft, useSchema, type Latest } from '../edit/useDraft'
import { usePublish, useTry } from '../edit/useOrders'
import { referred } from '../flow/inputs'
import { May } from '../data/me'
import { Icon } from '../parts/Icon'
import { Loading, Trouble } from '../parts/Told'
import { Rich } from '../parts/Rich'
import { texts } from '../texts'

const t = texts.edit

const route = getRouteApi('/edit/$flow')

/** Edit writes, checks, tries and publishes a flow on one page. */
export function Edit() {
  const { flow } = route.useParams()
  const latest = useQuery({
    queryKey: ['latest', flow],
    refetchInterval: 15_000,
    queryFn: ({ signal }) => latestOf(flow, signal),
  })
  if (latest.isError && !latest.data)
    return (
      <div className="page">
        <Trouble error={latest.error} again={() => void latest.refetch()} />
      </div>
    )
  return latest.data ? (
    <Editing key={flow} flow={flow} latest={latest.data} again={() => void latest.refetch()} />
  ) : (
    <Loading />
  )
}

const hintKeys = Object.fromEntries(
  ['Tab', 'Ctrl', 'Space', 'Enter', ']'].map(key => [key, <kbd key={key}>{key}</kbd>]),
)

const none: Latest = { number: 0, json: '' }

/** EditNew edits a flow that has no name yet. */
export function EditNew() {
  return <Editing flow="" latest={none} again={() => undefined} />
}

function Editing({ flow, latest, again }: { flow: string; latest: Latest; again: () => void }) {
  const go = useNavigate()
  const editor = useRef<Editor>(undefined)
  const [draft, change] = useDraft(flow, latest)
  const [start] = useState(draft.text)
  const [name, setName] = useState('')
  const [line, setLine] = useState(1)
  const [diff, setDiff] = useState(false)
  const [shown, setShown] = useState<'plan' | 'try'>('plan')
  const slug = flow || name
  const { check, graph, current } = useCheck(draft.text, flow || undefined)
  const schema = useSchema()
  const problems = check.data?.problems ?? []
  const lines = draft.text.split('\n')
  const overtaken = latest.number > draft.after
  const changed = draft.text !== draft.published

  const input =
    draft.input ?? JSON.stringify(Object.fromEntries(referred(draft.text).map(k => [k, null])))
  const tryIt = useTry()
  const publish = usePublish(again, version => {
    const kept = { ...draft, published: draft.text, after: version }
    if (flow) return change(kept)
    keepDraft('', undefined)
    keepDraft(slug, kept)
    void go({ to: '/edit/$flow', params: { flow: slug } })
  })
  const tried = () => {
    setShown('try')
    tryIt.mutate({ text: editor.current!.text(), slug, input })
  }

  useEffect(() => editor.current?.problems(problems), [check.data])
  useEffect(() => editor.current?.know(schema, graph?.nodes.map(n => n.key) ?? []), [schema, graph])
  const published = diff ? publishedAs(draft, latest) : undefined
  useEffect(() => editor.current?.beside(published), [published])

  const put = (snippet: keyof typeof snippets) => {
    const { at, insert, select } = inserted(draft.text, line, snippets[snippet])
    editor.current?.put(at, insert, select)
  }
  const replace = (text: string) => editor.current?.set(text)
  const selected = nodeAt(graph, lines, line)
  return (
    <div className="page edit">
      <div className="head">
        <h1>{flow || t.create}</h1>
        <span className="faint" role="status">
          {t.status(latest.number, changed)}
        </span>
        {!flow && (
          <label className="inline">
            {t.name}{' '}
            <input
              value={name}
              onChange={e => setName(e.target.value)}
              placeholder={t.nameExample}
              pattern="[a-z0-9][a-z0-9._-]{0,127}"
              spellCheck={false}
            />
          </label>
        )}
        <div className="acts" role="group" aria-label={texts.actions}>
          <select
            value=""
            onChange={e => put(e.target.value as keyof typeof snippets)}
            disabled={looksLikeJSON(draft.text)}
            aria-label={t.insertNode}
            title={t.insertTitle}
          >
            <option value="" disabled>
              {t.insert}
            </option>
            {(Object.keys(snippets) as (keyof typeof snippets)[]).map(s => (
              <option key={s} value={s}>
                {t.snippets[s]}
              </option>
            ))}
          </select>
          {latest.number > 0 && (
            <button aria-pressed={diff} onClick={() => setDiff(!diff)} title={t.diffTitle}>
              {t.diff}
            </button>
          )}
          {changed && latest.number > 0 && (
            <button
              onClick={() => replace(publishedAs({ ...draft, text: '' }, latest))}
              title={t.discardTitle}
            >
              {t.discard}
            </button>
          )}
          <May call="POST /v1/try">
            <button disabled={tryIt.isPending} onClick={tried} title={t.tryTitle}>
              <Icon name="play" /> {t.try}
            </button>
          </May>
          <May call="PUT /v1/flows/{flow}">
            <button
              className="primary"
              disabled={
                !slug || !changed || !current || check.data?.valid === false || publish.isPending
              }
              onClick={() => publish.mutate({ slug, text: draft.text, after: draft.after })}
            >
              {t.publish(latest.number + 1)}
            </button>
          </May>
        </div>
      </div>
      {overtaken && (
        <div className="wait" role="alert">
          <Icon name="alert" /> {t.overtaken(latest.number, draft.after)}
          <button onClick={() => setDiff(true)}>{t.showDiff}</button>
          <button
            onClick={() => publish.mutate({ slug, text: draft.text, after: latest.number })}
            disabled={check.data?.valid === false}
          >
            {t.publishMine(latest.number + 1)}
          </button>
          <button
            onClick={() => {
              const text = publishedAs({ ...draft, text: '' }, latest)
              replace(text)
              change({ text, published: text, after: latest.number })
            }}
          >
            {t.takeTheirs(latest.number)}
          </button>
        </div>
      )}
      {publish.isError && <Trouble error={publish.error} />}
      <div className="edit-split">
        <section className="panel edit-text" aria-label={t.definition}>
          <Code
            label={t.definitionOf(flow || t.newFlow)}
            start={start}
            editor={editor}
            told={{ changed: text => change({ text }), line: setLine, tried }}
          />
          <Problems
            list={problems}
            current={current}
            error={check.error}
            go={p => editor.current?.go(p.line ?? 1, p.column, true)}
          />
          <p className="faint edit-keys">
            <Rich text={t.hints} parts={hintKeys} />
          </p>
        </section>
        <section className="panel edit-side" aria-label={t.plan}>
          <div className="edit-tabs">
            <button aria-pressed={shown === 'plan'} onClick={() => setShown('plan')}>
              {t.plan}
            </button>
            <button aria-pressed={shown === 'try'} onClick={() => setShown('try')}>
              {t.try}
            </button>
          </div>
          {shown === 'try' && (
            <label className="try-input">
              {t.params}
              <textarea
                rows={3}
                value={input}
                onChange={e => change({ input: e.target.value })}
                spellCheck={false}
              />
            </label>
          )}
          {shown === 'plan' ? (
            graph ? (
              <div className="plan">
                <PlanGraph
                  graph={graph}
                  wrong={troubled(graph, problems)}
                  selected={selected}
                  select={i => editor.current?.go(graph.nodes[i].line ?? 1, graph.nodes[i].column)}
                />
              </div>
            ) : (
              <p className="loading">{t.invalid}</p>
            )
          ) : tryIt.isError ? (
            <Trouble error={tryIt.error} />
          ) : tryIt.data ? (
            <Tried key={tryIt.data.id} made={tryIt.data} />
          ) : (
            <p className="loading">{t.tryHint}</p>
          )}
        </section>
      </div>
    </div>
  )
}
