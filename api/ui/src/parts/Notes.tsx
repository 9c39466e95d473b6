import { putAway, useNotes } from '../data/acts'
import { Icon } from './Icon'
import { texts } from '../texts'

/** Notes shows the results of actions. */
export function Notes() {
  const notes = useNotes()
  return (
    <div className="notes" role="status" aria-live="polite">
      {notes.map(n => (
        <div key={n.id} className={`note ${n.bad ? 'tone-failed' : 'tone-completed'}`}>
          <Icon name={n.bad ? 'alert' : 'check'} />
          <div>
            {n.text}
            {n.request && (
              <details className="faint">
                <summary>{texts.trouble.details}</summary>
                {texts.trouble.request} <code>{n.request}</code>
              </details>
            )}
          </div>
          <button className="quiet" onClick={() => putAway(n.id)} aria-label={texts.notes.dismiss}>
            <Icon name="cross" size={12} />
          </button>
        </div>
      ))}
    </div>
  )
}
