import type { GraphNode } from '../api.gen'
export type { Graph, GraphEdge, GraphNode, GraphScope } from '../api.gen'
import { texts } from '../texts'

/** kindOf returns the kind of a node in one word, and its icon. */
export function kindOf(n: GraphNode): { word: string; icon: string } {
  if (n.kind === 'approval') return { word: texts.kinds.approval, icon: 'approval' }
  if (n.kind === 'timer' || n.kind === 'delay') return { word: texts.kinds.timer, icon: 'clock' }
  if (n.kind === 'wait_event') return { word: texts.kinds.signal, icon: 'signal' }
  if (n.kind === 'choice' || n.kind === 'gate' || n.kind === 'condition')
    return { word: n.kind, icon: 'choice' }
  if (n.kind === 'subflow' || n.kind === 'branch' || n.kind === 'branches')
    return { word: n.kind, icon: 'subflow' }
  if (n.each || ['foreach', 'fanout', 'parallel'].includes(n.kind))
    return { word: n.kind, icon: 'fanout' }
  return { word: n.handler ?? n.kind, icon: 'work' }
}
