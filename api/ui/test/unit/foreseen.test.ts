import { expect, test } from 'vitest'
import type { ForeseenStep } from '../../src/api.gen'
import { becomes, inAll, named } from '../../src/parts/foreseen'
import { texts } from '../../src/texts'

const t = texts.dryRun

const step = (more: Partial<ForeseenStep>): ForeseenStep => ({
  node: 'a',
  visit: 1,
  how: 'decided',
  ...more,
})

test('each step of a dry run shows its outcome', () => {
  expect(
    [
      step({}),
      step({ next: 'b' }),
      step({ how: 'called', service: 'pay', calls: 1 }),
      step({ how: 'called', calls: 1200 }),
      step({ how: 'skipped' }),
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
      steps: [step({}), step({ how: 'recorded' }), step({})],
      state: 'completed',
      more: false,
    }),
  ).toBe(
    'Nothing was started. Known steps: 1 with a recorded result, 2 without a worker. The task ends as completed.',
  )
  expect(inAll({ steps: [step({ how: 'waits' })], more: false })).toContain(t.depends)
  expect(inAll({ steps: [step({})], state: 'completed', more: true })).toContain(t.more)
})
