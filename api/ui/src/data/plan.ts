/** The graph of a flow's version, as the API tells it. */
export interface Graph { flow: string; version: number; mode: 'graph' | 'dag'; scopes: GraphScope[]; nodes: GraphNode[]; edges: GraphEdge[] }

export interface GraphScope { scope: string; mode: 'graph' | 'dag'; start?: string; node?: number; first: number; nodes: number }

export interface GraphNode {
  key: string; scope: string; kind: string; handler?: string; route?: string; service?: string; each?: string; window?: number; retry?: string
  timeout_ms?: number; when?: string; compensate?: string; for?: string; ghost?: boolean; inside?: string; line?: number; column?: number
}

export interface GraphEdge { from: number; to: number; action?: string; when?: string; kind?: 'after' | 'undo'; scope?: string }

/** What kind of thing a node is, in one word for people, and its icon. */
export function kindOf(n: GraphNode): { word: string; icon: string } {
  if (n.kind === 'approval') return { word: 'approval', icon: 'approval' }
  if (n.kind === 'timer' || n.kind === 'delay') return { word: 'timer', icon: 'clock' }
  if (n.kind === 'wait_event') return { word: 'signal', icon: 'signal' }
  if (n.kind === 'choice' || n.kind === 'gate' || n.kind === 'condition') return { word: n.kind, icon: 'choice' }
  if (n.kind === 'subflow' || n.kind === 'branch' || n.kind === 'branches') return { word: n.kind, icon: 'subflow' }
  if (n.each || ['foreach', 'fanout', 'parallel'].includes(n.kind)) return { word: n.kind, icon: 'fanout' }
  return { word: n.handler ?? n.kind, icon: 'work' }
}
