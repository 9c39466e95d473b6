import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  RouterProvider,
} from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Away, Refused, whenBack } from './data/call'
import { paint } from './data/prefs'
import {
  compareView,
  flowView,
  parse,
  print,
  taskFilter,
  taskView,
  workersView,
} from './data/search'
import { Tasks } from './pages/Tasks'
import { Frame, Missing } from './parts/Shell'
import './style.css'

paint()

const root = createRootRoute({ component: Frame, notFoundComponent: Missing })
const routes = [
  createRoute({
    getParentRoute: () => root,
    path: '/',
    component: lazyRouteComponent(() => import('./pages/Overview'), 'Overview'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/tasks',
    component: Tasks,
    validateSearch: taskFilter,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/tasks/$task',
    component: lazyRouteComponent(() => import('./pages/Task'), 'Task'),
    validateSearch: taskView,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/compare',
    component: lazyRouteComponent(() => import('./pages/Compare'), 'Compare'),
    validateSearch: compareView,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/flows',
    component: lazyRouteComponent(() => import('./pages/Flows'), 'Flows'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/flows/$flow',
    component: lazyRouteComponent(() => import('./pages/Flow'), 'Flow'),
    validateSearch: flowView,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/edit',
    component: lazyRouteComponent(() => import('./pages/Edit'), 'EditNew'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/edit/$flow',
    component: lazyRouteComponent(() => import('./pages/Edit'), 'Edit'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/approvals',
    component: lazyRouteComponent(() => import('./pages/Approvals'), 'Approvals'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/approvals/$approval',
    component: lazyRouteComponent(() => import('./pages/Approval'), 'Approval'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/approve/$approval',
    component: lazyRouteComponent(() => import('./pages/Approval'), 'Linked'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workers',
    component: lazyRouteComponent(() => import('./pages/Workers'), 'Workers'),
    validateSearch: workersView,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/schedules',
    component: lazyRouteComponent(() => import('./pages/Schedules'), 'Schedules'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/cluster',
    component: lazyRouteComponent(() => import('./pages/Cluster'), 'Cluster'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/settings',
    component: lazyRouteComponent(() => import('./pages/Settings'), 'Settings'),
  }),
]

const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: '/ui',
  parseSearch: parse,
  stringifySearch: print,
  scrollRestoration: true,
  defaultPreload: 'intent',
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

/**
 * failed checks the server at once after certain errors, instead of at the next regular check.
 * After a 401 the page then asks for a token, and without an answer it shows that the server is
 * away.
 */
function failed(error: Error) {
  const known = queries.getQueryState(['info'])?.status === 'success'
  if (
    known &&
    (error instanceof Away || (error instanceof Refused && error.problem.status === 401))
  )
    void queries.invalidateQueries({ queryKey: ['info'] }, { cancelRefetch: false })
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: failed }),
  mutationCache: new MutationCache({ onError: failed }),
  defaultOptions: {
    queries: {
      staleTime: 1000,
      retry: (times, error) =>
        // another attempt would be refused again
        times < 2 && !(error instanceof Refused && error.problem.status < 500),
    },
  },
})

whenBack(
  () =>
    void queries.refetchQueries({ type: 'active', predicate: q => q.state.error instanceof Away }),
)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
