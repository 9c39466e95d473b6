// What a task would do that is not started, in words.
import type { ForeseenStep, Foresight } from '../api.gen'

/** What would become of a step. */
export function becomes(s: ForeseenStep): string {
  switch (s.how) {
    case 'decided': return s.next ? `decided without anybody, goes on to ${s.next}` : 'decided without anybody'
    case 'recorded': return 'was done before with the same input: what came of it counts'
    case 'called': return `${s.service || 'somebody'} would be called${s.calls && s.calls > 1 ? ` for ${s.calls.toLocaleString('en')} units` : ''}`
    case 'waits': return 'would wait: for a signal, an approval, or what goes on inside of it'
    default: return s.how
  }
}

const sums: [ForeseenStep['how'], string][] = [['called', 'would call somebody'], ['waits', 'would wait'], ['recorded', 'recorded before'], ['decided', 'decided without anybody'], ['skipped', 'skipped']]

/** All of it in one sentence: how many steps of each kind, and how the task would end. */
export function inAll(f: Foresight): string {
  const parts = sums.map(([how, text]) => [f.steps.filter(s => s.how === how).length, text] as const).filter(([n]) => n > 0).map(([n, text]) => `${n.toLocaleString('en')} ${text}`)
  const end = f.more ? 'There would be more steps than these.' : f.state ? `The task would be ${f.state}.` : 'What follows depends on what is called or waited for.'
  return `Nothing was started. ${parts.length > 0 ? `Of the steps known so far: ${parts.join(', ')}. ` : ''}${end}`
}

/** Which step it is. */
export const named = (s: ForeseenStep) => `${s.scope ? `${s.scope}/` : ''}${s.node}${s.visit > 1 ? ` (visit ${s.visit})` : ''}`
