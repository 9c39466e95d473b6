import { useMutation, useQueryClient } from '@tanstack/react-query'
import { note, requestID } from '../data/acts'
import { call, Refused } from '../data/call'
import { parse } from '../data/json'
import { texts } from '../texts'

/** useTry starts a task of an unpublished text. */
export function useTry() {
  return useMutation({
    mutationFn: (t: { text: string; slug: string; input: string }) => {
      let params: unknown
      try {
        params = t.input.trim() === '' ? {} : parse(t.input)
      } catch (e) {
        throw new Error(texts.params.invalid((e as Error).message))
      }
      return call('POST /v1/try', {
        body: {
          definition: t.text,
          ...(t.slug ? { slug: t.slug } : {}),
          params,
          idempotency_key: requestID(),
        },
      })
    },
  })
}

/**
 * usePublish publishes a text on top of the version that it began with. If another version was
 * published meanwhile, it calls overtaken.
 */
export function usePublish(overtaken: () => void, done: (version: number) => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (p: { slug: string; text: string; after: number }) =>
      call('PUT /v1/flows/{flow}', {
        path: { flow: p.slug },
        query: { after: p.after },
        body: { definition: p.text },
      }),
    onSuccess: (made, p) => {
      const { published, unchanged } = texts.edit
      note({ text: (made.created ? published : unchanged)(made.version.number, p.slug) })
      for (const key of ['latest', 'flow', 'flows', 'versions'])
        void queries.invalidateQueries({ queryKey: [key] })
      done(made.version.number)
    },
    onError: problem => {
      if (problem instanceof Refused && problem.problem.field === 'query.after') overtaken()
    },
  })
}
