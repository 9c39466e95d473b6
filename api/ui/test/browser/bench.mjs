// Measures what the pages cost on large tasks: node test/browser/bench.mjs. Of three runs the best one counts; times of the main thread are those
// that Chromium itself tells (Performance.getMetrics), so that a busy machine changes them less than a clock would.
import { openPage, startBrowser, startMember, until } from './harness.mjs'

const rounds = 3
const member = await startMember()
let browser

/** A dag of so many nodes in rows of ten, each of which waits for two of the row before. */
function dag(n) {
  const nodes = {}
  for (let i = 0; i < n; i++) {
    const before = i < 10 ? [] : [i - 10, i - 10 + ((i * 7) % 10 === 9 ? 0 : 1)].filter((d, k, all) => d < i && all.indexOf(d) === k).map(d => `n${d}`)
    nodes[`n${i}`] = { func: 'log_result', prep: { input_key: '$run.x' }, ...(before.length > 0 ? { depends_on: before } : {}) }
  }
  return { nodes }
}

async function opened(path, done) {
  const { page, close } = await openPage(browser)
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable')
  await page.goto(member.url + path)
  await done(page)
  const metrics = Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map(m => [m.name, m.value]))
  const told = await page.evaluate(() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime, layout: performance.getEntriesByName('layout').at(-1)?.duration,
  }))
  await close()
  return { ...told, main: 1000 * metrics.TaskDuration, script: 1000 * metrics.ScriptDuration, heap: metrics.JSHeapUsedSize / 2 ** 20 }
}

async function best(name, path, done) {
  const runs = []
  for (let i = 0; i < rounds; i++) runs.push(await opened(path, done))
  const least = key => Math.min(...runs.map(r => r[key] ?? Infinity))
  const ms = v => (Number.isFinite(v) ? `${Math.round(v)} ms` : '–')
  console.log(`${name.padEnd(34)} first paint ${ms(least('paint')).padStart(8)}  layout ${ms(least('layout')).padStart(8)}  script ${ms(least('script')).padStart(8)}  main thread ${ms(least('main')).padStart(8)}  heap ${Math.round(least('heap'))} MiB`)
}

try {
  browser = await startBrowser()
  await member.start('greet', { name: 'Ada' })
  await best('list of tasks', '/ui/tasks', page => page.getByRole('link', { name: /^task-/ }).first().waitFor())
  for (const n of [10, 1000, 10_000]) {
    const response = await fetch(`${member.url}/v1/flows/dag-${n}`, { method: 'PUT', body: JSON.stringify(dag(n)), headers: { 'Content-Type': 'application/json' } })
    if (!response.ok) {
      console.log(`a dag of ${n} nodes was refused: ${(await response.text()).slice(0, 300)}`)
      continue
    }
    const id = await member.start(`dag-${n}`, { x: 1 })
    await until(async () => (await member.api('GET', `/v1/tasks/${id}?values=none`)).state === 'completed', `the dag of ${n} ends`, 180_000)
    await best(`finished task of ${n} nodes`, `/ui/tasks/${id}`, async page => {
      await page.waitForFunction(() => performance.getEntriesByName('layout').length > 0, undefined, { timeout: 60_000 })
      await page.waitForTimeout(500)
    })
  }
} finally {
  await browser?.close()
  await member.stop()
}
