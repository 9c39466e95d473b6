import { expect, test, vi } from 'vitest'
import { learnSkew, now } from '../../src/data/time'

test("the server's clock is known to the precision of its answers", () => {
  vi.useFakeTimers({ now: 1_000_000 })
  const ahead = () => now() - Date.now()
  learnSkew(1_600_000, 999_900)
  expect(ahead()).toBe(600_000)
  learnSkew(1_590_000, 980_000) // slow: as far as known, the server read the time up to 10 s ago
  expect(ahead()).toBe(600_000)
  vi.setSystemTime(50_000_000) // the computer slept meanwhile
  learnSkew(1_600_500, 1_000_000)
  expect(ahead()).toBe(600_000)
  learnSkew(50_000_000, 49_999_990) // the clock was corrected
  expect(ahead()).toBeLessThan(20)
})
