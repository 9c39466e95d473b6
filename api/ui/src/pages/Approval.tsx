import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { ApprovalAnswer, AnsweredApproval, ApprovalDetails, ApprovalValue } from '../api.gen'
import { answersAs, setAnswersAs } from '../data/approvals'
import { call } from '../data/call'
import { useMay } from '../data/me'
import { Fields } from '../flow/Fields'
import { fieldsOf, paramsOf } from '../flow/inputs'
import { Icon } from '../parts/Icon'
import { Empty, Loading, Trouble } from '../parts/Told'
import { Part, Value, type Wrapped } from '../parts/Value'
import { Since, useTick, When } from '../parts/When'
import { Rich } from '../parts/Rich'
import { texts } from '../texts'

const t = texts.approval

/**
 * Approval asks a person for one decision. The page is designed for a phone, and its user need not
 * know about flows.
 */
export function Approval() {
  const { approval } = useParams({ strict: false }) as { approval: string }
  const answers = useMay()('POST /v1/approvals/{approval}')
  return <Decide key={approval} id={approval} answers={answers} />
}

/**
 * Linked is Approval for a user with a link. The token behind the # of the address allows an answer
 * to this approval and nothing else.
 */
export function Linked() {
  const { approval } = useParams({ strict: false }) as { approval: string }
  return (
    <main id="page" className="linked">
      <Decide key={approval} id={approval} answers token={location.hash.slice(1)} />
    </main>
  )
}

function Decide({ id, answers, token }: { id: string; answers: boolean; token?: string }) {
  useTick()
  const queries = useQueryClient()
  const path = { approval: id },
    header = { 'Troupe-Link': token ?? '' }
  const key = ['approval', id, token]
  const found = useQuery({
    queryKey: key,
    refetchInterval: 5000,
    queryFn: ({ signal }) =>
      token === undefined
        ? call('GET /v1/approvals/{approval}', { path, query: { values: 'preview' } }, signal)
        : call(
            'GET /v1/approve/{approval}',
            { path, header, query: { values: 'preview' } },
            signal,
          ),
  })
  const act = useMutation({
    mutationFn: (body: ApprovalAnswer) =>
      token === undefined
        ? call('POST /v1/approvals/{approval}', { path, body })
        : call('POST /v1/approve/{approval}', { path, header, body }),
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: key }),
        queries.invalidateQueries({ queryKey: ['approvals'] }),
      ]),
  })
  if (found.isError && !found.data)
    return (
      <div className="page">
        <Trouble error={found.error} again={() => void found.refetch()} />
      </div>
    )
  if (!found.data) return <Loading />
  const q = found.data
  const flow =
    token === undefined ? (
      <Link to="/flows/$flow" params={{ flow: q.flow }}>
        {q.flow}
      </Link>
    ) : (
      q.flow
    )
  return (
    <div className="page approval">
      {token === undefined && (
        <p>
          <Link to="/approvals">{t.list}</Link>
        </p>
      )}
      <div className="panel">
        <h1>{q.title || t.title(q.node)}</h1>
        <p className="faint">
          <Rich text={t.flow} parts={{ flow }} />
          {token === undefined && (
            <>
              ,{' '}
              <Link to="/tasks/$task" params={{ task: q.task }}>
                {t.task}
              </Link>
            </>
          )}
          , <Rich text={t.waiting} parts={{ time: <Since at={q.waiting_since} /> }} />
          {q.deadline && q.state === 'open' && (
            <>
              , <Rich text={t.due} parts={{ time: <When at={q.deadline} /> }} />
            </>
          )}
          {q.assignees && <>, {t.assignees(q.assignees)}</>}
        </p>
        {q.text && <p className="asked">{q.text}</p>}
        {q.values?.map(v => (
          <section key={v.name} aria-label={v.name}>
            <h2>{v.name}</h2>
            <Shown of={v} task={token === undefined ? q.task : undefined} />
          </section>
        ))}
        {act.data || q.state !== 'open' ? (
          <Outcome of={act.data ?? q} />
        ) : !answers ? (
          <p className="faint">{t.forbidden}</p>
        ) : (
          <Answers question={q} fixed={q.name} busy={act.isPending} send={a => act.mutate(a)} />
        )}
        {act.isError && <Trouble error={act.error} />}
      </div>
    </div>
  )
}

