import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { roles, type Routes } from '../api.gen'
import { call } from './call'

/** useMe returns the user of the pages. */
export function useMe() {
  return useQuery({
    queryKey: ['me'],
    staleTime: 60_000,
    queryFn: ({ signal }) => call('GET /v1/me', {}, signal),
  })
}

/** may reports whether a role may call a route, by the table that the server uses. */
export function may(role: string, route: keyof Routes): boolean {
  const who = roles[route]
  return who === undefined || who.split(' ').includes(role)
}

/**
 * useMay returns a check for the user's own role. Until the role is known, everything is allowed:
 * the server decides anyway.
 */
export function useMay(): (route: keyof Routes) => boolean {
  const role = useMe().data?.role
  return route => role === undefined || may(role, route)
}

/** May shows its children only to users that may call a route. */
export function May({ call, children }: { call: keyof Routes; children: ReactNode }) {
  return useMay()(call) ? <>{children}</> : null
}
