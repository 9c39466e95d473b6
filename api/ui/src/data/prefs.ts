import { useSyncExternalStore } from 'react'

/** What one person likes; it stays in the browser. Whatever others must see is in the address instead. */
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
    return {} // nobody but the browser's user can have written it
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

/** Light or dark, as chosen or as the system has it. */
export function paint() {
  document.documentElement.style.colorScheme = prefs.theme === 'system' ? 'light dark' : prefs.theme
}
