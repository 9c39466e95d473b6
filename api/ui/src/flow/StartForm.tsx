import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import { May } from '../data/me'
import { useVersion } from '../data/task'
import { useDryRun } from '../parts/DryRun'
import { Loading, Trouble } from '../parts/Told'
import { When } from '../parts/When'
import { Fields } from './Fields'
import { fieldsOf, paramsOf, referred, type Field } from './inputs'
import { stringify } from '../data/json'
import { texts } from '../texts'

const t = texts.start

/**
 * StartForm starts a task. It shows a form if the flow declares its inputs. Otherwise it shows JSON
 * that begins with the params that the plan refers to.
 */
export function StartForm({
  flow,
  version,
  newest,
}: {
  flow: string
  version: number
  newest: boolean
}) {
  const found = useVersion(flow, version)
  const recent = useQuery({
    queryKey: ['recent', flow],
    queryFn: ({ signal }) => recentParams(flow, signal),
  })
  if (found.isError) return <Trouble error={found.error} />
  if (!found.data || recent.isPending) return <Loading />
  const fields = fieldsOf(found.data.inputs)
  return (
    <Form
      flow={flow}
      version={newest ? undefined : version}
      fields={fields}
      keys={referred(found.data.definition)}
      recent={recent.data ?? []}
    />
  )
}

interface Recent {
  id: string
  at: string
  params: unknown
}

async function recentParams(flow: string, signal: AbortSignal): Promise<Recent[]> {
  const tasks = await call('GET /v1/tasks', { query: { flow: [flow], limit: 5 } }, signal)
  return Promise.all(
    tasks.items.map(async ({ id, created_at: at }) => {
      const { params } = await call('GET /v1/tasks/{task}', { path: { task: id } }, signal)
      return { id, at, params }
    }),
  )
}

function Form({
  flow,
  version,
  fields,
  keys,
  recent,
}: {
  flow: string
  version?: number
  fields?: Field[]
  keys: string[]
  recent: Recent[]
}) {
  const go = useNavigate()
  const [form, setForm] = useState<Record<string, string>>(() =>
    Object.fromEntries((fields ?? []).map(f => [f.name, f.start])),
  )
  const [text, setText] = useState(() =>
    JSON.stringify(Object.fromEntries(keys.map(k => [k, null])), null, 2),
  )
  const [labels, setLabels] = useState(''),
    [key, setKey] = useState('')
  const sent = useMemo(() => paramsOf(fields, form, text), [fields, form, text])
  const marks = Object.fromEntries(
    labels
      .split(',')
      .map(l => l.trim())
      .filter(l => l.includes(':'))
      .map(l => [l.slice(0, l.indexOf(':')), l.slice(l.indexOf(':') + 1)]),
  )
  const body = {
    flow,
    ...(version ? { version } : {}),
    params: sent.params,
    ...(Object.keys(marks).length > 0 ? { labels: marks } : {}),
  }
  const dry = useDryRun(
    { version, params: sent.params },
    async () => (await call('POST /v1/tasks', { body: { ...body, dry_run: true } })).preview,
    Boolean(sent.wrong),
  )
  const start = useMutation({
    mutationFn: () =>
      call('POST /v1/tasks', { body: { ...body, idempotency_key: key || requestID() } }),
    onSuccess: made => {
      note({ text: made.created ? t.started : t.existing, task: made.id })
      if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } })
    },
  })
  const curl = `curl -H 'Content-Type: application/json' -d '${stringify(body).replaceAll("'", "'\\''")}' ${location.origin}/v1/tasks`
  return (
    <form
      className="start"
      onSubmit={e => {
        e.preventDefault()
        if (!sent.wrong) start.mutate()
      }}
    >
      <div className="start-form">
        {fields ? (
          <Fields fields={fields} form={form} set={setForm} />
        ) : (
          <label>
            {texts.params.json}
            <textarea
              rows={10}
              value={text}
              onChange={e => setText(e.target.value)}
              spellCheck={false}
            />
          </label>
        )}
        <details>
          <summary>{t.options}</summary>
          <label>
            {t.labels}
            <input
              value={labels}
              onChange={e => setLabels(e.target.value)}
              placeholder={t.labelsExample}
              spellCheck={false}
            />
          </label>
          <label>
            {t.key}
            <input value={key} onChange={e => setKey(e.target.value)} spellCheck={false} />
          </label>
        </details>
        {sent.wrong && <p className="failure">{sent.wrong}</p>}
        {start.isError && <Trouble error={start.error} />}
        <div className="buttons left">
          <May call="POST /v1/tasks">
            <button className="primary" disabled={Boolean(sent.wrong) || start.isPending}>
              {t.start}
            </button>
            {dry.button}
          </May>
        </div>
        {dry.told}
        <details>
          <summary>{t.curl}</summary>
          <pre className="log" tabIndex={0}>
            {curl}
          </pre>
        </details>
      </div>
      {recent.length > 0 && (
        <section className="start-recent" aria-label={t.recent}>
          <h2>{t.recent}</h2>
          {recent.map(r => (
            <button
              type="button"
              key={r.id}
              className="preset"
              onClick={() => {
                setText(stringify(r.params, 2))
                if (fields)
                  setForm(
                    Object.fromEntries(
                      fields.map(f => [
                        f.name,
                        f.text((r.params as Record<string, unknown> | null)?.[f.name]),
                      ]),
                    ),
                  )
              }}
            >
              <code className="ellipsis">{stringify(r.params)}</code>
              <span className="faint">
                <When at={r.at} />
              </span>
            </button>
          ))}
        </section>
      )}
    </form>
  )
}
