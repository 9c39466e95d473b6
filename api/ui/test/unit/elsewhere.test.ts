import { expect, test } from 'vitest'
import { elsewhere } from '../../src/data/elsewhere'

test('a pattern is filled in with the values of the task', () => {
  expect(
    elsewhere('https://t.example/{trace_id}?of={task}', { task: 'a b', trace_id: '0af7' }),
  ).toBe('https://t.example/0af7?of=a%20b')
  expect(elsewhere('https://l.example/?q={task}', { task: 'x' })).toBe('https://l.example/?q=x')
})

test('there is no link without a pattern, or to a target that is no web page', () => {
  expect(elsewhere(undefined, { task: 'x' })).toBeUndefined()
  expect(elsewhere('https://t.example/{trace_id}', { task: 'x' })).toBeUndefined()
  expect(elsewhere('javascript:alert(1)', { task: 'x' })).toBeUndefined()
})
