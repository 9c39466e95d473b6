import { putAway, useNotes } from '../data/acts'
import { Icon } from './Icon'

/** What actions came to. */
export function Notes() {
  const notes = useNotes()
  return (
    <div className="notes" role="status" aria-live="polite">
      {notes.map(n => (
        <div key={n.id} className={`note ${n.bad ? 'tone-failed' : 'tone-completed'}`}>
          <Icon name={n.bad ? 'alert' : 'check'} />
          <span>{n.text}{n.request && <span className="faint"> · request {n.request}</span>}</span>
          <button className="quiet" onClick={() => putAway(n.id)} aria-label="Put away"><Icon name="cross" size={12} /></button>
        </div>
      ))}
    </div>
  )
}
