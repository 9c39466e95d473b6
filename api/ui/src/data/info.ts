import { useQuery } from '@tanstack/react-query'
import { Away, call } from './call'
import { learnSkew } from './time'

/**
 * useInfo returns the server's properties and learns its time. While the server does not answer, it
 * is asked every three seconds.
 */
export function useInfo(refetchInterval: number | false = false) {
  return useQuery({
    queryKey: ['info'],
    refetchInterval: q =>
      refetchInterval && (q.state.error instanceof Away ? 3000 : refetchInterval),
    queryFn: async ({ signal }) => {
      const asked = Date.now()
      const found = await call('GET /v1/info', {}, signal)
      learnSkew(Date.parse(found.store_time), asked)
      return found
    },
  })
}
