import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import type { Digest } from '../data/digest'
import { paramsOf } from '../flow/inputs'
import { Ask } from '../parts/Ask'
import { useDryRun } from '../parts/DryRun'
import { Loading, Trouble } from '../parts/Told'
import { stringify } from '../data/json'
import { texts } from '../texts'

const t = texts.rerun

/**
 * RerunAsk starts a task that repeats another one, with its params or other ones. A task of a draft
 * can use no newer version, because none is published.
 */
export function RerunAsk({
  digest: d,
  tried,
  close,
}: {
  digest: Digest
  tried: boolean
  close: () => void
}) {
  const go = useNavigate()
  const [newest, setNewest] = useState(!tried)
  const [others, setOthers] = useState(false),
    [text, setText] = useState<string>()
  const old = useQuery({
    queryKey: ['task', d.task, 'params'],
    enabled: others,
    queryFn: async ({ signal }) =>
      stringify((await call('GET /v1/tasks/{task}', { path: { task: d.task } }, signal)).params, 2),
  })
  const sent = others && text !== undefined ? paramsOf(undefined, {}, text) : {}
  const body = { latest: newest, ...('params' in sent ? { params: sent.params } : {}) }
  const path = { task: d.task }
  const dry = useDryRun(
    body,
    async () =>
      (await call('POST /v1/tasks/{task}/rerun', { path, body: { ...body, dry_run: true } }))
        .preview,
    Boolean(sent.wrong),
  )
  const start = useMutation({
    mutationFn: () =>
      call('POST /v1/tasks/{task}/rerun', {
        path,
        body: { ...body, idempotency_key: requestID() },
      }),
    onSuccess: made => {
      note({ text: t.started('params' in sent, newest), task: made.id })
      close()
      if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } })
    },
  })
  return (
    <Ask title={t.title} close={close}>
      {!tried && (
        <div className="ways" role="radiogroup" aria-label={texts.version}>
          <label className="way">
            <input type="radio" name="version" checked={newest} onChange={() => setNewest(true)} />
            <span>{t.newest}</span>
          </label>
          <label className="way">
            <input
              type="radio"
              name="version"
              checked={!newest}
              onChange={() => setNewest(false)}
            />
            <span>{t.same(d.version)}</span>
          </label>
        </div>
      )}
      <details onToggle={e => setOthers(e.currentTarget.open)}>
        <summary>{t.params}</summary>
        {!others ? null : old.isError ? (
          <Trouble error={old.error} again={() => void old.refetch()} />
        ) : old.data === undefined ? (
          <Loading />
        ) : (
          <label>
            {texts.params.json}
            <textarea
              rows={8}
              value={text ?? old.data}
              onChange={e => setText(e.target.value)}
              spellCheck={false}
            />
          </label>
        )}
      </details>
      {sent.wrong && <p className="failure">{sent.wrong}</p>}
      {start.isError && <Trouble error={start.error} />}
      {dry.told}
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {texts.close}
        </button>
        {dry.button}
        <button
          type="button"
          className="primary"
          disabled={Boolean(sent.wrong) || start.isPending}
          onClick={() => start.mutate()}
        >
          {texts.startNewTask}
        </button>
      </div>
    </Ask>
  )
}
