import { useEffect, useState } from 'react'
import { usePrefs } from '../data/prefs'
import { ahead, ago, elapsed, exact } from '../data/time'
import { texts } from '../texts'

/** Lets what tells relative times be told again each second. */
export function useTick(ms = 1000) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick(n => n + 1), ms)
    return () => clearInterval(timer)
  }, [ms])
}

/** A time as people say it, with the exact one at hand. */
export function When({ at }: { at?: string }) {
  usePrefs() // the zone
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {ahead(at) ?? ago(at)}
    </time>
  ) : null
}

/** For how long something has lasted, with the exact start at hand. */
export function Since({ at }: { at?: string }) {
  usePrefs() // the zone
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {texts.time.waited(elapsed(at))}
    </time>
  ) : null
}
