import { expect, test } from 'vitest'
import { offers, placeOf, type Schema } from '../../src/edit/place'
import { inserted, snippets } from '../../src/edit/snippets'
import { nodeAt, troubled, within, wordEnd } from '../../src/edit/spots'
import { field, yamlOf } from '../../src/edit/yaml'

const at = (text: string) => placeOf(text.slice(0, text.indexOf('^')))

test.each<[string, string, ReturnType<typeof placeOf>]>([
  ['the beginning', '^', { path: [], word: '' }],
  ['a key', 'no^', { path: [], word: 'no' }],
  ['a key of a node', 'nodes:\n  a:\n    ser^', { path: ['nodes', 'a'], word: 'ser' }],
  [
    'an empty line, by its indent',
    'nodes:\n  a:\n    service: x\n    ^',
    { path: ['nodes', 'a'], word: '' },
  ],
  ['a line that has left', 'nodes:\n  a:\n    service: x\n  ^', { path: ['nodes'], word: '' }],
  ['a value', 'nodes:\n  a:\n    kind: ti^', { path: ['nodes', 'a'], key: 'kind', word: 'ti' }],
  [
    'a value that is not begun',
    'nodes:\n  a:\n    kind: ^',
    { path: ['nodes', 'a'], key: 'kind', word: '' },
  ],
  [
    'an item',
    'nodes:\n  a:\n    depends_on:\n      - ^',
    { path: ['nodes', 'a', 'depends_on', '[]'], word: '' },
  ],
  ['an item without indent', 'edges:\n- from: a\n  t^', { path: ['edges', '[]'], word: 't' }],
  ['after a list', 'edges:\n- from: a\n  to: b\nst^', { path: [], word: 'st' }],
  ['in braces', 'nodes:\n  a: {service: x, ki^', { path: ['nodes', 'a'], word: 'ki' }],
  [
    'a value in braces',
    'nodes:\n  a: {kind: ti^',
    { path: ['nodes', 'a'], key: 'kind', word: 'ti' },
  ],
  [
    'braces over lines',
    'nodes:\n  a: {service: x,\n    retry: {at^',
    { path: ['nodes', 'a', 'retry'], word: 'at' },
  ],
  [
    'after braces over lines',
    'nodes:\n  a: {service: x,\n    func: y}\n  b:\n    f^',
    { path: ['nodes', 'b'], word: 'f' },
  ],
  [
    'in brackets',
    'nodes:\n  a: {depends_on: [b, c^',
    { path: ['nodes', 'a', 'depends_on', '[]'], word: 'c' },
  ],
  ['in JSON', '{"nodes": {"a": {"kind": "ti^', { path: ['nodes', 'a'], key: 'kind', word: '"ti' }],
  [
    'a key in JSON',
    '{"nodes": {"a": {"service": "x:y, z", "k^',
    { path: ['nodes', 'a'], word: '"k' },
  ],
  ['a comment', 'nodes: # the no^', undefined],
  ['a text of many lines', 'nodes:\n  a:\n    script: |-\n      kin^', undefined],
])('a place is told by what is before it: %s', (_, text, want) => {
  expect(at(text)).toEqual(want)
})

const schema: Schema = {
  $ref: '#/$defs/Flow',
  $defs: {
    Flow: {
      properties: {
        start: { type: 'string' },
        mode: { enum: ['graph', 'dag'] },
        nodes: {
          type: 'object',
          additionalProperties: { anyOf: [{ $ref: '#/$defs/Node' }, { type: 'null' }] },
        },
      },
    },
    Node: {
      properties: {
        kind: { enum: ['timer', 'approval'] },
        deferred: { type: 'boolean' },
        depends_on: { type: 'array', items: { type: 'string' } },
        flow: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/Flow' }] },
      },
    },
  },
}
const labels = (text: string, nodes: string[] = []) =>
  offers(schema, at(text)!, nodes).map(o => o.label)

test('completions follow the schema at a place', () => {
  expect(labels('^')).toEqual(['start', 'mode', 'nodes'])
  expect(labels('mode: ^')).toEqual(['graph', 'dag'])
  expect(labels('nodes:\n  a:\n    ^')).toEqual(['kind', 'deferred', 'depends_on', 'flow'])
  expect(labels('nodes:\n  a: {kind: ^')).toEqual(['timer', 'approval'])
  expect(labels('nodes:\n  a:\n    deferred: ^')).toEqual(['true', 'false'])
  expect(labels('nodes:\n  a:\n    flow:\n      nodes:\n        b:\n          ^')).toEqual([
    'kind',
    'deferred',
    'depends_on',
    'flow',
  ])
  expect(labels('nodes:\n  a:\n    nothing:\n      ^')).toEqual([])
})

