import type { FlowStats, NodeStats } from '../api.gen'
import type { Heat } from '../data/search'
import { texts } from '../texts'

/** placeOf returns the key of a node's numbers. */
export function placeOf(n: { scope?: string; key: string }): string {
  return `${n.scope ?? ''}\n${n.key}`
}

export function byPlace(stats: FlowStats | undefined): Map<string, NodeStats> {
  return new Map(stats?.nodes.map(n => [placeOf(n), n]))
}

export function share(n: number, of: number): number {
  return of > 0 ? n / of : 0
}

/**
 * slowness returns the duration or the waiting time of a node, depending on the selected measure.
 */
export function slowness(n: NodeStats, by: Heat | undefined): number {
  return by === 'wait' ? (n.wait?.p95_ms ?? 0) : n.duration.p95_ms
}

/**
 * heatOf returns the tone of a node. It depends on the share of failed visits, the share of retried
 * units, or the slowness compared with the slowest node.
 */
export function heatOf(
  n: NodeStats | undefined,
  by: Heat,
  slowest: number,
): 'idle' | 'completed' | 'waiting' | 'failed' {
  if (!n || n.count === 0) return 'idle'
  if (by === 'failures' || by === 'retries') {
    const part = by === 'failures' ? share(n.failed, n.count) : share(n.retried, n.units)
    return part === 0 ? 'completed' : part < 0.05 ? 'waiting' : 'failed'
  }
  const slow = slowness(n, by)
  return slow >= 0.5 * slowest && slowest > 0
    ? 'failed'
    : slow >= 0.1 * slowest && slowest > 0
      ? 'waiting'
      : 'completed'
}

const { failures, retries, slow } = texts.heat.legend

/** legend explains the colors, from cool to hot. */
export const legend: Record<Heat, string> = { failures, retries, p95: slow, wait: slow }
