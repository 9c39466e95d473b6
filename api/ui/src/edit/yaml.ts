// Converts a JSON definition to YAML. It uses the editor's own parser, so that numbers keep their
// digits.

import type { SyntaxNode } from '@lezer/common'
import { parser } from '@lezer/json'

/** yamlOf converts JSON to YAML. */
export function yamlOf(json: string): string {
  const value = parser.parse(json).topNode.firstChild
  if (!value) return json
  const lines = blockOf(json, value)
  return lines ? lines.join('\n') + '\n' : flowOf(json, value) + '\n'
}

/** field returns the part of a JSON text that is the value of a field. */
export function field(json: string, name: string): string | undefined {
  const object = parser.parse(json).topNode.firstChild
  const found =
    object && members(object).find(m => JSON.parse(json.slice(m.key.from, m.key.to)) === name)
  return found ? json.slice(found.value.from, found.value.to) : undefined
}

function members(object: SyntaxNode): { key: SyntaxNode; value: SyntaxNode }[] {
  return object.getChildren('Property').map(p => ({ key: p.firstChild!, value: p.lastChild! }))
}

function items(list: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (let n = list.firstChild; n; n = n.nextSibling) if (!'[],'.includes(n.name)) found.push(n)
  return found
}

const short = 90

/** blockOf returns the lines of a value, or undefined if the value fits on one line. */
function blockOf(json: string, v: SyntaxNode, top = true): string[] | undefined {
  const text = manyLines(json, v)
  if (text !== undefined)
    return [
      text.endsWith('\n') ? '|' : '|-',
      ...text
        .replace(/\n$/, '')
        .split('\n')
        .map(l => l && `  ${l}`),
    ]
  const parts = v.name === 'Object' ? members(v) : v.name === 'Array' ? items(v) : []
  if (parts.length === 0) return undefined
  const deep = (v.name === 'Object' ? members(v).map(m => m.value) : items(v)).some(
    c => nested(c) || manyLines(json, c) !== undefined,
  )
  if (!top && !deep && flowOf(json, v).length <= short) return undefined
  return v.name === 'Object'
    ? members(v).flatMap(m => pair(json, m.key, m.value))
    : items(v).flatMap(i => hung('-', ' ', blockOf(json, i, false) ?? [flowOf(json, i)]))
}

function nested(v: SyntaxNode): boolean {
  return v.getChild('Property') !== null || (v.name === 'Array' && items(v).length > 0)
}

/** manyLines returns a text that can be written as a block of lines. */
function manyLines(json: string, v: SyntaxNode): string | undefined {
  const text = v.name === 'String' ? (JSON.parse(json.slice(v.from, v.to)) as string) : ''
  return /^[^\s].*\n/.test(text) && !/[^\n\x20-\x7e\u00a1-\ud7ff]|\n\n$| \n/.test(text)
    ? text
    : undefined
}

function pair(json: string, key: SyntaxNode, value: SyntaxNode): string[] {
  const name = scalar(json.slice(key.from, key.to)) + ':'
  const lines = blockOf(json, value, false)
  if (!lines) return [`${name} ${flowOf(json, value)}`]
  return value.name === 'String'
    ? [`${name} ${lines[0]}`, ...lines.slice(1)]
    : [name, ...lines.map(l => l && `  ${l}`)]
}

/** hung indents lines behind a dash or another mark. */
function hung(mark: string, gap: string, lines: string[]): string[] {
  return lines.map((l, i) => (i === 0 ? mark + gap + l : l && '  ' + l))
}

/** flowOf returns a value on one line. */
function flowOf(json: string, v: SyntaxNode): string {
  if (v.name === 'Object')
    return `{${members(v)
      .map(m => `${scalar(json.slice(m.key.from, m.key.to))}: ${flowOf(json, m.value)}`)
      .join(', ')}}`
  if (v.name === 'Array')
    return `[${items(v)
      .map(i => flowOf(json, i))
      .join(', ')}]`
  return scalar(json.slice(v.from, v.to))
}

/**
 * scalar drops the quotes of a text if YAML reads it as the same text without them. It leaves
 * everything else unchanged.
 */
function scalar(raw: string): string {
  if (!raw.startsWith('"')) return raw
  const text = JSON.parse(raw) as string
  const plain =
    /^[A-Za-z_$/][\w$./-]*( [\w$./-]+)*$/.test(text) &&
    !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return plain ? text : JSON.stringify(text)
}