test('completions of node references are the existing nodes', () => {
  expect(labels('nodes:\n  a: {depends_on: [^', ['a', 'b'])).toEqual(['a', 'b'])
  expect(labels('start: ^', ['a', 'b'])).toEqual(['a', 'b'])
})

test('columns count characters, not UTF-16 units', () => {
  expect([within('abc', 2), within('ä😀b', 3), within('ab', 9), within('ab', undefined)]).toEqual([
    1, 3, 2, 0,
  ])
  expect([
    wordEnd('kind: odd, x', 6),
    wordEnd('a: "b c"', 3),
    wordEnd('ab', 2),
    wordEnd('a, b', 1),
  ]).toEqual([9, 8, 2, 2])
})

const node = (key: string, line: number, scope = '') => ({ key, line, scope, kind: 'executor' })
const graph = {
  mode: 'dag' as const,
  scopes: [],
  edges: [],
  nodes: [node('a', 2), node('b', 4), node('b', 6, 'b')],
}
const lines = [
  'nodes:',
  '  a:',
  '    service: x',
  '  b:',
  '    flow: {nodes: {',
  '      b: {}',
  '    }}',
  'finally: a',
]

test('a line belongs to the node that contains it', () => {
  expect([1, 2, 3, 4, 6, 8].map(line => nodeAt(graph, lines, line))).toEqual([
    undefined,
    0,
    0,
    1,
    2,
    undefined,
  ])
  expect(nodeAt(undefined, lines, 2)).toBeUndefined()
})

test('a problem belongs to the innermost node in its path', () => {
  const problem = (path: string, line: number) => ({
    path,
    line,
    severity: 'error' as const,
    message: 'odd',
  })
  expect([...troubled(graph, [problem('nodes.a.service', 3)])]).toEqual([0])
  expect([
    ...troubled(graph, [problem('nodes.b.flow.nodes.b.kind', 6), problem('finally', 8)]),
  ]).toEqual([2])
})

test('JSON is converted to equivalent YAML', () => {
  const json =
    '{"name":"Ship it: now","nodes":{"a":{"service":"http:x","params":{"big":12345678901234567890,"yes":"yes","n":1e3}},"b":{"depends_on":["a"],"script":{"text":"one\\n two\\n"},"when":null,"list":[{"deep":{"er":[]}},"$params.x"]}},"empty":{}}'
  expect(yamlOf(json)).toBe(`name: "Ship it: now"
nodes:
  a:
    service: "http:x"
    params: {big: 12345678901234567890, "yes": "yes", "n": 1e3}
  b:
    depends_on: [a]
    script:
      text: |
        one
         two
    when: null
    list:
      - deep: {er: []}
      - $params.x
empty: {}
`)
  expect(field('{"a":1,"definition":{"b":12345678901234567890}}', 'definition')).toBe(
    '{"b":12345678901234567890}',
  )
})

test('a node of the palette is inserted behind the current one', () => {
  const put = (text: string, line: number) => {
    const { at, insert, select } = inserted(text, line, snippets.timer)
    const all = text.slice(0, at) + insert + text.slice(at)
    return [all, all.slice(select, select + 5)]
  }
  const pause = '    kind: timer\n    params: {delay_ms: 5000}\n'
  expect(put('', 1)).toEqual([`nodes:\n  pause:\n${pause}`, 'pause'])
  expect(put('nodes:\n  a:\n    func: x\n  b: {}\nfinally: b\n', 3)).toEqual([
    `nodes:\n  a:\n    func: x\n  pause:\n${pause}  b: {}\nfinally: b\n`,
    'pause',
  ])
  expect(put('nodes:\n  a: {}\n\nfinally: a', 4)[0]).toBe(
    `nodes:\n  a: {}\n  pause:\n${pause}\nfinally: a`,
  )
  expect(put('nodes:\n  pause: {}', 2)[0]).toBe(`nodes:\n  pause: {}\n  pause_2:\n${pause}`)
})
