import { useTask, valueAt } from '../data/task'
import { Loading, Trouble } from '../parts/Told'
import { Part } from '../parts/Value'
import { texts } from '../texts'

const t = texts.values

/** ValuesTab shows the params, the shared values, and the result of a task. */
export function ValuesTab({ task }: { task: string }) {
  const whole = useTask(task, 'preview')
  if (whole.isLoadingError)
    return <Trouble error={whole.error} again={() => void whole.refetch()} />
  if (!whole.data) return <Loading />
  const { params, shared, result } = whole.data
  return (
    <div className="values">
      <section>
        <h2>{t.input}</h2>
        <Part of={params} label={t.inputLabel} all={valueAt(task, { of: 'params' })} />
      </section>
      {result !== undefined && (
        <section>
          <h2>{t.result}</h2>
          <Part of={result} label={t.resultLabel} all={valueAt(task, { of: 'result' })} />
        </section>
      )}
      <section>
        <h2>{t.shared}</h2>
        {Object.keys(shared).length === 0 && <p className="faint">{t.empty}</p>}
        {Object.entries(shared).map(([key, value]) => (
          <div key={key} className="shared">
            <h3>
              <code>{key}</code>
            </h3>
            <Part of={value} label={key} all={valueAt(task, { of: 'shared', key })} />
          </div>
        ))}
      </section>
    </div>
  )
}
