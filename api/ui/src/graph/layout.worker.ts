import type { Graph } from '../data/plan'
import { arrange, type Drawing, type Wishes } from './arrange'

export interface Order {
  id: number
  graph: Graph
  wishes: Wishes
}
export interface Made {
  id: number
  drawing: Drawing
  ms: number
}

self.onmessage = (e: MessageEvent<Order>) => {
  const began = performance.now()
  const drawing = arrange(e.data.graph, e.data.wishes)
  self.postMessage({ id: e.data.id, drawing, ms: performance.now() - began } satisfies Made)
}