/** Shown shows a value of the task. A user with only a link cannot read all of a large value. */
function Shown({ of, task }: { of: ApprovalValue; task?: string }) {
  if (task)
    return <Part of={of.value} label={of.name} all={`/v1/tasks/${encodeURIComponent(task)}`} />
  const told = of.value as Wrapped
  return <Value of={told.truncated ? `${told.preview} …` : told.value} label={of.name} />
}

/** Outcome shows the decision and its author. Another user may have answered first. */
function Outcome({ of }: { of: AnsweredApproval | ApprovalDetails }) {
  if (of.state === 'ended') return <Empty title={t.undecided}>{t.undecidedText}</Empty>
  return (
    <div role="status" className="outcome">
      <p>
        {'accepted' in of && !of.accepted && t.conflict}
        <strong>{of.action || t.answered}</strong>
        {t.by(of.answered_by)}
        <When at={of.ended_at} />
      </p>
      {of.comment && <p className="asked">{of.comment}</p>}
    </div>
  )
}

function Answers({
  question: q,
  fixed,
  busy,
  send,
}: {
  question: ApprovalDetails
  fixed?: string
  busy: boolean
  send: (a: ApprovalAnswer) => void
}) {
  const fields = q.form === undefined ? undefined : fieldsOf(q.form)
  const [form, setForm] = useState<Record<string, string>>(() =>
    Object.fromEntries((fields ?? []).map(f => [f.name, f.start])),
  )
  const [text, setText] = useState(''),
    [comment, setComment] = useState(''),
    [by, setBy] = useState(answersAs)
  const made = paramsOf(fields, form, text)
  const answer = (a: ApprovalAnswer) => {
    if (!fixed) setAnswersAs(by)
    send({ ...a, comment: comment || undefined, answered_by: fixed ? undefined : by || undefined })
  }
  return (
    <form
      className="start-form"
      onSubmit={e => {
        e.preventDefault()
        if (q.form !== undefined && !made.wrong) answer({ value: made.params })
      }}
    >
      {fields && <Fields fields={fields} form={form} set={setForm} />}
      {q.form !== undefined && !fields && (
        <label>
          {t.answer}
          <textarea
            rows={4}
            value={text}
            onChange={e => setText(e.target.value)}
            spellCheck={false}
            required
          />
        </label>
      )}
      <label>
        {t.comment}
        <textarea
          rows={2}
          value={comment}
          onChange={e => setComment(e.target.value)}
          maxLength={2000}
        />
      </label>
      {fixed ? (
        <p className="faint">{t.fixedName(fixed)}</p>
      ) : (
        <label>
          {t.name}
          <input
            value={by}
            onChange={e => setBy(e.target.value)}
            maxLength={200}
            autoComplete="name"
          />
        </label>
      )}
      {q.form !== undefined && made.wrong && <p className="failure">{made.wrong}</p>}
      <div className="answers">
        {q.form !== undefined ? (
          <button className="primary" disabled={busy || Boolean(made.wrong)}>
            {t.send}
          </button>
        ) : (
          q.actions?.map(action => (
            <Choice key={action} action={action} busy={busy} choose={() => answer({ action })} />
          ))
        )}
      </div>
    </form>
  )
}

function Choice({ action, busy, choose }: { action: string; busy: boolean; choose: () => void }) {
  const known = { approved: [t.approve, 'check'], rejected: [t.reject, 'cross'] } as const
  const [word, icon] = known[action as keyof typeof known] ?? [action, undefined]
  return (
    <button
      type="button"
      className={action === 'approved' ? 'primary' : undefined}
      disabled={busy}
      onClick={choose}
    >
      {icon && <Icon name={icon} size={14} />} {word}
    </button>
  )
}
