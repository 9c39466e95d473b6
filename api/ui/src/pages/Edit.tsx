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

const route = getRouteApi('/edit/$flow')

/** A flow as it is written, checked, tried and published, in one page. */
export function Edit() {
  const { flow } = route.useParams()
  const latest = useQuery({ queryKey: ['latest', flow], refetchInterval: 15_000, queryFn: ({ signal }) => latestOf(flow, signal) })
  if (latest.isError && !latest.data) return <div className="page"><Trouble error={latest.error} again={() => void latest.refetch()} /></div>
  return latest.data ? <Editing key={flow} flow={flow} latest={latest.data} again={() => void latest.refetch()} /> : <Loading />
}

const none: Latest = { number: 0, json: '' }

/** One that has no name yet. */
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

  const input = draft.input ?? JSON.stringify(Object.fromEntries(referred(draft.text).map(k => [k, null])))
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

  const put = (snippet: string) => {
    const { at, insert, select } = inserted(draft.text, line, snippets[snippet])
    editor.current?.put(at, insert, select)
  }
  const replace = (text: string) => editor.current?.set(text)
  const selected = nodeAt(graph, lines, line)
  return (
    <div className="page edit">
      <div className="head">
        <h1>{flow || 'A new flow'}</h1>
        <span className="faint" role="status">{latest.number > 0 ? `published v${latest.number}` : 'not published'}{changed ? ', changed' : ''}</span>
        {!flow && <label className="inline">name <input value={name} onChange={e => setName(e.target.value)} placeholder="order" pattern="[a-z0-9][a-z0-9._-]{0,127}" spellCheck={false} /></label>}
        <div className="acts" role="group" aria-label="What can be done">
          <select value="" onChange={e => put(e.target.value)} disabled={looksLikeJSON(draft.text)} aria-label="Put in a node" title="Put in a node, behind the one you are in">
            <option value="" disabled>Put in …</option>{Object.keys(snippets).map(s => <option key={s}>{s}</option>)}
          </select>
          {latest.number > 0 && <button aria-pressed={diff} onClick={() => setDiff(!diff)} title="What is changed, compared with what is published">Diff</button>}
          {changed && latest.number > 0 && <button onClick={() => replace(publishedAs({ ...draft, text: '' }, latest))} title="Back to what is published; Ctrl+Z takes that back">Discard</button>}
          <May call="POST /v1/try"><button disabled={tryIt.isPending} onClick={tried} title="Start a task of this without publishing it (Ctrl+Enter)"><Icon name="play" /> Try</button></May>
          <May call="PUT /v1/flows/{flow}"><button className="primary" disabled={!slug || !changed || !current || check.data?.valid === false || publish.isPending} onClick={() => publish.mutate({ slug, text: draft.text, after: draft.after })}>Publish v{latest.number + 1}</button></May>
        </div>
      </div>
      {overtaken && (
        <div className="wait" role="alert">
          <Icon name="alert" /> Version {latest.number} was published meanwhile; this began with {draft.after || 'none'}.
          <button onClick={() => setDiff(true)}>See what differs</button>
          <button onClick={() => publish.mutate({ slug, text: draft.text, after: latest.number })} disabled={check.data?.valid === false}>Publish mine as v{latest.number + 1}</button>
          <button onClick={() => { const text = publishedAs({ ...draft, text: '' }, latest); replace(text); change({ text, published: text, after: latest.number }) }}>Take v{latest.number} instead</button>
        </div>
      )}
      {publish.isError && <Trouble error={publish.error} />}
      <div className="edit-split">
        <section className="panel edit-text" aria-label="Definition">
          <Code label={`Definition of ${flow || 'a new flow'}, YAML or JSON`} start={start} editor={editor} told={{ changed: text => change({ text }), line: setLine, tried }} />
          <Problems list={problems} current={current} error={check.error} go={p => editor.current?.go(p.line ?? 1, p.column, true)} />
          <p className="faint edit-keys"><kbd>Tab</kbd> leaves the text, <kbd>Ctrl</kbd> <kbd>]</kbd> indents, <kbd>Ctrl</kbd> <kbd>Space</kbd> offers what fits, <kbd>Ctrl</kbd> <kbd>Enter</kbd> tries</p>
        </section>
        <section className="panel edit-side" aria-label="Plan">
          <div className="edit-tabs">
            <button aria-pressed={shown === 'plan'} onClick={() => setShown('plan')}>Plan</button>
            <button aria-pressed={shown === 'try'} onClick={() => setShown('try')}>Try</button>
          </div>
          {shown === 'try' && (
            <label className="try-input">Input of the task, as JSON<textarea rows={3} value={input} onChange={e => change({ input: e.target.value })} spellCheck={false} /></label>
          )}
          {shown === 'plan' ? (graph ? <div className="plan"><PlanGraph graph={graph} wrong={troubled(graph, problems)} selected={selected} select={i => editor.current?.go(graph.nodes[i].line ?? 1, graph.nodes[i].column)} /></div> : <p className="loading">Nothing can be drawn yet.</p>)
            : tryIt.isError ? <Trouble error={tryIt.error} />
            : tryIt.data ? <Tried key={tryIt.data.id} made={tryIt.data} />
            : <p className="loading">A try starts a task of what is written here, and publishes nothing.</p>}
        </section>
      </div>
    </div>
  )
}
