import type { FlowStats, NodeStats } from '../api.gen'
import type { Heat } from '../data/search'

/** Where the numbers of a node are found. */
export function placeOf(n: { scope?: string; key: string }): string {
  return `${n.scope ?? ''}\n${n.key}`
}

export function byPlace(stats: FlowStats | undefined): Map<string, NodeStats> {
  return new Map(stats?.nodes.map(n => [placeOf(n), n]))
}

/** How hot a node is, as a tone: by the share of its visits that failed, or by how slow it is beside the slowest one. */
export function heatOf(n: NodeStats | undefined, by: Heat, slowest: number): 'idle' | 'completed' | 'waiting' | 'failed' {
  if (!n || n.visits + n.failures === 0) return 'idle'
  if (by === 'failures') return n.failures === 0 ? 'completed' : n.failures < 0.05 * n.visits ? 'waiting' : 'failed'
  return n.duration.p95_ms >= 0.5 * slowest && slowest > 0 ? 'failed' : n.duration.p95_ms >= 0.1 * slowest && slowest > 0 ? 'waiting' : 'completed'
}

/** What the colors mean, from cool to hot. */
export const legend: Record<Heat, string> = {
  failures: 'green: none failed, amber: below 5 % of visits, red: 5 % or more',
  p95: 'red: half as slow as the slowest node or slower, amber: a tenth, green: faster',
}
