import type { DefinitionProblem } from '../api.gen'
import { Icon } from '../parts/Icon'
import { Trouble } from '../parts/Told'
import { texts } from '../texts'

const t = texts.edit

/** Problems lists all problems of a definition, each with a link to its line. */
export function Problems({
  list,
  current,
  error,
  go,
}: {
  list: DefinitionProblem[]
  current: boolean
  error: unknown
  go: (p: DefinitionProblem) => void
}) {
  const errors = list.filter(p => p.severity === 'error').length
  return (
    <div className="problems">
      <p role="status" className="faint">
        {!current
          ? t.checking
          : list.length === 0
            ? t.noProblems
            : t.problems(errors, list.length - errors)}
      </p>
      {error ? <Trouble error={error} /> : null}
      <ul>
        {list.map((p, i) => (
          <li key={i}>
            <button
              className={`link tone-${p.severity === 'error' ? 'failed' : 'waiting'}`}
              onClick={() => go(p)}
            >
              <Icon name="alert" size={14} />
              <span>
                <span className="mono">
                  {p.line}:{p.column}
                </span>{' '}
                {p.path && <code>{p.path}</code>} {p.message}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
