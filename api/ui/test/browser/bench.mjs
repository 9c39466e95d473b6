// Measures the cost of the pages on large tasks: node test/browser/bench.mjs. The best of three
// runs counts. Times of the main thread are those of Chromium itself (Performance.getMetrics),
// because a busy machine affects them less than wall-clock times.
import { openPage, startBrowser, startMember, until } from './harness.mjs'

const rounds = 3
const member = await startMember()
let browser

/**
 * dag returns a dag of n nodes in rows of ten. Each node depends on two nodes of the row before.
 */
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

/**
 * smooth measures the smoothness of a page for five seconds: the frames, the longest frame, and the
 * longest task of the main thread.
 */
function smooth() {
  return new Promise(done => {
    const frames = [], tasks = []
    new PerformanceObserver(list => tasks.push(...list.getEntries().map(e => e.duration))).observe({ type: 'longtask' })
    const began = performance.now()
    let last = began
    const frame = now => {
      frames.push(now - last)
      last = now
      if (now - began < 5000) requestAnimationFrame(frame)
      else done({ frames: frames.length, worst: Math.max(...frames), longest: Math.max(0, ...tasks) })
    }
    requestAnimationFrame(frame)
  })
}

/** live measures the page of a task that runs as fast as the engine allows. */
async function live(name, flow) {
  await publish('busy', flow)
  const runs = []
  let rate = 0
  for (let i = 0; i < rounds; i++) {
    const id = await member.start('busy', {})
    const { page, close } = await openPage(browser)
    await page.goto(`${member.url}/ui/tasks/${id}`)
    await page.waitForFunction(() => performance.getEntriesByName('layout').length > 0)
    const steps = async () => (await member.api('GET', `/v1/tasks/${id}?values=none`)).steps
    const before = await steps(), began = performance.now()
    runs.push(await page.evaluate(smooth))
    rate = Math.max(rate, (await steps() - before) / (performance.now() - began) * 1000)
    await close()
    await member.api('POST', `/v1/tasks/${id}/cancel`, {})
  }
  const best = runs.toSorted((a, b) => b.frames - a.frames)[0]
  console.log(`${name.padEnd(34)} ${Math.round(rate).toLocaleString('en')} steps/s  ${best.frames} frames in 5 s, the worst ${Math.round(best.worst)} ms, the longest task ${Math.round(best.longest)} ms`)
}

async function publish(slug, definition) {
  await member.api('PUT', `/v1/flows/${slug}`, definition)
}

async function ended(id, what) {
  await until(async () => (await member.api('GET', `/v1/tasks/${id}?values=none`)).state === 'completed', what, 180_000)
}

const drawn = async page => {
  await page.waitForFunction(() => performance.getEntriesByName('layout').length > 0, undefined, { timeout: 60_000 })
  await page.waitForTimeout(500)
}

try {
  browser = await startBrowser()
  await member.start('greet', { name: 'Ada' })
  await best('list of tasks', '/ui/tasks', page => page.getByRole('link', { name: /^task-/ }).first().waitFor())
  for (const n of [10, 1000, 10_000]) {
    await publish(`dag-${n}`, dag(n))
    const id = await member.start(`dag-${n}`, { x: 1 })
    await ended(id, `the dag of ${n} ends`)
    await best(`finished task of ${n} nodes`, `/ui/tasks/${id}`, drawn)
  }
  await publish('units', { start: 'each', nodes: { each: { kind: 'foreach', exec_type: 'local_func', func: 'upper', parallel_mode: 'concurrent', prep: { input_key: '$params.items' } } } })
  const many = await member.start('units', { items: Array.from({ length: 100_000 }, (_, i) => `u${i}`) })
  await ended(many, 'the fan-out ends')
  await best('fan-out of 100,000 units', `/ui/tasks/${many}?node=each`, async page => {
    await page.getByRole('img', { name: /^100,?000 units/ }).waitFor({ timeout: 60_000 })
  })
  const large = await member.start('greet', { name: 'Ada', more: 'x'.repeat(1_000_000) })
  await ended(large, 'the task with a large value ends')
  await best('a value of 1 MB', `/ui/tasks/${large}?tab=values`, async page => {
    await page.getByRole('link', { name: /^Open full value/ }).first().waitFor({ timeout: 60_000 })
  })
  const turn = (to, n) => ({ kind: 'choice', choice_cases: [], default_action: to, ...n })
  await live('a task under way', { start: 'a', nodes: { a: turn('on'), b: turn('back') }, edges: [{ from: 'a', action: 'on', to: 'b' }, { from: 'b', action: 'back', to: 'a' }] })
} finally {
  await browser?.close()
  await member.stop()
}
