import { expect, test } from 'vitest'
import { blocks, differ } from '../../src/data/lines'
import { appended, marked, most, withText } from '../../src/data/log'

const told = (a: string, b: string) =>
  differ([...a], [...b])
    .map(l => ({ same: ' ', added: '+', removed: '-' })[l.how] + l.text)
    .join('')

test('a difference has the fewest possible lines', () => {
  expect(told('abc', 'abc')).toBe(' a b c')
  expect(told('abc', 'axc')).toBe(' a-b+x c')
  expect(told('', 'ab')).toBe('+a+b')
  expect(told('ab', '')).toBe('-a-b')
  expect(differ([...'abcabba'], [...'cbabac']).filter(l => l.how !== 'same')).toHaveLength(5)
})

test('a difference rebuilds both of its texts', () => {
  let seed = 7
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
  for (let i = 0; i < 200; i++) {
    const [a, b] = [0, 1].map(() => Array.from({ length: next(30) }, () => 'abcd'[next(4)]))
    const lines = differ(a, b)
    expect(lines.filter(l => l.how !== 'added').map(l => l.text)).toEqual(a)
    expect(lines.filter(l => l.how !== 'removed').map(l => l.text)).toEqual(b)
  }
})

test('texts with nothing in common count as replaced, within a short time', () => {
  const [a, b] = [0, 1].map(n => Array.from({ length: 5000 }, (_, i) => `${n}.${i}`))
  expect(differ(a, b)).toHaveLength(10_000)
})

test('lines far from a change are left out', () => {
  const lines = differ([...'0123456789'], [...'0123456x89'])
  expect(blocks(lines, 1)).toEqual([
    { same: 6 },
    { how: 'same', text: '6' },
    { how: 'removed', text: '7' },
    { how: 'added', text: 'x' },
    { how: 'same', text: '8' },
    { same: 1 },
  ])
})

const line = (id: string, text = id) => ({ id, text, job: 'j' }) as never

test('a log keeps its newest lines, each once', () => {
  const log = appended({ lines: [], dropped: 0 }, [line('1.0'), line('1.1'), line('9.0')])
  expect(appended(log, [line('1.1'), line('9.0'), line('10.0')]).lines.map(l => l.id)).toEqual([
    '1.0',
    '1.1',
    '9.0',
    '10.0',
  ])
  const full = appended(
    { lines: [], dropped: 0 },
    Array.from({ length: most + 5 }, (_, i) => line(`1.${i}`)),
  )
  expect([full.lines.length, full.dropped, full.lines[0].id]).toEqual([most, 5, '1.5'])
})

test('a log search ignores case', () => {
  expect(withText([line('1.0', 'No space'), line('1.1', 'ok')], 'SPACE')).toHaveLength(1)
  expect(marked('a Bc bC', 'bc')).toEqual([
    { text: 'a ', hit: false },
    { text: 'Bc', hit: true },
    { text: ' ', hit: false },
    { text: 'bC', hit: true },
  ])
  expect(marked('abc', '')).toEqual([{ text: 'abc', hit: false }])
})
