// Pages that stay open: while very much happens, and while the server is slow or away.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onPageOf, startBrowser, startMember, until } from './harness.mjs'

let member, browser

before(async () => {
  member = await startMember()
  browser = await startBrowser()
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

function onPage(name, path, act) {
  test(name, { timeout: 120_000 }, () => onPageOf(browser, member.url + (typeof path === 'function' ? path() : path), act))
}

/** Starts many tasks, some at a time. */
async function startMany(n, labels) {
  await Promise.all(Array.from({ length: 16 }, async () => { while (n-- > 0) await member.start('greet', { name: 'Ada' }, { labels }) }))
}

onPage('a list shows no gap when more has begun than it was told', '/ui/tasks?label=lot:gap', async page => {
  await startMany(3, { lot: 'gap' })
  await page.waitForFunction(() => document.querySelectorAll('.rows .row a.cover').length === 3)
  const live = page.getByRole('button', { name: 'live', exact: true })
  await live.click()
  await startMany(150, { lot: 'gap' })
  await page.getByRole('button', { name: 'not live' }).click()
  await page.getByText('100+ tasks').waitFor()
  await page.locator('.rows').evaluate(rows => rows.scrollTo(0, rows.scrollHeight))
  await page.getByText('153 tasks').waitFor()
})

onPage('a long list is read as far as somebody scrolls, and not beyond what it keeps', '/ui/tasks?label=lot:long', async page => {
  await startMany(2150, { lot: 'long' })
  await page.reload()
  let asked = 0
  page.on('request', r => { if (/\/v1\/tasks\?.*cursor=/.test(r.url())) asked++ })
  const end = page.getByText('The first 2,000 are listed: filters find others')
  await until(async () => {
    await page.locator('.rows').evaluate(rows => rows.scrollTo(0, rows.scrollHeight))
    return end.isVisible()
  }, 'the end of the list is reached')
  assert.equal(asked, 19)
  await page.getByText('2,000+ tasks').waitFor()
})
