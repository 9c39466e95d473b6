import { useQuery } from '@tanstack/react-query'
import { call } from './call'
import { learnSkew } from './time'

/** What the server is, and what time it has. */
export function useInfo(refetchInterval: number | false = false) {
  return useQuery({
    queryKey: ['info'], refetchInterval,
    queryFn: async ({ signal }) => {
      const asked = Date.now()
      const found = await call('GET /v1/info', {}, signal)
      learnSkew(Date.parse(found.now), asked)
      return found
    },
  })
}
