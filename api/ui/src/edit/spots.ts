// Conversions from lines and columns of the API to positions in a text, and from those to nodes.

import type { DefinitionProblem } from '../api.gen'
import type { Graph } from '../data/plan'

/**
 * within returns the offset of a column in a line. Columns count characters from 1, whereas the
 * editor counts UTF-16 units.
 */
export function within(line: string, column: number | undefined): number {
  let at = 0
  for (let left = (column ?? 1) - 1; left > 0 && at < line.length; left--)
    at += line.codePointAt(at)! > 0xffff ? 2 : 1
  return at
}

/** wordEnd returns the end of the word that begins at the given offset of a line. */
export function wordEnd(line: string, from: number): number {
  const word = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,{}[\]:]+)/.exec(line.slice(from))
  return word ? from + word[0].length : Math.min(line.length, from + 1)
}

/**
 * nodeAt returns the node that a line belongs to: the last node that begins before it. It returns
 * undefined if the text has left that node since.
 */
export function nodeAt(
  graph: Graph | undefined,
  lines: string[],
  line: number,
): number | undefined {
  let best: number | undefined
  graph?.nodes.forEach((n, i) => {
    if (n.line && n.line <= line && n.line >= (best === undefined ? 0 : graph.nodes[best].line!))
      best = i
  })
  const node = best === undefined ? undefined : graph!.nodes[best]
  if (!node) return undefined
  const indent = (l: string) => l.length - l.trimStart().length
  const left = lines
    .slice(node.line, line)
    .some(l => l.trim() && indent(l) <= indent(lines[node.line! - 1] ?? ''))
  return left ? undefined : best
}

/** troubled returns the nodes that have problems. */
export function troubled(graph: Graph | undefined, problems: DefinitionProblem[]): Set<number> {
  const found = new Set<number>()
  for (const p of problems) {
    let best: number | undefined
    graph?.nodes.forEach((n, i) => {
      if (
        `.${p.path}.`.includes(`.${n.key}.`) &&
        n.line &&
        n.line <= (p.line ?? 0) &&
        (best === undefined || n.line > graph.nodes[best].line!)
      )
        best = i
    })
    if (best !== undefined) found.add(best)
  }
  return found
}
