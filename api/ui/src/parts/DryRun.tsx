import { useMutation } from '@tanstack/react-query'
import type { Preview } from '../api.gen'
import { becomes, inAll, named } from './foreseen'
import { Trouble } from './Told'
import { texts } from '../texts'

const t = texts.dryRun

/**
 * useDryRun returns a button that requests a dry run, and its results. Results for an earlier input
 * are not shown.
 */
export function useDryRun(
  about: unknown,
  ask: () => Promise<Preview | undefined>,
  disabled = false,
) {
  const of = JSON.stringify(about)
  const run = useMutation({ mutationFn: async () => ({ of, told: await ask() }) })
  const told = run.data?.of === of ? run.data.told : undefined
  return {
    button: (
      <button type="button" disabled={disabled || run.isPending} onClick={() => run.mutate()}>
        {t.button}
      </button>
    ),
    told: (
      <>
        <p role="status" className="foreseen-all">
          {told && inAll(told)}
        </p>
        {run.isError && <Trouble error={run.error} />}
        {told && told.steps.length > 0 && <Steps told={told} />}
      </>
    ),
  }
}

function Steps({ told }: { told: Preview }) {
  return (
    <div className="foreseen" role="region" aria-label={t.region} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>{t.step}</th>
            <th>{t.outcome}</th>
          </tr>
        </thead>
        <tbody>
          {told.steps.map((s, i) => (
            <tr key={i}>
              <td>
                <code>{named(s)}</code>
              </td>
              <td>
                {becomes(s)}
                {s.output && (
                  <>
                    {' '}
                    <code>{s.output}</code>
                    {(s.output_bytes ?? 0) > new TextEncoder().encode(s.output).length && ' …'}
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
