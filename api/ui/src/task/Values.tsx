import { useTask } from '../data/task'
import { Loading, Trouble } from '../parts/Told'
import { Value } from '../parts/Value'

/** What the task was given, what its nodes share, and what came out. */
export function ValuesTab({ task }: { task: string }) {
  const whole = useTask(task, true)
  if (whole.isError) return <Trouble error={whole.error} again={() => void whole.refetch()} />
  if (!whole.data) return <Loading />
  const { params, shared, result } = whole.data
  return (
    <div className="values">
      <section><h2>Input</h2><Value of={params} label="input" /></section>
      {result !== undefined && <section><h2>Result</h2><Value of={result} label="result" /></section>}
      <section>
        <h2>Shared</h2>
        {Object.keys(shared).length === 0 && <p className="faint">nothing is shared yet</p>}
        {Object.entries(shared).map(([key, value]) => <div key={key} className="shared"><h3><code>{key}</code></h3><Value of={value} label={key} /></div>)}
      </section>
    </div>
  )
}
