import { expect, test } from 'vitest'
import { layout, type Box, type Line } from '../../src/graph/layout'

const box = (id: string): Box => ({ id, w: 200, h: 60 })
const line = (from: string, to: string): Line => ({ from, to })
const at = (l: ReturnType<typeof layout>) => new Map(l.boxes.map(b => [b.id, b]))

test('a chain is one straight line from left to right', () => {
  const placed = at(layout([box('a'), box('b'), box('c')], [line('a', 'b'), line('b', 'c')]))
  expect(placed.get('a')!.y).toBe(placed.get('c')!.y)
  expect(placed.get('a')!.x).toBeLessThan(placed.get('b')!.x)
  expect(placed.get('b')!.x).toBeLessThan(placed.get('c')!.x)
})

test('an edge that leads back is reversed and marked', () => {
  const drawn = layout([box('a'), box('b')], [line('a', 'b'), line('b', 'a')])
  expect(drawn.routes.map(r => r.back)).toEqual([false, true])
  expect(at(drawn).get('a')!.x).toBeLessThan(at(drawn).get('b')!.x)
})

test('nodes never overlap', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  for (let round = 0; round < 30; round++) {
    const boxes = Array.from({ length: 3 + random(40) }, (_, i) => ({
      id: `${i}`,
      w: 80 + random(300),
      h: 30 + random(200),
    }))
    const lines = Array.from({ length: random(80) }, () =>
      line(`${random(boxes.length)}`, `${random(boxes.length)}`),
    )
    const { boxes: placed, w, h } = layout(boxes, lines)
    for (const [i, a] of placed.entries()) {
      expect(
        a.x >= 0 && a.y >= -0.001 && a.x + a.w <= w + 0.001 && a.y + a.h <= h + 0.001,
        `box ${a.id} of round ${round} is inside`,
      ).toBe(true)
      for (const b of placed.slice(i + 1)) {
        expect(
          a.x + a.w <= b.x ||
            b.x + b.w <= a.x ||
            a.y + a.h <= b.y + 0.001 ||
            b.y + b.h <= a.y + 0.001,
          `${a.id} and ${b.id} of round ${round}`,
        ).toBe(true)
      }
    }
  }
})

test('equal plans get equal layouts', () => {
  const boxes = Array.from({ length: 50 }, (_, i) => box(`${i}`))
  const lines = boxes.slice(1).map((b, i) => line(`${Math.floor(i / 3)}`, b.id))
  expect(layout(boxes, lines)).toEqual(layout(boxes, lines))
})

test('an empty plan gets an empty layout', () => {
  expect(layout([], [])).toEqual({ w: 0, h: 0, boxes: [], routes: [] })
})
