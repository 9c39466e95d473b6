import type { Problem, Routes } from '../api.gen'
import { parse, stringify } from './json'
import { texts } from '../texts'

/** What the API has refused: what is wrong, where, and what to do. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.what || problem.title)
  }
}

/** Nobody answers: the member is away, or the network is. */
export class Away extends Error {
  constructor(cause: unknown) {
    super(texts.trouble.noAnswer, { cause })
  }
}

let away = false
const listeners = new Set<() => void>()

/** Tells whenever something is answered again after something was not. */
export function whenBack(tell: () => void): () => void {
  listeners.add(tell)
  return () => listeners.delete(tell)
}

type Takes<R> = Omit<R, 'answer'>
type Loose = {
  path?: Record<string, unknown>
  query?: Record<string, unknown>
  header?: Record<string, string>
  body?: unknown
}

/** Asks a route of the API. What it takes and answers is known by its name. */
export async function call<K extends keyof Routes>(
  route: K,
  input: Takes<Routes[K]>,
  signal?: AbortSignal,
): Promise<Routes[K]['answer']> {
  const response = await ask(route, input, signal)
  return (
    response.status === 204 ? undefined : parse(await heard(response.text()))
  ) as Routes[K]['answer']
}

/** The same for who wants to read the answer himself, as it was sent. */
export async function ask<K extends keyof Routes>(
  route: K,
  input: Takes<Routes[K]>,
  signal?: AbortSignal,
): Promise<Response> {
  const { path, query, header, body } = input as Loose
  const [method, pattern] = route.split(' ')
  const address = pattern.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(path?.[name])),
  )
  const response = await heard(
    fetch(address + queryOf(query), {
      method,
      signal,
      body: body === undefined ? undefined : stringify(body),
      headers: {
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...header,
      },
    }),
  )
  if (away) {
    away = false
    for (const tell of listeners) tell()
  }
  if (!response.ok) throw new Refused(await problemOf(response))
  return response
}

/** What browsers say when nothing is answered means nothing to people, and each says something else. */
async function heard<T>(coming: Promise<T>): Promise<T> {
  try {
    return await coming
  } catch (problem) {
    if (!(problem instanceof TypeError)) throw problem
    away = true
    throw new Away(problem)
  }
}

function queryOf(query: Record<string, unknown> = {}): string {
  const out = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== '') out.append(name, String(one))
    }
  }
  const text = out.toString()
  return text && '?' + text
}

async function problemOf(response: Response): Promise<Problem> {
  const otherwise = {
    title: response.statusText,
    status: response.status,
    kind: 'internal' as const,
    what: texts.trouble.status(response.status, response.statusText),
  }
  try {
    return { ...otherwise, ...(parse(await response.text()) as Problem) }
  } catch {
    return otherwise
  }
}
