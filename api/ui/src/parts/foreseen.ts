// The results of a dry run, in words.
import type { PreviewStep, Preview } from '../api.gen'
import { digits, texts } from '../texts'

const t = texts.dryRun

/** becomes describes the outcome of a step. */
export function becomes(s: PreviewStep): string {
  switch (s.outcome) {
    case 'decided':
      return s.next ? t.decidedNext(s.next) : t.decided
    case 'recorded':
      return t.recorded
    case 'called':
      return s.units && s.units > 1
        ? t.calledUnits(s.service || t.worker, s.units)
        : t.called(s.service || t.worker)
    case 'waits':
      return t.waits
    default:
      return s.outcome
  }
}

const sums = Object.entries(t.sums)

/**
 * inAll summarizes a dry run in one sentence: the number of steps of each kind, and the end of the
 * task.
 */
export function inAll(f: Preview): string {
  const parts = sums
    .map(([how, text]) => [f.steps.filter(s => s.outcome === how).length, text] as const)
    .filter(([n]) => n > 0)
    .map(([n, text]) => `${digits(n)} ${text}`)
  const end = f.truncated ? t.more : f.state ? t.ends(f.state) : t.depends
  return t.started + (parts.length > 0 ? t.known(parts.join(', ')) : '') + end
}

/** named returns the name of a step: its scope, its node and its visit. */
export function named(s: PreviewStep): string {
  const name = `${s.scope ? `${s.scope}/` : ''}${s.node}`
  return s.visit > 1 ? t.visit(name, s.visit) : name
}
