import { expect, test } from 'vitest'
import { Digits, parse, stringify } from '../../src/data/json'
import { fieldsOf, paramsOf } from '../../src/flow/inputs'
import { read } from '../../src/task/Asks'

test('reading and writing JSON keeps every number', () => {
  for (const text of [
    '9007199254740993',
    '-10000000000000000001',
    '[0.1234567890123456789,1e400,-1e-400,1e99999999999]',
    '{"a":{"b":[10000000000000000001]}}',
    '{"text":"9007199254740993","escaped":"\\\\\\"9007199254740993","n":9007199254740993}',
    '"9007199254740993"',
  ])
    expect(stringify(parse(text))).toBe(text)
  expect(stringify(parse('{"n": 9007199254740993}'), 2)).toBe('{\n  "n": 9007199254740993\n}')
})

test('a number that a double holds exactly stays a number', () => {
  expect(parse('[1,-0.5,1e21,9007199254740992,1.50,100000000000000000000,0.0000001]')).toEqual([
    1, -0.5, 1e21, 9007199254740992, 1.5, 1e20, 1e-7,
  ])
  expect(parse('9007199254740993')).toEqual(new Digits('9007199254740993'))
  expect(stringify(undefined)).toBe('')
})

test('invalid JSON is refused', () => {
  for (const text of [
    '',
    '{',
    '9007199254740993x',
    '012345678901234567',
    '{"a":9007199254740993,}',
  ])
    expect(() => parse(text)).toThrow(SyntaxError)
})

test('forms send numbers as written', () => {
  expect(stringify(paramsOf(undefined, {}, '{"id":9007199254740993}').params)).toBe(
    '{"id":9007199254740993}',
  )
  const fields = fieldsOf(
    parse(
      '{"properties":{"id":{"type":"integer","default":10000000000000000001},"pick":{"enum":[9007199254740993,1]}}}',
    ),
  )
  expect(fields?.[0].start).toBe('10000000000000000001')
  expect(fields?.[1].choices).toEqual(['9007199254740993', '1'])
  expect(stringify(paramsOf(fields, { id: '9007199254740993', pick: '' }, '').params)).toBe(
    '{"id":9007199254740993}',
  )
  expect(stringify(read('9007199254740993'))).toBe('9007199254740993')
  expect(read('word')).toBe('word')
})
