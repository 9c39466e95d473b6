import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { roles, type Routes } from '../api.gen'
import { call } from './call'

/** Who looks at the pages. */
export function useMe() {
  return useQuery({
    queryKey: ['me'],
    staleTime: 60_000,
    queryFn: ({ signal }) => call('GET /v1/me', {}, signal),
  })
}

/** Whether a role may call a route, by the table that the server decides by. */
export function may(role: string, route: keyof Routes): boolean {
  const who = roles[route]
  return who === undefined || who.split(' ').includes(role)
}

/** The same for who looks at the pages. Until that is known nothing is left out: the server decides anyway. */
export function useMay(): (route: keyof Routes) => boolean {
  const role = useMe().data?.role
  return route => role === undefined || may(role, route)
}

/** What only those see who may call a route. */
export function May({ call, children }: { call: keyof Routes; children: ReactNode }) {
  return useMay()(call) ? <>{children}</> : null
}
