import { texts } from '../texts'
// The place in a definition where the cursor is, and the schema of that place. The text may be YAML
// or JSON, and incomplete.

export interface Place {
  path: string[] // enclosing keys; [] for an item of a list
  word: string // part of the word before the cursor
  key?: string // set if the cursor is in the value of this key; otherwise it is in a key or an item
}

interface Level {
  column: number
  key: string
}

/**
 * placeOf returns the place at the end of a text. It returns undefined where no completion applies,
 * such as in a comment.
 */
export function placeOf(before: string): Place | undefined {
  const lines = before.split('\n')
  const levels: Level[] = []
  for (let i = 0; i < lines.length; i++) {
    const { column, rest } = entered(levels, lines[i])
    const last = i === lines.length - 1
    const pair = /^([\w.$~/-]+|"[^"]*"|'[^']*')\s*:(?:\s+(.*))?$/.exec(rest)
    if (pair && (!last || /:\s/.test(rest))) {
      enter(levels, { column, key: bare(pair[1]) })
      const value = pair[2] ?? ''
      if (/^[|>]/.test(value)) {
        // a block scalar
        while (i + 1 < lines.length && (!lines[i + 1].trim() || indented(lines[i + 1]) > column))
          if (++i === lines.length - 1) return undefined
        continue
      }
      if (/^[{[]/.test(value)) {
        const end = flowPlace(
          levels.map(l => l.key),
          [value, ...lines.slice(i + 1)].join('\n'),
        )
        if (end.place !== 'over') return end.place
        i += end.lines
      } else if (last)
        return /(^|\s)#/.test(value)
          ? undefined
          : { path: levels.slice(0, -1).map(l => l.key), key: levels.at(-1)!.key, word: value }
    } else if (/^[{[]/.test(rest)) {
      const end = flowPlace(
        levels.map(l => l.key),
        [rest, ...lines.slice(i + 1)].join('\n'),
      )
      if (end.place !== 'over') return end.place
      i += end.lines
    } else if (last) {
      if (!/^[\w.$~/-]*$/.test(rest)) return undefined
      leave(levels, column)
      return { path: levels.map(l => l.key), word: rest }
    }
  }
  return undefined
}

/**
 * entered treats the dashes of a line as levels. It returns the text behind them and its column.
 */
function entered(levels: Level[], line: string): { column: number; rest: string } {
  let column = indented(line),
    rest = line.slice(column)
  while (/^-(\s|$)/.test(rest)) {
    while (
      levels.length > 0 &&
      (levels.at(-1)!.column > column ||
        (levels.at(-1)!.column === column && levels.at(-1)!.key === '[]'))
    )
      levels.pop()
    levels.push({ column, key: '[]' })
    const dash = /^-\s*/.exec(rest)![0].length
    column += dash
    rest = rest.slice(dash)
  }
  return { column, rest }
}

function enter(levels: Level[], at: Level) {
  leave(levels, at.column)
  levels.push(at)
}

function leave(levels: Level[], column: number) {
  while (levels.length > 0 && levels.at(-1)!.column >= column) levels.pop()
}

function indented(line: string): number {
  return line.length - line.trimStart().length
}

const token =
  /"(?:[^"\\]|\\.)*"?|'[^']*'?|#[^\n]*|\n|[{}[\],]|:(?=[\s{[",]|$)|[^\s{}[\],"'#](?:[^\s{}[\],:]|:(?=[^\s,{}[\]]))*/g

/**
 * flowPlace returns the place at the end of a text in braces. If the braces were closed before, it
 * returns over and the number of lines until then.
 */
function flowPlace(
  outer: string[],
  text: string,
): { place: Place | undefined | 'over'; lines: number } {
  const open: { list: boolean; key?: string }[] = []
  let word = '',
    lines = 0
  for (const [t] of text.matchAll(token)) {
    const top = open.at(-1)
    if (t === '\n') lines++
    else if (t === '{' || t === '[') open.push({ list: t === '[' })
    else if (t === '}' || t === ']') {
      open.pop()
      if (open.length === 0) return { place: 'over', lines }
    } else if (t === ',' && top) top.key = undefined
    else if (t === ':' && top) top.key = bare(word)
    word = /^[{}[\],:\n]$/.test(t) ? '' : t
  }
  if (word.startsWith('#')) return { place: undefined, lines }
  const path = [...outer, ...open.slice(0, -1).map(o => (o.list ? '[]' : (o.key ?? '')))]
  const top = open.at(-1)!
  const written = /[\s,:{[]$/.test(text) ? '' : word
  return {
    place: top.list
      ? { path: [...path, '[]'], word: written }
      : { path, word: written, ...(top.key === undefined ? {} : { key: top.key }) },
    lines,
  }
}

function bare(word: string): string {
  return word.replace(/^(["'])(.*?)\1?$/, '$2')
}

export interface Schema {
  $ref?: string
  $defs?: Record<string, Schema>
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  enum?: unknown[]
  type?: string | string[]
  description?: string
  required?: string[]
}

export interface Offer {
  label: string
  info?: string
  key: boolean
  block: boolean
}

// Keys whose values are the keys of nodes.
const names = ['depends_on', 'from', 'to', 'start', 'finally', 'compensate']

/**
 * offers returns the completions of a place: keys, values of an enumeration, or the keys of
 * existing nodes.
 */
export function offers(schema: Schema, place: Place, nodes: string[]): Offer[] {
  const path = place.key === undefined ? place.path : [...place.path, place.key]
  const here = path.reduce(
    (all, key) => all.flatMap(s => below(schema, s, key)),
    opened(schema, schema),
  )
  const found = new Map<string, Offer>()
  const add = (o: Offer) => found.has(o.label) || found.set(o.label, o)
  for (const s of here) {
    for (const v of s.enum ?? [])
      add({ label: String(v), info: s.description, key: false, block: false })
    if (s.type === 'boolean')
      for (const v of ['true', 'false'])
        add({ label: v, info: s.description, key: false, block: false })
    if (place.key !== undefined) continue
    for (const [label, p] of Object.entries(s.properties ?? {})) {
      add({
        label,
        info: p.description,
        key: true,
        block: opened(schema, p).every(o => o.type === 'object' || o.type === 'array'),
      })
    }
  }
  const named = [...path].reverse().find(key => key !== '[]')
  if (named && names.includes(named) && found.size === 0)
    for (const label of nodes)
      add({ label, info: texts.edit.offeredNode, key: false, block: false })
  return [...found.values()]
}

/** opened resolves a schema: it follows references and lists alternatives side by side. */
function opened(root: Schema, s: Schema): Schema[] {
  if (s.$ref) return opened(root, root.$defs?.[s.$ref.slice('#/$defs/'.length)] ?? {})
  return s.anyOf ? s.anyOf.flatMap(a => opened(root, a)) : [s]
}

function below(root: Schema, s: Schema, key: string): Schema[] {
  if (key === '[]') return s.items ? opened(root, s.items) : []
  const next =
    s.properties?.[key] ??
    (typeof s.additionalProperties === 'object' ? s.additionalProperties : undefined)
  return next ? opened(root, next) : []
}
