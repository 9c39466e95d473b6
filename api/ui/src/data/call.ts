import type { Problem, Routes } from '../api.gen'
import { parse, stringify } from './json'
import { texts } from '../texts'

/** Refused is an error of the API: the problem, its place, and the remedy. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.message || problem.title)
  }
}

/** Away means that no answer came: the member or the network is down. */
export class Away extends Error {
  constructor(cause: unknown) {
    super(texts.trouble.noAnswer, { cause })
  }
}

let away = false
const listeners = new Set<() => void>()

/** whenBack calls the function whenever a request is answered after one that was not. */
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

/**
 * call sends a request to a route of the API. The name of the route determines the types of input
 * and answer.
 */
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

/** ask is call for callers that read the answer themselves, as it was sent. */
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

/**
 * heard replaces the browser's error for a missing answer, which differs between browsers and does
 * not help the user.
 */
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
    type: 'urn:troupe:error:internal',
    title: response.statusText,
    status: response.status,
    code: 'internal' as const,
    message: texts.trouble.status(response.status, response.statusText),
  }
  try {
    return { ...otherwise, ...(parse(await response.text()) as Problem) }
  } catch {
    return otherwise
  }
}
