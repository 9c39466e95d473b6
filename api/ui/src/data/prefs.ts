import { useSyncExternalStore } from 'react'

/**
 * Prefs holds one user's preferences, which stay in the browser. State that others must see is in
 * the address instead.
 */
export interface Prefs {
  theme: 'system' | 'light' | 'dark'
  zone: string
  live: boolean
  keys: boolean
  folded: boolean
}

const name = 'troupe.prefs'
const usual: Prefs = { theme: 'system', zone: 'local', live: true, keys: true, folded: false }
const listeners = new Set<() => void>()
let prefs: Prefs = { ...usual, ...read() }

function read(): Partial<Prefs> {
  try {
    return JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Prefs>
  } catch {
    return {} // only the browser's user can have written it
  }
}

export function setPrefs(change: Partial<Prefs>) {
  prefs = { ...prefs, ...change }
  localStorage.setItem(name, JSON.stringify(prefs))
  paint()
  for (const tell of listeners) tell()
}

export function getPrefs(): Prefs {
  return prefs
}

export function usePrefs(): Prefs {
  return useSyncExternalStore(tell => {
    listeners.add(tell)
    return () => listeners.delete(tell)
  }, getPrefs)
}

/** paint applies the light or dark theme, as chosen or as the system has it. */
export function paint() {
  document.documentElement.style.colorScheme = prefs.theme === 'system' ? 'light dark' : prefs.theme
}
