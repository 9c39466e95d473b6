import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { note, requestID } from '../data/acts'
import { call } from '../data/call'
import { Ask } from '../parts/Ask'
import { useDryRun } from '../parts/DryRun'
import { Loading, Trouble } from '../parts/Told'

/** Starts a task that goes on from what this one was when an event was stored, once it has been told what that one keeps. */
export function ForkAsk({ task, at, close }: { task: string; at: number; close: () => void }) {
  const go = useNavigate()
  const plan = useQuery({ queryKey: ['task', task, 'fork', at], queryFn: () => call('POST /v1/tasks/{task}/fork', { path: { task }, body: { at, dry_run: true } }) })
  const dry = useDryRun(at, async () => plan.data?.foresight, !plan.data)
  const start = async () => {
    try {
      const made = await call('POST /v1/tasks/{task}/fork', { path: { task }, body: { at, idempotency_key: requestID() } })
      note({ text: 'a new task goes on from there', task: made.id })
      if (made.id) void go({ to: '/tasks/$task', params: { task: made.id } })
    } catch (problem) {
      note({ text: (problem as Error).message, bad: true })
    }
  }
  return (
    <Ask title="Go on from here in a new task?" close={close}>
      {plan.isError ? <Trouble error={plan.error} again={() => void plan.refetch()} /> : !plan.data ? <Loading /> :
        <p>It has what this task had done by then: {plan.data.kept_steps} {plan.data.kept_steps === 1 ? 'step is' : 'steps are'} kept, {plan.data.again_steps} that had begun {plan.data.again_steps === 1 ? 'is' : 'are'} done again, and all that follows. This task stays as it is.</p>}
      {dry.told}
      <div className="buttons">
        <button type="button" onClick={e => e.currentTarget.closest('dialog')?.close()}>Close</button>
        {dry.button}
        <button type="button" className="primary" disabled={!plan.data} onClick={e => { void start(); e.currentTarget.closest('dialog')?.close() }}>Start the new task</button>
      </div>
    </Ask>
  )
}
