import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import { Ask } from '../parts/Ask'
import { useDryRun } from '../parts/DryRun'
import { Loading, Trouble } from '../parts/Told'
import { texts } from '../texts'

const t = texts.fork

/**
 * ForkAsk starts a task that continues from the state of another task at a stored event. It first
 * shows which results the new task keeps.
 */
export function ForkAsk({ task, at, close }: { task: string; at: number; close: () => void }) {
  const go = useNavigate()
  const plan = useQuery({
    queryKey: ['task', task, 'fork', at],
    queryFn: () =>
      call('POST /v1/tasks/{task}/fork', { path: { task }, body: { at_seq: at, dry_run: true } }),
  })
  const dry = useDryRun(at, async () => plan.data?.preview, !plan.data)
  const start = async () => {
    try {
      const made = await call('POST /v1/tasks/{task}/fork', {
        path: { task },
        body: { at_seq: at, idempotency_key: requestID() },
      })
      note({ text: t.done, task: made.id })
      if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } })
    } catch (problem) {
      note({ text: (problem as Error).message, bad: true })
    }
  }
  return (
    <Ask title={t.title} close={close}>
      {plan.isError ? (
        <Trouble error={plan.error} again={() => void plan.refetch()} />
      ) : !plan.data ? (
        <Loading />
      ) : (
        <p>{t.text(plan.data.kept_count ?? 0, plan.data.rerun_count ?? 0)}</p>
      )}
      {dry.told}
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>
          {texts.close}
        </button>
        {dry.button}
        <button
          type="button"
          className="primary"
          disabled={!plan.data}
          onClick={e => {
            void start()
            e.currentTarget.closest('dialog')?.close()
          }}
        >
          {texts.startNewTask}
        </button>
      </div>
    </Ask>
  )
}
