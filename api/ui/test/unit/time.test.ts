import { expect, test, vi } from 'vitest'
import { learnSkew, now } from '../../src/data/time'

test('the clock of the server is known as well as its answers are quick', () => {
  vi.useFakeTimers({ now: 1_000_000 })
  const ahead = () => now() - Date.now()
  learnSkew(1_600_000, 999_900)
  expect(ahead()).toBe(600_000)
  learnSkew(1_590_000, 980_000) // slow: it was read 10 s ago, as far as we know
  expect(ahead()).toBe(600_000)
  vi.setSystemTime(50_000_000) // the computer slept meanwhile
  learnSkew(1_600_500, 1_000_000)
  expect(ahead()).toBe(600_000)
  learnSkew(50_000_000, 49_999_990) // somebody has set it right
  expect(ahead()).toBeLessThan(20)
})
