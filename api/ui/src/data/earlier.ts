// Makes digests and graphs of what /v1 tells in longer words.

import type { Step, Task } from '../api.gen'
import { call } from './call'
import { escaped, planned, type Digest, type ScopeDigest } from './digest'
import type { Graph, GraphEdge, GraphNode, GraphScope } from './plan'

const states = ['created', 'started', 'completed', 'failed', 'skipped']

export async function readDigest(id: string, open: string[], signal: AbortSignal): Promise<Digest> {
  const path = { task: id }
  const task = await call('GET /v1/tasks/{task}', { path }, signal)
  const graph = await readGraph(task.flow, task.version, signal)
  const scopes = await Promise.all(['', ...open, ...(task.ended_at && graph.scopes.some(s => s.scope === '~') ? ['~'] : [])].map(async scope => {
    const steps: Step[] = []
    for (let cursor: string | undefined; ;) {
      const page = await call('GET /v1/tasks/{task}/steps', { path, query: { scope: scope || undefined, limit: 500, cursor } }, signal).catch(() => ({ items: [], next: undefined }))
      steps.push(...page.items)
      cursor = page.next
      if (!cursor) return columns(scope, graph, steps, Date.parse(task.created_at))
    }
  }))
  return { ...head(task), base: Date.parse(task.created_at), scopes, waits: task.active.flatMap(s => (s.wait ? [s.wait] : [])) }
}

function head(t: Task) {
  return {
    task: t.id, flow: t.flow, version: t.version, version_id: t.version_id, mode: t.mode, created_at: t.created_at, updated_at: t.updated_at,
    ended_at: t.ended_at, seq: t.seq, state: t.state, paused: t.paused, error: t.error,
  }
}

function columns(scope: string, graph: Graph, steps: Step[], base: number): ScopeDigest {
  const plan = graph.scopes.find(s => s.scope === planned(scope))
  const nodes = graph.nodes.slice(plan?.first ?? 0, (plan?.first ?? 0) + (plan?.nodes ?? 0)).map(n => n.key)
  const newest = new Map<string, Step>()
  for (const s of steps) if ((newest.get(s.node)?.visit ?? -1) <= s.visit) newest.set(s.node, s)
  const column = (value: (s: Step) => number, none: number) => nodes.map(key => (newest.has(key) ? value(newest.get(key)!) : none))
  const texts = (value: (s: Step) => string | undefined) => Object.fromEntries(nodes.flatMap((key, i) => (newest.get(key) && value(newest.get(key)!) ? [[i, value(newest.get(key)!)!]] : [])))
  const since = (at?: string) => (at ? Date.parse(at) - base : -1)
  return {
    scope, mode: plan?.mode ?? 'graph', nodes, state: column(s => states.indexOf(s.state), 0), visit: column(s => s.visit, 0),
    total: column(s => s.units.total, 0), done: column(s => s.units.done, 0), failed: column(s => s.units.failed, 0),
    in_flight: column(s => s.units.in_flight, 0), retrying: column(s => s.units.retrying, 0),
    entered: column(s => since(s.entered_at), -1), ended: column(s => since(s.ended_at), -1),
    reason: texts(s => s.reason), error: texts(s => s.error), held: nodes.flatMap((key, i) => (newest.get(key)?.held ? [i] : [])),
  }
}

interface Definition { start?: string; finally?: string; nodes: Record<string, Record<string, unknown>>; edges?: { from: string; action: string; to?: string }[] }

export async function readGraph(flow: string, version: number, signal: AbortSignal): Promise<Graph> {
  const found = await call('GET /v1/flows/{flow}/versions/{version}', { path: { flow, version: String(version) } }, signal)
  const graph: Graph = { flow, version, mode: (found.definition as Definition).start ? 'graph' : 'dag', scopes: [], nodes: [], edges: [] }
  add(graph, '', found.definition as Definition)
  return graph
}

function add(graph: Graph, path: string, def: Definition) {
  const closing = new Set(path === '' ? [def.finally, ...Object.values(def.nodes).map(n => n.compensate)].filter(k => typeof k === 'string') : [])
  const inner: [string, Definition][] = []
  const put = (scope: string, keys: string[]) => {
    const at: GraphScope = { scope, mode: def.start ? 'graph' : 'dag', start: def.start, first: graph.nodes.length, nodes: keys.length }
    graph.scopes.push(at)
    for (const key of keys) {
      const n = def.nodes[key], sub = (n.subflow ?? n.branch) as Definition | undefined
      const node: GraphNode = { key, scope, kind: String(n.kind ?? n.type ?? 'executor'), handler: (n.service ?? n.func) as string | undefined, each: n.each ? 'each' : undefined, compensate: n.compensate as string | undefined }
      if (sub?.nodes) {
        node.inside = scope ? `${scope}/${escaped(key)}` : escaped(key)
        inner.push([node.inside, sub])
      }
      graph.nodes.push(node)
    }
    const index = (key: unknown) => at.first + keys.indexOf(String(key))
    const edges: GraphEdge[] = (def.edges ?? []).filter(e => keys.includes(e.from) && e.to && keys.includes(e.to)).map(e => ({ from: index(e.from), to: index(e.to), action: e.action }))
    if (!def.start) {
      for (const key of keys) {
        const named = new Set([...((def.nodes[key].depends_on as string[]) ?? []), ...[...JSON.stringify(def.nodes[key]).matchAll(/\$deps\.([\w-]+)/g)].map(m => m[1])])
        for (const dep of named) if (keys.includes(dep)) edges.push({ from: index(dep), to: index(key), kind: 'after' })
      }
    }
    graph.edges.push(...edges)
  }
  put(path, Object.keys(def.nodes).filter(k => !closing.has(k)))
  for (const [at, sub] of inner) add(graph, at, sub)
  if (closing.size > 0) put('~', [...closing] as string[])
}
