// The differences of two texts, line by line.

export interface Line {
  how: 'same' | 'removed' | 'added'
  text: string
}
export type Block = { same: number } | Line

// limit of changed lines to search for; beyond it, the whole differing part counts as replaced
const farthest = 1000

/**
 * differ returns the shortest edit from one text to the other (Myers), between their common
 * beginning and end.
 */
export function differ(old: string[], now: string[]): Line[] {
  let head = 0,
    tail = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head++
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail++
  const same = (list: string[]): Line[] => list.map(text => ({ how: 'same', text }))
  return [
    ...same(old.slice(0, head)),
    ...between(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...same(old.slice(old.length - tail)),
  ]
}

function between(a: string[], b: string[]): Line[] {
  const trace: Map<number, number>[] = []
  const v = new Map<number, number>([[1, 0]])
  for (let d = 0; d <= Math.min(a.length + b.length, farthest); d++) {
    trace.push(new Map(v))
    for (let k = -d; k <= d; k += 2) {
      let x = down(v, k, d) ? v.get(k + 1)! : v.get(k - 1)! + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      v.set(k, x)
      if (x >= a.length && x - k >= b.length) return back(a, b, trace)
    }
  }
  return [
    ...a.map((text): Line => ({ how: 'removed', text })),
    ...b.map((text): Line => ({ how: 'added', text })),
  ]
}

function down(v: Map<number, number>, k: number, d: number): boolean {
  return k === -d || (k !== d && v.get(k - 1)! < v.get(k + 1)!)
}

function back(a: string[], b: string[], trace: Map<number, number>[]): Line[] {
  const lines: Line[] = []
  let x = a.length,
    y = b.length
  for (let d = trace.length - 1; d >= 0; d--) {
    const v = trace[d],
      k = x - y
    const before = down(v, k, d) ? k + 1 : k - 1
    const fromX = d === 0 ? 0 : v.get(before)!,
      fromY = d === 0 ? 0 : fromX - before
    while (x > fromX && y > fromY) (lines.push({ how: 'same', text: a[--x] }), y--)
    if (d > 0)
      lines.push(x === fromX ? { how: 'added', text: b[--y] } : { how: 'removed', text: a[--x] })
  }
  return lines.reverse()
}

/** blocks shortens a difference: lines far from any change are left out. */
export function blocks(lines: Line[], around = 3): Block[] {
  const near = new Uint8Array(lines.length)
  lines.forEach((l, i) => {
    if (l.how !== 'same') near.fill(1, Math.max(0, i - around), i + around + 1)
  })
  const all: Block[] = []
  for (let i = 0; i < lines.length; i++) {
    if (near[i]) {
      all.push(lines[i])
      continue
    }
    const last = all.at(-1)
    if (last && 'same' in last) last.same++
    else all.push({ same: 1 })
  }
  return all
}
