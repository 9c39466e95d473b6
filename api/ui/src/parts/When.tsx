import { useEffect, useState } from 'react'
import { usePrefs } from '../data/prefs'
import { ahead, ago, elapsed, exact } from '../data/time'
import { texts } from '../texts'

/** useTick renders a component with relative times again each second. */
export function useTick(ms = 1000) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick(n => n + 1), ms)
    return () => clearInterval(timer)
  }, [ms])
}

/** When shows a relative time, with the exact one as its title. */
export function When({ at }: { at?: string }) {
  usePrefs() // renders again when the zone changes
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {ahead(at) ?? ago(at)}
    </time>
  ) : null
}

/** Since shows how long something has lasted, with the exact start as its title. */
export function Since({ at }: { at?: string }) {
  usePrefs() // renders again when the zone changes
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {texts.time.waited(elapsed(at))}
    </time>
  ) : null
}
