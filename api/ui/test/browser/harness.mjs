// A private member, and a browser that opens its pages.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const here = new URL('..', import.meta.url).pathname

/**
 * startMember starts `troupe dev` with the flows beside these tests, in a folder that is removed
 * afterwards.
 */
export async function startMember({ token, flags = [] } = {}) {
  const program = process.env.TROUPE
  if (!program) throw new Error('TROUPE has to name the program; scripts/ui.sh builds it')
  const dir = mkdtempSync(join(tmpdir(), 'troupe-ui-'))
  cpSync(join(here, 'flows'), join(dir, 'flows'), { recursive: true })
  const member = spawn(program, ['dev', '--listen', '127.0.0.1:0', ...(token ? ['--token', token] : []), ...flags], { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  const url = await new Promise((found, failed) => {
    const hear = chunk => {
      said += chunk
      const address = /Troupe serves (\S+) from/.exec(said)
      if (address) found(address[1])
    }
    member.stdout.on('data', hear)
    member.stderr.on('data', hear)
    member.on('exit', code => failed(new Error(`the member has ended (${code}):\n${said}`)))
  })
  const stop = async () => {
    const ended = new Promise(done => member.once('exit', done))
    member.kill('SIGINT')
    await ended
    rmSync(dir, { recursive: true, force: true })
  }
  const api = async (method, path, body) => {
    const response = await fetch(url + path, {
      method, body: body === undefined ? undefined : JSON.stringify(body),
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }
  const started = { url, stop, api, start: async (flow, params, more = {}) => (await api('POST', '/v1/tasks', { flow, params, ...more })).id }
  const there = async () => (await api('GET', '/v1/flows')).items.length >= 5 && (await api('GET', '/v1/workers')).items.length >= 2
  await until(there, `flows and workers are there\n${said}`).catch(async e => {
    await stop()
    throw e
  })
  return started
}

/** patience is the limit for anything expected soon, long enough for a machine under load. */
export const patience = 30_000

export async function until(is, what, ms = patience) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(50)) if (await is()) return
  throw new Error(`not within ${ms} ms: ${what}`)
}

/** seed starts tasks in all states that a page must show. */
export async function seed(m) {
  const tasks = { done: [], failed: [] }
  for (const name of ['Ada', 'Grace', 'Edsger', 'Barbara', 'Tony']) tasks.done.push(await m.start('greet', { name }, { labels: { customer: name.toLowerCase() } }))
  for (const amount of [12, 90]) tasks.failed.push(await m.start('refused', { amount }, { labels: { customer: 'ada' } }))
  const order = n => ({ order: `A-${n}`, amount: 12 * n, lines: [1, 2, 3, 4, 5] })
  tasks.approved = await m.start('order', order(1), { labels: { customer: 'grace' } })
  tasks.refused = await m.start('order', order(2))
  tasks.waiting = await m.start('order', order(3), { labels: { customer: 'ada', region: 'north' } })
  tasks.queued = await m.start('nightly', { size: 400, parts: [1, 2, 3, 4, 5, 6, 7, 8] })
  tasks.paused = await m.start('order', order(4))
  const waits = (id, kind) => until(async () => (await m.api('GET', `/v1/tasks/${id}/waiting`)).waits.some(w => w.kind === kind), `${id} waits for ${kind}`)
  for (const id of [tasks.approved, tasks.refused, tasks.waiting, tasks.paused]) await waits(id, 'approval')
  await waits(tasks.queued, 'job')
  await m.api('POST', `/v1/tasks/${tasks.approved}/signal`, { key: 'decision', value: true })
  await m.api('POST', `/v1/tasks/${tasks.refused}/signal`, { key: 'decision', value: false })
  await m.api('POST', `/v1/tasks/${tasks.paused}/pause`)
  const over = async id => ['completed', 'failed'].includes((await m.api('GET', `/v1/tasks/${id}`)).state)
  for (const id of [...tasks.done, ...tasks.failed, tasks.approved, tasks.refused]) await until(() => over(id), `${id} ends`)
  return tasks
}

export async function startBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'] })
}

/**
 * openPage opens a page and collects its errors and console messages, so that no failure goes
 * unnoticed.
 */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, colorScheme: 'light', locale: 'en-GB', timezoneId: 'UTC', ...options })
  const page = await context.newPage()
  const complaints = []
  page.on('pageerror', e => complaints.push(`error: ${e.message}`))
  page.on('console', m => { if (m.type() === 'error') complaints.push(`console: ${m.text()}`) })
  return { page, complaints, close: () => context.close() }
}

/** axeFinds returns the accessibility problems that axe finds on a page, in light and in dark. */
export async function axeFinds(page) {
  await page.evaluate(axe)
  const all = []
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    const found = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }))
    all.push(...found.violations.map(v => `${colorScheme}: ${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')}`))
  }
  return all
}

/** axeFindsNothing checks that a loaded page has no accessibility problems. */
export async function axeFindsNothing(page) {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForFunction(() => !document.querySelector('.loading'))
  await page.waitForTimeout(300)
  assert.deepEqual(await axeFinds(page), [])
}

/** onPageOf runs a test on a page, in which the browser must report no problems. */
export async function onPageOf(browser, address, act, options) {
  const { page, complaints, close } = await openPage(browser, options)
  page.setDefaultTimeout(patience)
  try {
    await page.goto(address)
    await act(page)
    assert.deepEqual(complaints, [])
  } finally {
    await close()
  }
}
