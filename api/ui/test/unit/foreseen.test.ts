import { expect, test } from 'vitest'
import type { PreviewStep } from '../../src/api.gen'
import { becomes, inAll, named } from '../../src/parts/foreseen'
import { texts } from '../../src/texts'

const t = texts.dryRun

const step = (more: Partial<PreviewStep>): PreviewStep => ({
  node: 'a',
  visit: 1,
  outcome: 'decided',
  ...more,
})

test('each step of a dry run shows its outcome', () => {
  expect(
    [
      step({}),
      step({ next: 'b' }),
      step({ outcome: 'called', service: 'pay', units: 1 }),
      step({ outcome: 'called', units: 1200 }),
      step({ outcome: 'skipped' }),
    ].map(becomes),
  ).toEqual([
    t.decided,
    t.decidedNext('b'),
    'runs on pay',
    'runs on a worker for 1,200 units',
    'skipped',
  ])
  expect([step({}), step({ scope: 'order#1', visit: 2 })].map(named)).toEqual([
    'a',
    'order#1/a (visit 2)',
  ])
})

test('a dry run is summarized in one sentence', () => {
  expect(
    inAll({
      steps: [step({}), step({ outcome: 'recorded' }), step({})],
      state: 'completed',
      truncated: false,
    }),
  ).toBe(
    'Nothing was started. Known steps: 1 with a recorded result, 2 without a worker. The task ends as completed.',
  )
  expect(inAll({ steps: [step({ outcome: 'waits' })], truncated: false })).toContain(t.depends)
  expect(inAll({ steps: [step({})], state: 'completed', truncated: true })).toContain(t.more)
})
