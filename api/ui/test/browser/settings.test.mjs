// Tokens and roles: their creation by an admin, and the pages as seen with them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axeFindsNothing, onPageOf, openPage, startBrowser, startMember, until } from './harness.mjs'

let member, browser, waiting

before(async () => {
  member = await startMember({ token: 'root of all' })
  browser = await startBrowser()
  waiting = await member.start('order', { order: 'A-1', amount: 12, lines: [1] })
  await until(async () => (await member.api('GET', `/v1/tasks/${waiting}/waiting`)).waits.some(w => w.kind === 'approval'), 'an approval is asked for')
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

/** signedIn runs a test on a page, signed in with a token. */
function signedIn(name, token, path, act) {
  test(name, { timeout: 120_000 }, () => onPageOf(browser, 'about:blank', async page => {
    const answer = await page.context().request.post(member.url + '/v1/session', { data: { token: await token() } })
    assert.equal(answer.status(), 200)
    await page.goto(member.url + path())
    await act(page)
  }))
}

const make = async (name, role) => (await member.api('POST', '/v1/tokens', { name, role })).secret
const root = () => 'root of all'

signedIn('an admin creates a token by keyboard, sees it once and revokes it', root, () => '/ui/', async page => {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('m')
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  await page.getByText('admin (token set at server start)').waitFor()
  await page.getByText('No tokens yet').waitFor()
  await page.getByLabel('Name').focus()
  await page.keyboard.type('ada')
  await page.keyboard.press('Tab')
  await page.keyboard.type('op')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  const shown = page.getByRole('status').filter({ hasText: 'shown only once' })
  await shown.waitFor()
  const secret = await shown.locator('code').textContent()
  assert.match(secret, /^trp_[0-9a-f]{64}$/)
  const ada = page.getByRole('row').filter({ hasText: 'ada' })
  await ada.getByText('operator', { exact: true }).waitFor()
  assert.equal((await fetch(member.url + '/v1/tasks', { headers: { Authorization: `Bearer ${secret}` } })).status, 200)
  await axeFindsNothing(page)

  await ada.getByRole('button', { name: 'Delete ada' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete token' }).focus()
  await page.keyboard.press('Enter')
  await ada.waitFor({ state: 'detached' })
  assert.equal((await fetch(member.url + '/v1/tasks', { headers: { Authorization: `Bearer ${secret}` } })).status, 401)
  await page.reload()
  await page.getByRole('heading', { level: 1 }).waitFor()
  assert.equal(await page.getByText('trp_').count(), 0)
})

signedIn('a viewer sees a task without actions', () => make('viewer', 'viewer'), () => `/ui/tasks/${waiting}`, async page => {
  await page.getByText('approval').first().waitFor()
  await page.waitForFunction(() => !document.querySelector('.loading'))
  for (const name of ['Pause', 'Send signal', 'Cancel', 'Approve']) await page.getByRole('button', { name, exact: true }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByText('viewer (viewer)').waitFor()
  assert.equal(await page.getByRole('heading', { name: 'Tokens' }).count(), 0)
  await axeFindsNothing(page)
})

signedIn('an approver answers approvals and has no other actions', () => make('grace', 'approver'), () => `/ui/tasks/${waiting}`, async page => {
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByText('approved').first().waitFor()
  await until(async () => (await member.api('GET', `/v1/tasks/${waiting}/events?limit=500`)).items.some(e => e.type === 'signal_received' && e.sent_by === 'grace'), 'the history says who')
})

// The following refusals appear in the browser's console, as expected here.
test('signing out leads to the sign-in', { timeout: 120_000 }, async () => {
  const { page, close } = await openPage(browser)
  try {
    await page.context().request.post(member.url + '/v1/session', { data: { token: await make('bob', 'author') } })
    await page.goto(member.url + '/ui/settings')
    await page.getByText('bob (author)').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  } finally {
    await close()
  }
})
