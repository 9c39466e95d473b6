import { expect, test } from 'vitest'
import type { ForeseenStep } from '../../src/api.gen'
import { becomes, inAll, named } from '../../src/parts/foreseen'

const step = (more: Partial<ForeseenStep>): ForeseenStep => ({ node: 'a', visit: 1, how: 'decided', ...more })

test('each step says what would become of it', () => {
  expect([step({}), step({ next: 'b' }), step({ how: 'called', service: 'pay', calls: 1 }), step({ how: 'called', calls: 1200 }), step({ how: 'skipped' })].map(becomes)).toEqual(
    ['decided without anybody', 'decided without anybody, goes on to b', 'pay would be called', 'somebody would be called for 1,200 units', 'skipped'])
  expect([step({}), step({ scope: 'order#1', visit: 2 })].map(named)).toEqual(['a', 'order#1/a (visit 2)'])
})

test('a dry run is told in one sentence', () => {
  expect(inAll({ steps: [step({}), step({ how: 'recorded' }), step({})], state: 'completed', more: false })).toBe('Nothing was started. Of the steps known so far: 1 recorded before, 2 decided without anybody. The task would be completed.')
  expect(inAll({ steps: [step({ how: 'waits' })], more: false })).toContain('What follows depends on what is called or waited for.')
  expect(inAll({ steps: [step({})], state: 'completed', more: true })).toContain('There would be more steps than these.')
})
