import { beforeAll, expect, test, vi } from 'vitest'

beforeAll(() => {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} })
})

test('a cell of several units has the most important state', async () => {
  const { cellsOf } = await import('../../src/task/UnitMap')
  const runs = [
    { count: 5, state: 'completed' },
    { count: 1, state: 'failed' },
    { count: 3, state: 'running' },
  ] as never
  expect(cellsOf({ total: 9, runs }, 1, 9)).toEqual([
    'completed',
    'completed',
    'completed',
    'completed',
    'completed',
    'failed',
    'running',
    'running',
    'running',
  ])
  expect(cellsOf({ total: 9, runs }, 4, 3)).toEqual(['completed', 'failed', 'running'])
})

test('a form has the declared inputs of a flow and sends the entered values', async () => {
  const { fieldsOf, paramsOf, referred } = await import('../../src/flow/inputs')
  const fields = fieldsOf({
    type: 'object',
    required: ['amount'],
    properties: {
      amount: { type: 'integer' },
      note: { type: 'string' },
      size: { enum: ['s', 'l'], default: 's' },
      lines: { type: 'array' },
    },
  })!
  expect(fields.map(f => [f.name, f.kind, f.required, f.start])).toEqual([
    ['amount', 'integer', true, ''],
    ['note', 'string', false, ''],
    ['size', 'string', false, 's'],
    ['lines', 'array', false, ''],
  ])
  expect(paramsOf(fields, { amount: '12', note: '7', size: 'l', lines: '[1]' }, '')).toEqual({
    params: { amount: 12, note: '7', size: 'l', lines: [1] },
  })
  expect(paramsOf(fields, { amount: 'x' }, '')).toEqual({ wrong: 'amount must be an integer' })
  expect(paramsOf(undefined, {}, '{')).toHaveProperty('wrong')
  expect(fieldsOf(undefined)).toBeUndefined()
  expect(
    referred({ nodes: { a: { prep: { input_key: '$params.amount', other: '$run.order.id' } } } }),
  ).toEqual(['amount', 'order'])
})
