import { useEffect, useRef, type MouseEvent } from 'react'
import type { UnitStates } from '../api.gen'
import { usePrefs } from '../data/prefs'
import { toneOf, wordOf } from '../parts/State'
import { texts } from '../texts'

const t = texts.units

const columns = 60,
  most = 3600 // limit of cells

/**
 * UnitMap shows all units of a step at once: one cell for each unit, or for several if there are
 * very many. A cell has the color of its worst unit.
 */
export function UnitMap({
  states,
  choose,
}: {
  states: UnitStates
  choose: (unit: number) => void
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const { theme } = usePrefs()
  const per = Math.ceil(states.total / most) || 1
  const cells = Math.ceil(states.total / per)
  useEffect(() => {
    if (canvas.current) paint(canvas.current, states, per, cells)
  }, [states, per, cells, theme])
  const click = (e: MouseEvent<HTMLCanvasElement>) => {
    const box = e.currentTarget.getBoundingClientRect(),
      size = box.width / columns
    const cell =
      Math.floor((e.clientY - box.top) / size) * columns + Math.floor((e.clientX - box.left) / size)
    if (cell < cells) choose(cell * per)
  }
  const counts = new Map<string, number>()
  for (const r of states.runs) counts.set(r.state, (counts.get(r.state) ?? 0) + r.count)
  const told = [...counts].map(([state, n]) => t.count(n, wordOf(state))).join(', ')
  return (
    <>
      <canvas
        ref={canvas}
        className="unit-map"
        role="img"
        aria-label={t.map(states.total, told)}
        onClick={click}
      />
      <p className="faint">
        {told}
        {per > 1 && t.each(per)}
      </p>
    </>
  )
}

const worst = ['failed', 'canceled', 'running', 'dispatched', 'pending', 'completed']

/** cellsOf returns the state of each cell: the most important state among its units. */
export function cellsOf(states: UnitStates, per: number, cells: number): string[] {
  const shown: string[] = []
  let at = 0
  for (const run of states.runs) {
    const last = Math.floor((at + run.count - 1) / per)
    for (let c = Math.floor(at / per); c <= last && c < cells; c++) {
      if (shown[c] === undefined || worst.indexOf(run.state) < worst.indexOf(shown[c]))
        shown[c] = run.state
    }
    at += run.count
  }
  return shown
}

function paint(canvas: HTMLCanvasElement, states: UnitStates, per: number, cells: number) {
  const rows = Math.ceil(cells / columns),
    size = 12
  canvas.width = columns * size
  canvas.height = rows * size
  const c = canvas.getContext('2d')!
  const colors = new Map<string, string>()
  const colorOf = (state: string) => {
    if (!colors.has(state)) {
      canvas.style.color = `var(--${toneOf(state)})`
      colors.set(state, getComputedStyle(canvas).color)
    }
    return colors.get(state)!
  }
  cellsOf(states, per, cells).forEach((state, i) => {
    c.fillStyle = colorOf(state)
    c.fillRect((i % columns) * size + 1, Math.floor(i / columns) * size + 1, size - 2, size - 2)
  })
}
