import { expect, test } from 'vitest'
import { heard, merged, newsOf, silence } from '../../src/data/news'

const task = (id: string, minute: number, more = {}) =>
  ({
    id,
    created_at: `2026-01-01T00:0${minute}:00Z`,
    updated_at: `2026-01-01T00:0${minute}:30Z`,
    state: 'running',
    ...more,
  }) as never
const ids = (list: { id: string }[]) => list.map(t => t.id)

test('rows change in place, and new ones wait beside them, newest first', () => {
  const known = [task('b', 2), task('a', 1)]
  const now = heard(
    heard(silence, {
      changed: [
        task('a', 1, { state: 'failed', updated_at: '2026-01-01T00:05:00Z' }),
        task('c', 3),
      ],
      new: 1,
    }),
    { changed: [task('d', 4)], new: 1 },
  )
  const { rows, fresh } = merged(known, now)
  expect(rows.map(t => [t.id, t.state])).toEqual([
    ['b', 'running'],
    ['a', 'failed'],
  ])
  expect(ids(fresh)).toEqual(['d', 'c'])
  expect(merged([...fresh, ...rows], now).fresh).toEqual([])
})

test('a late row does not replace a newer one', () => {
  const newer = task('a', 1, { state: 'completed', updated_at: '2026-01-01T00:09:00Z' })
  const now = heard(heard(silence, { changed: [newer], new: 0 }), {
    changed: [task('a', 1)],
    new: 0,
  })
  expect(merged([task('a', 1)], now).rows[0].state).toBe('completed')
  expect(merged([newer], heard(silence, { changed: [task('a', 1)], new: 0 })).rows[0].state).toBe(
    'completed',
  )
})

test('a row that stops matching stays, marked, until it matches again', () => {
  const known = [task('b', 2), task('a', 1)]
  const left = heard(silence, { changed: [], new: 0, left: ['a', 'x'] })
  expect(merged(known, left).rows.map(t => t.left)).toEqual([undefined, true])
  expect(
    merged(known, heard(left, { changed: [task('a', 1)], new: 0 })).rows[1].left,
  ).toBeUndefined()
  expect(merged([], heard(left, { changed: [task('x', 3)], new: 1 })).fresh).toHaveLength(1)
})

test('a new read of a list shows which rows are missing from its range', () => {
  const known = [task('c', 3), task('b', 2), task('a', 1)]
  expect(newsOf(known, { items: [task('b', 2)], next: 'more' } as never).left).toEqual(['c'])
  expect(newsOf(known, { items: [task('b', 2)] } as never).left).toEqual(['c', 'a'])
})

test('the number of remembered tasks is bounded', () => {
  const many = Array.from({ length: 3000 }, (_, i) => task(`t${i}`, 1))
  expect(heard(silence, { changed: many, new: 3000 }).now.size).toBe(2000)
})

test('changes of listed rows are kept, and changes of others are bounded', () => {
  const known = [task('b', 2), task('a', 1)],
    listed = new Set(ids(known as never))
  const ended = heard(
    silence,
    { changed: [task('a', 1, { state: 'completed' })], new: 0, left: ['b'] },
    listed,
  )
  const many = Array.from({ length: 3000 }, (_, i) => `t${i}`)
  const later = heard(
    ended,
    { changed: many.map(id => task(id, 3)), new: 3000, left: many.map(id => `x${id}`) },
    listed,
  )
  expect(merged(known, later).rows.map(t => [t.state, t.left])).toEqual([
    ['running', true],
    ['completed', undefined],
  ])
  expect([later.now.size, later.left.size]).toEqual([2000, 2000])
})

test('more new tasks than reported leave a gap above the listed rows', () => {
  const listed = new Set(['a'])
  const head = (id: string, next?: string) =>
    newsOf([task('a', 1)], { items: [task(id, 3)], next } as never)
  expect(heard(silence, head('c', 'more'), listed).gap).toBe(true)
  expect(heard(silence, head('c'), listed).gap).toBeFalsy()
  expect(heard(silence, head('a', 'more'), listed).gap).toBeFalsy()
  const told = heard(silence, { changed: [task('c', 3)], new: 1 }, listed)
  expect(heard(told, head('c', 'more'), listed).gap).toBeFalsy()
  expect(
    heard(
      told,
      newsOf([task('a', 1)], { items: [task('c', 3), task('b', 2)], next: 'more' } as never),
      listed,
    ).gap,
  ).toBe(true)
})
