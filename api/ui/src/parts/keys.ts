import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { getPrefs, setPrefs } from '../data/prefs'
import { follow } from '../data/socket'
import { texts } from '../texts'

/** The pages in the navigation bar, each with its key after g. */
export const places = [
  { to: '/', name: texts.places.overview, icon: 'overview', key: 'o' },
  { to: '/tasks', name: texts.places.tasks, icon: 'tasks', key: 't' },
  { to: '/flows', name: texts.places.flows, icon: 'flows', key: 'f' },
  { to: '/approvals', name: texts.places.approvals, icon: 'approval', key: 'a' },
  { to: '/workers', name: texts.places.workers, icon: 'workers', key: 'w' },
  { to: '/schedules', name: texts.places.schedules, icon: 'schedules', key: 's' },
  { to: '/cluster', name: texts.places.cluster, icon: 'cluster', key: 'c' },
  { to: '/settings', name: texts.places.settings, icon: 'settings', key: 'm' },
] as const

interface Does {
  help: () => void
  search: () => void
}

/**
 * useKeys handles the keys that work on every page. They are ignored while the user types, and the
 * user can turn them off.
 */
export function useKeys(does: Does) {
  const go = useNavigate()
  const latest = useRef(does)
  latest.current = does
  useEffect(() => {
    let began = 0 // time when g was pressed
    const pressed = (e: KeyboardEvent) => {
      if (!getPrefs().keys || e.ctrlKey || e.metaKey || e.altKey || writing(e.target)) return
      const place = performance.now() - began < 1500 ? places.find(p => p.key === e.key) : undefined
      began = e.key === 'g' ? performance.now() : 0
      if (place) void go({ to: place.to })
      else if (e.key === '?') latest.current.help()
      else if (e.key === '/') latest.current.search()
      else if (e.key === 't') setPrefs({ theme: getPrefs().theme === 'dark' ? 'light' : 'dark' })
      else if (e.key === 'u') setPrefs({ zone: getPrefs().zone === 'UTC' ? 'local' : 'UTC' })
      else if (e.key === 'l') {
        setPrefs({ live: !getPrefs().live })
        follow()
      } else return
      e.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [go])
}

/** usePageKeys handles the keys of one page. */
export function usePageKeys(keys: Record<string, () => void>) {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (
        !getPrefs().keys ||
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        writing(e.target) ||
        document.querySelector('dialog[open]')
      )
        return
      const act = latest.current[e.key]
      if (!act || (e.key === 'Enter' && acts(e.target))) return
      act()
      e.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}

/** acts reports whether Enter has an effect of its own on an element. */
function acts(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button, summary') !== null
}

/**
 * writing reports whether an element takes typed keys. Checkboxes do not, and the checkbox of a
 * dialog keeps the focus for a moment after the dialog closes.
 */
function writing(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'button', 'submit'].includes(target.type)
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}
