// Numbers that exceed the precision of a double keep their digits in the pages, in both directions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onPageOf, startBrowser, startMember, until } from './harness.mjs'

let member, browser

before(async () => {
  member = await startMember()
  browser = await startBrowser()
  await member.api('PUT', '/v1/flows/plain', { start: 'a', nodes: { a: { exec_type: 'local_func', func: 'log_result', prep: { input_key: '$params.id' }, post: { output_key: 'seen' } } }, edges: [] })
  await member.api('PUT', '/v1/flows/declared', { inputs: { account: 'int' }, start: 'a', nodes: { a: { exec_type: 'local_func', func: 'log_result' } }, edges: [] })
  await member.api('PUT', '/v1/flows/awaited', { start: 'a', nodes: { a: { kind: 'wait_event', params: { signal_key: '$shared.paid' } } }, edges: [] })
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

const textOf = async id => (await fetch(`${member.url}/v1/tasks/${id}`)).text()
const idOf = page => new URL(page.url()).pathname.split('/').at(-1)

test('a JSON form and a rerun with other params keep all digits', { timeout: 120_000 }, () => onPageOf(browser, `${member.url}/ui/flows/plain?tab=start`, async page => {
  await page.getByLabel('Params (JSON)').fill('{"id": 9007199254740993}')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.waitForURL('**/ui/tasks/*')
  const first = idOf(page)
  assert.match(await textOf(first), /"params":\s*\{"id":\s*9007199254740993\}/)
  await page.getByRole('button', { name: 'Rerun' }).click()
  await page.getByText('Change params').click()
  const params = page.getByLabel('Params (JSON)')
  await page.waitForFunction(() => [...document.querySelectorAll('textarea')].some(t => t.value.includes('9007199254740993')))
  await params.fill((await params.inputValue()).replace('9007199254740993', '10000000000000000001'))
  await page.getByRole('button', { name: 'Start new task' }).click()
  await page.waitForURL(url => url.pathname.startsWith('/ui/tasks/') && !url.pathname.endsWith(first))
  assert.match(await textOf(idOf(page)), /"params":\s*\{"id":\s*10000000000000000001\}/)
}))

test('a form of declared inputs keeps all digits', { timeout: 120_000 }, () => onPageOf(browser, `${member.url}/ui/flows/declared?tab=start`, async page => {
  await page.getByLabel('account').fill('9007199254740993')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.waitForURL('**/ui/tasks/*')
  assert.match(await textOf(idOf(page)), /"account":\s*9007199254740993\b/)
}))

test('a signal and its displayed value keep all digits', { timeout: 120_000 }, async () => {
  const id = await member.start('awaited', {})
  await onPageOf(browser, `${member.url}/ui/tasks/${id}`, async page => {
    await page.locator('.task-head').getByRole('button', { name: 'Send signal' }).click()
    await page.getByLabel('Shared key').fill('paid')
    await page.getByLabel('Value (JSON or text)').fill('9007199254740993')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await until(async () => /"paid":\s*9007199254740993\b/.test(await textOf(id)), 'the signal is there as it was written')
    await page.getByRole('link', { name: 'Values' }).click()
    await page.getByText('9007199254740993').first().waitFor()
  })
})

test('an approval form and its defaults keep all digits', { timeout: 120_000 }, async () => {
  // A text, because JSON.stringify would round the default.
  const definition = `
start: ask
nodes:
  ask:
    kind: approval
    params:
      approval_key: $shared.decision
      show: [$params.id]
      form:
        type: object
        properties:
          account: {type: integer}
          share: {type: number}
          limit: {type: number, default: 12345678901234567891.25}
          plan: {enum: [9007199254740993, 9007199254740995]}
`
  const published = await fetch(`${member.url}/v1/flows/decided`, { method: 'PUT', headers: { 'Content-Type': 'application/yaml' }, body: definition })
  assert.ok(published.ok, await published.text())
  const started = await fetch(`${member.url}/v1/tasks`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"flow": "decided", "params": {"id": 9007199254740997}}' })
  const { id } = await started.json()
  const open = async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items
  await until(async () => (await open()).length === 1, 'the approval is open')
  await onPageOf(browser, `${member.url}/ui/approvals/${encodeURIComponent((await open())[0].id)}`, async page => {
    await page.getByText('9007199254740997').waitFor()
    assert.equal(await page.getByLabel('limit').inputValue(), '12345678901234567891.25')
    await page.getByLabel('account').fill('12345678901234567890')
    await page.getByLabel('share').fill('0.1000000000000000055')
    await page.getByLabel('plan').selectOption('9007199254740995')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('status').getByText('answered').waitFor()
  })
  await until(async () => (await member.api('GET', `/v1/tasks/${id}`)).state === 'completed', 'the task is completed')
  const values = await (await fetch(`${member.url}/v1/tasks/${id}/value?of=shared`)).text()
  for (const given of [/"account":\s*12345678901234567890\b/, /"share":\s*0\.1000000000000000055\b/, /"limit":\s*12345678901234567891\.25\b/, /"plan":\s*9007199254740995\b/]) {
    assert.match(values, given)
  }
})
