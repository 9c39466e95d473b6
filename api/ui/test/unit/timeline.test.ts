import { expect, test } from 'vitest'
import {
  axisOf,
  idle,
  joined,
  rowsOf,
  waitedFor,
  without,
  zoomed,
  zoomOf,
} from '../../src/data/timeline'

const lane = (
  node: string,
  entered: number,
  ended: number,
  waits: [number, number][] = [],
  more = {},
) =>
  ({
    node,
    visit: 1,
    entered_ms: entered,
    ended_ms: ended,
    state: 'completed',
    waits: waits.map(([start, end]) => ({ kind: 'approval', started_ms: start, ended_ms: end })),
    ...more,
  }) as never

test('spans are joined and subtracted', () => {
  expect(
    joined([
      [5, 9],
      [1, 3],
      [3, 6],
    ]),
  ).toEqual([[1, 9]])
  expect(
    without(
      [0, 10],
      [
        [2, 4],
        [3, 6],
        [9, 20],
      ],
    ),
  ).toEqual([
    [0, 2],
    [6, 9],
  ])
  expect(without([0, 10], [[-5, 50]])).toEqual([])
})

test('no lane is busy while all wait', () => {
  const lanes = [lane('a', 0, 100), lane('ok', 100, 9000, [[100, 9000]]), lane('b', 9000, 9100)]
  expect(idle(lanes, 0, 9100, 9100)).toEqual([[100, 9000]])
  expect(idle([...lanes, lane('c', 200, 5000)], 0, 9100, 9100)).toEqual([
    [100, 200],
    [5000, 9000],
  ])
})

test('long waits are folded, and positions map back to times', () => {
  const lanes = [lane('a', 0, 100), lane('ok', 100, 9900, [[100, -1]]), lane('b', 9900, 10_000)]
  const axis = axisOf(lanes, 0, 10_000, 9900, true)
  expect(axis.folded).toEqual([[100, 9900]])
  expect(axis.at(100)).toBeCloseTo(100 / 212)
  expect(axis.at(9900)).toBeCloseTo(112 / 212)
  for (const ms of [0, 50, 100, 5000, 9900, 10_000]) expect(axis.back(axis.at(ms))).toBeCloseTo(ms)
  const plain = axisOf(lanes, 0, 10_000, 9900, false)
  expect([plain.folded, plain.at(5000), plain.at(-5), plain.at(99_999)]).toEqual([[], 0.5, 0, 1])
})

test('a window stays within the whole range', () => {
  expect(zoomOf('10-20')).toEqual([10, 20])
  expect(zoomOf('20-10')).toBeUndefined()
  expect(zoomed([0, 100], [0, 100], 0.5)).toEqual([25, 75])
  expect(zoomed([25, 75], [0, 100], 1, 0.25)).toEqual([37, 88])
  expect(zoomed([25, 75], [0, 100], 1, 5)).toEqual([50, 100])
  expect(zoomed([25, 75], [0, 100], 4)).toBeUndefined()
})

test('the contents of an open visit are below it', () => {
  const root = {
    critical: [1],
    lanes: [lane('a', 0, 5), lane('x/y', 5, 9, [], { has_inner_scope: true })],
  } as never
  const inner = { critical: [], lanes: [lane('pay', 6, 8)] } as never
  const told = (open: boolean) =>
    rowsOf(new Map([['', root], ...(open ? [['x%2Fy#1', inner] as const] : [])])).map(r => [
      r.lane.node,
      r.depth,
      r.critical,
      r.open,
    ])
  expect(told(false)).toEqual([
    ['a', 0, false, false],
    ['x/y', 0, true, false],
  ])
  expect(told(true)).toEqual([
    ['a', 0, false, false],
    ['x/y', 0, true, true],
    ['pay', 1, false, false],
  ])
})

test('waits are summed by kind', () => {
  expect(
    waitedFor(
      lane('a', 0, 9, [
        [0, 2],
        [4, -1],
      ]),
      9,
    ),
  ).toEqual([['approval', 7]])
})
