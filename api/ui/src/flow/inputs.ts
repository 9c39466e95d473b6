// The declared params of a flow, as fields of a form. The server validates them: the form only
// helps to write them.

import { Digits, parse, stringify } from '../data/json'
import { texts } from '../texts'

export interface Field {
  name: string
  kind: string
  description?: string
  required: boolean
  choices?: string[]
  pattern?: string
  start: string
  json: boolean // whether the input is JSON
  text: (value: unknown) => string
}

interface Schema {
  type?: string | string[]
  description?: string
  default?: unknown
  enum?: unknown[]
  pattern?: string
  properties?: Record<string, Schema>
  required?: string[]
}

/** fieldsOf returns the fields of an object's JSON Schema; undefined if it declares none. */
export function fieldsOf(schema: unknown): Field[] | undefined {
  const s = schema as Schema | undefined
  if (!s?.properties) return undefined
  return Object.entries(s.properties).map(([name, p]) => {
    const words = p.enum?.every(c => typeof c === 'string')
    const kind = Array.isArray(p.type)
      ? p.type.join(texts.params.or)
      : (p.type ?? (words ? 'string' : 'any'))
    const json = !['string', 'integer', 'number', 'boolean'].includes(kind)
    const text = (value: unknown) =>
      value === undefined ? '' : kind === 'string' ? String(value) : stringify(value)
    const choices = p.enum?.every(
      c => typeof c === 'string' || typeof c === 'number' || c instanceof Digits,
    )
      ? p.enum.map(String)
      : undefined
    const required = Boolean(s.required?.includes(name)) && p.default === undefined
    return {
      name,
      kind,
      description: p.description,
      required,
      choices,
      pattern: p.pattern,
      json,
      text,
      start: text(p.default) || (required && choices ? choices[0] : ''),
    }
  })
}

/**
 * paramsOf returns the params to send, or the problem with the input. Empty fields are not sent, so
 * that the defaults apply.
 */
export function paramsOf(
  fields: Field[] | undefined,
  form: Record<string, string>,
  text: string,
): { params?: unknown; wrong?: string } {
  if (!fields) {
    try {
      return { params: text.trim() === '' ? {} : parse(text) }
    } catch (e) {
      return { wrong: texts.params.invalid((e as Error).message) }
    }
  }
  const params: Record<string, unknown> = {}
  for (const f of fields) {
    const written = form[f.name] ?? ''
    if (written === '') continue
    if (f.kind === 'string') params[f.name] = written
    else {
      try {
        params[f.name] = parse(written)
      } catch {
        return {
          wrong: f.json ? texts.params.mustBeJSON(f.name) : texts.params.mustBe(f.name, f.kind),
        }
      }
    }
  }
  return { params }
}

/** referred returns the keys of params that a definition refers to. */
export function referred(definition: unknown): string[] {
  const text = stringify(definition ?? {})
  return [...new Set([...text.matchAll(/\$(?:params|run)\.([A-Za-z_]\w*)/g)].map(m => m[1]))]
}
