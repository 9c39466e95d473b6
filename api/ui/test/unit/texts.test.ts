import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'
import { counted, digits, plural } from '../../src/texts'

type Node = { type: string; start: number; [name: string]: unknown }

const shown = [
  'title',
  'aria-label',
  'aria-valuetext',
  'placeholder',
  'alt',
  'label',
  'word',
  'name',
]
const free = new Set(['troupe', 'UTC'])

/** walk calls visit with each node of a syntax tree and its parents. */
function walk(node: Node, visit: (n: Node, parents: Node[]) => void, parents: Node[] = []) {
  visit(node, parents)
  for (const child of Object.values(node).flat()) {
    if (child && typeof (child as Node).type === 'string')
      walk(child as Node, visit, [...parents, node])
  }
}

/** textOf returns the text of a node that has letters, as a reader of the page sees it. */
function textOf(n: Node): string | undefined {
  if (n.type === 'JSXText' || n.type === 'Literal')
    return typeof n.value === 'string' ? n.value : undefined
  if (n.type !== 'TemplateLiteral') return undefined
  return (n.quasis as { value: { cooked: string } }[]).map(q => q.value.cooked).join('…')
}

/**
 * isShown reports whether a node is text of the page: a child of an element, or an attribute that
 * users read.
 */
function isShown(n: Node, parents: Node[]): boolean {
  if (n.type === 'JSXText') return true
  for (let i = parents.length - 1, child = n; i >= 0; child = parents[i], i--) {
    const p = parents[i]
    if (p.type === 'ConditionalExpression' && p.test === child) return false
    if (p.type === 'LogicalExpression' && p.operator === '&&' && p.left === child) return false
    if (p.type === 'JSXAttribute') return isRead(p, parents[i - 1])
    if (p.type === 'JSXExpressionContainer' && parents[i - 1]?.type !== 'JSXAttribute') return true
    if (
      ![
        'ConditionalExpression',
        'LogicalExpression',
        'JSXExpressionContainer',
        'TemplateLiteral',
      ].includes(p.type)
    )
      return false
  }
  return false
}

/**
 * isRead reports whether users read an attribute. `name` is such an attribute only on our own
 * components.
 */
function isRead(attribute: Node, element: Node): boolean {
  const name = (attribute.name as { name: unknown }).name as string
  const tag = (element.name as { name?: string }).name ?? ''
  if (!shown.includes(name)) return false
  return name !== 'name' || (/^[A-Z]/.test(tag) && !['Icon', 'GraphView'].includes(tag))
}

/** strayTexts returns the texts of a file that belong in the catalogue. */
function strayTexts(file: string, source: string): string[] {
  const found: string[] = []
  walk(parseSync(file, source).program as unknown as Node, (n, parents) => {
    const text = textOf(n)?.trim()
    if (!text || !/[a-z]{2}/i.test(text) || free.has(text) || !isShown(n, parents)) return
    found.push(`${file}:${source.slice(0, n.start).split('\n').length}: ${text}`)
  })
  return found
}

test('texts for readers are only in the catalogue', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(f =>
    f.endsWith('.tsx'),
  )
  expect(files.length).toBeGreaterThan(40)
  const found = files.flatMap(f => strayTexts(join('src', f), readFileSync(join('src', f), 'utf8')))
  expect(found, 'move these texts to src/texts.ts').toEqual([])
})

test('texts outside the catalogue are found, and classes and states are not', () => {
  const source = `const a = <p className="box" title="A title">Some text {x ? 'yes' : t.no} {state === 'open' && <Icon name="cross" />}
    <input aria-label={'A label'} placeholder={t.x} name="key" /><Side name="First" /></p>`
  expect(strayTexts('a.tsx', source).map(s => s.split(': ')[1])).toEqual([
    'A title',
    'Some text',
    'yes',
    'A label',
    'First',
  ])
})

test('numbers and nouns are formatted in one way', () => {
  expect([0, 1, 1200].map(n => counted(n, 'task'))).toEqual(['0 tasks', '1 task', '1,200 tasks'])
  expect([plural(2, 'retry'), plural(1, 'retry'), plural(2, 'day'), digits(1e6)]).toEqual([
    'retries',
    'retry',
    'days',
    '1,000,000',
  ])
})
