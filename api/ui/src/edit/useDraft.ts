import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Graph } from '../data/plan'
import { ask, call, Refused } from '../data/call'
import { draftOf, keepDraft, type Draft } from './drafts'
import { looksLikeJSON } from './editor'
import type { Schema } from './place'
import { field, yamlOf } from './yaml'
import { parse, stringify } from '../data/json'
import { texts } from '../texts'

/** Latest is the newest published version; number 0 if there is none. */
export interface Latest {
  number: number
  json: string
}

export async function latestOf(flow: string, signal?: AbortSignal): Promise<Latest> {
  try {
    const text = await (
      await ask(
        'GET /v1/flows/{flow}/versions/{version}',
        { path: { flow, version: 'latest' } },
        signal,
      )
    ).text()
    return { number: Number(field(text, 'number')), json: field(text, 'definition') ?? '' }
  } catch (problem) {
    if (problem instanceof Refused && problem.problem.status === 404) return { number: 0, json: '' }
    throw problem
  }
}

const beginning = `${texts.edit.beginning}
nodes:
  wait:
    kind: timer
    params: {delay_ms: 1000}
`

/**
 * begun returns the text to edit: the draft in this browser, else the published version, else a
 * template.
 */
export function begun(flow: string, latest: Latest): Draft {
  const kept = draftOf(flow)
  if (kept && (kept.text !== kept.published || kept.after === latest.number)) return kept
  const text = latest.number > 0 ? yamlOf(latest.json) : beginning
  return {
    text,
    published: latest.number > 0 ? text : '',
    after: latest.number,
    input: kept?.input,
  }
}

/**
 * publishedAs returns the published version for a comparison with a draft. It is the text that this
 * browser published, or else a rendering in the draft's format.
 */
export function publishedAs(draft: Draft, latest: Latest): string {
  if (latest.number === 0) return ''
  if (latest.number === draft.after) return draft.published
  return looksLikeJSON(draft.text) ? stringify(parse(latest.json), 2) : yamlOf(latest.json)
}

/** useDraft holds a draft and keeps it in the browser, so that it survives the page. */
export function useDraft(flow: string, latest: Latest) {
  const [first] = useState(() => begun(flow, latest))
  const [draft, setDraft] = useState(first)
  useEffect(() => {
    if (draft !== first) keepDraft(flow, draft)
  }, [flow, draft, first])
  return [draft, (change: Partial<Draft>) => setDraft(old => ({ ...old, ...change }))] as const
}

/**
 * useCheck returns the server's check of a text, shortly after the last change, and the newest
 * graph that could be drawn.
 */
export function useCheck(text: string, slug: string | undefined) {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 250)
    return () => clearTimeout(timer)
  }, [text])
  const check = useQuery({
    queryKey: ['validate', slug, settled],
    placeholderData: keepPreviousData,
    staleTime: 5000,
    gcTime: 10_000,
    queryFn: ({ signal }) =>
      call(
        'POST /v1/validate',
        { query: { graph: true }, body: { definition: settled, ...(slug ? { slug } : {}) } },
        signal,
      ),
  })
  const graph = useRef<Graph>(undefined)
  graph.current = check.data?.graph ?? graph.current
  return {
    check,
    graph: graph.current,
    current: settled === text && check.isSuccess && !check.isPlaceholderData,
  }
}

export function useSchema() {
  return useQuery({
    queryKey: ['schema'],
    staleTime: Infinity,
    queryFn: async ({ signal }) =>
      (await (await fetch('/v1/schema/flow.json', { signal })).json()) as Schema,
  }).data
}
