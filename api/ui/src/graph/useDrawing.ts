import { useEffect, useRef, useState } from 'react'
import type { Graph } from '../data/plan'
import type { Drawing, Wishes } from './arrange'
import type { Made, Order } from './layout.worker'

/**
 * useDrawing lays out a plan in a worker, so that the page stays responsive. The previous drawing
 * stays until the next one is ready.
 */
export function useDrawing(graph: Graph | undefined, wishes: Wishes): Drawing | undefined {
  const [made, setMade] = useState<Made>()
  const worker = useRef<Worker>(undefined)
  const order = useRef(0)
  useEffect(() => {
    const w = new Worker(new URL('./layout.worker.ts', import.meta.url), {
      type: 'module',
      name: 'layout',
    })
    w.onmessage = (e: MessageEvent<Made>) => {
      if (e.data.id !== order.current) return
      // the time that the worker measured
      performance.measure('layout', { start: performance.now() - e.data.ms, duration: e.data.ms })
      setMade(e.data)
    }
    worker.current = w
    return () => w.terminate()
  }, [])
  const open = wishes.open.join('\n')
  useEffect(() => {
    if (graph)
      worker.current?.postMessage({
        id: ++order.current,
        graph,
        wishes: { open: open ? open.split('\n') : [], ghosts: wishes.ghosts },
      } satisfies Order)
  }, [graph, open, wishes.ghosts])
  return made?.drawing
}
