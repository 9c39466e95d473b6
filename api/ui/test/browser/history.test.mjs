// The history of a task: its timeline, its replay, its logs, and the versions of its flow.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { axeFindsNothing, onPageOf, startBrowser, startMember, until } from './harness.mjs'

let member, browser
const tasks = {}

const version = service => ({ start: 'pay', nodes: { pay: { exec_type: 'queue', service, retry: { max_attempts: 3 } } } })
const printing = (lines, code = '') => ({ start: 'say', nodes: { say: { exec_type: 'local_script', script: { cmd: 'sh', args: ['-c', `seq 1 ${lines} | sed 's/^/line /' >&2; echo Disk is full >&2; ${code} echo '{}'`], stderr_mode: 'log' } } } })
const over = id => until(async () => ['completed', 'failed'].includes((await member.api('GET', `/v1/tasks/${id}`)).state), `${id} ends`)

before(async () => {
  member = await startMember()
  browser = await startBrowser()
  tasks.order = await member.start('order', { order: 'A-1', amount: 3, lines: [1, 2, 3] })
  await until(async () => (await member.api('GET', `/v1/tasks/${tasks.order}/waiting`)).waits.some(w => w.kind === 'approval'), 'the order waits')
  await member.api('POST', `/v1/tasks/${tasks.order}/signal`, { key: 'decision', value: true })
  await over(tasks.order)
  tasks.nightly = await member.start('nightly', { size: 400, parts: [1, 2, 3] })
  await member.api('PUT', '/v1/flows/bill', version('bank'))
  tasks.bill = await member.start('bill', {})
  await member.api('PUT', '/v1/flows/bill', version('till'))
  await member.api('PUT', '/v1/flows/printer', printing(20_000))
  tasks.printed = await member.start('printer', {})
  await over(tasks.printed)
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

function onPage(name, path, act) {
  test(name, { timeout: 120_000 }, () => onPageOf(browser, member.url + path(), act))
}

const row = (page, id) => page.getByRole('row').filter({ has: page.locator(`[title="${id}"]`) })
const lane = (page, name) => page.locator('.timeline li').filter({ has: page.getByRole('button', { name: new RegExp(`^${name}\\b`) }) })

onPage('a timeline shows the waits of each visit and the critical path', () => `/ui/tasks/${tasks.order}?tab=timeline`, async page => {
  await lane(page, 'approve').waitFor()
  assert.match(await lane(page, 'approve').getAttribute('title'), /completed, took .*, waited .* for an approval, on the critical path/)
  assert.equal(await lane(page, 'approve').locator('.wait-of').count(), 1)
  await lane(page, 'price_lines').locator('.attempt-of').nth(2).waitFor()
  await lane(page, 'approve').getByRole('button').click()
  await page.getByRole('complementary', { name: 'Step approve' }).waitFor()
})

onPage('a timeline zooms by keys and by dragging, and the address keeps the range', () => `/ui/tasks/${tasks.order}?tab=timeline`, async page => {
  await lane(page, 'approve').waitFor()
  await page.getByRole('region', { name: /^Timeline/ }).focus()
  await page.keyboard.press('+')
  await page.waitForURL('**zoom=**')
  await page.keyboard.press('0')
  await page.waitForURL(url => !url.searchParams.has('zoom'))
  const box = await page.locator('.timeline-over').boundingBox()
  const y = (await page.locator('.timeline-track').first().boundingBox()).y + 8
  await page.mouse.move(box.x + box.width * 0.5, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 })
  await page.mouse.up()
  await page.waitForURL('**zoom=**')
  await page.reload()
  await page.getByRole('button', { name: 'Show all', exact: true }).click()
  await page.waitForURL(url => !url.searchParams.has('zoom'))
})

onPage('the contents of a visit open below it while the task runs', () => `/ui/tasks/${tasks.nightly}?tab=timeline`, async page => {
  await page.getByRole('button', { name: 'Steps inside pack' }).click()
  await page.waitForURL('**open=pack**')
  await lane(page, 'light').waitFor()
  await page.locator('.timeline-now').waitFor({ state: 'attached' })
  assert.match(await lane(page, 'upload').getAttribute('title'), /for a worker/)
})

onPage('the replay shows earlier states of the graph', () => `/ui/tasks/${tasks.order}`, async page => {
  await page.locator('.graph [data-node="ship: completed"]').waitFor()
  await page.getByRole('button', { name: 'First step' }).click()
  await page.waitForURL('**at=1')
  await page.locator('.graph [data-node="ship: created"]').waitFor()
  await page.getByText(/^step 1 of \d+, .*task created/).waitFor()
  await page.keyboard.press('.')
  await page.waitForURL('**at=2')
  await page.reload()
  await page.locator('.graph [data-node="ship: created"]').waitFor()
  await page.getByRole('button', { name: 'Now', exact: true }).click()
  await page.locator('.graph [data-node="ship: completed"]').waitFor()
})

onPage('events are filtered by kind and place, and link to the graph at their time', () => `/ui/tasks/${tasks.order}?tab=events`, async page => {
  const table = page.getByRole('table')
  await page.getByLabel('Filter by type').selectOption('step_ended')
  await page.waitForURL('**type=step_ended**')
  await page.getByLabel('Filter by node').selectOption('pay')
  await page.waitForURL('**of=pay**')
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1)
  await table.getByText('step ended').waitFor()
  await table.getByTitle('Show graph at this time').click()
  await page.waitForURL('**at=**')
  await page.locator('.graph [data-node="pay: completed"]').waitFor()
  await page.locator('.graph [data-node="archive: created"]').waitFor()
})

onPage('two versions are compared by nodes, running tasks and texts', () => '/ui/flows/bill?tab=versions', async page => {
  const told = page.getByRole('region', { name: 'Differences between v1 and v2' })
  await told.getByRole('row').filter({ hasText: 'node changed' }).getByText('{"service":"till"}').waitFor()
  await told.getByLabel('Differences between the definitions').getByText('+ "service": "till"').waitFor()
  await page.getByLabel('Older version').selectOption('2')
  await page.getByText('Both versions behave the same.').waitFor()
  await page.getByRole('link', { name: 'from v1' }).click()
  await told.getByRole('link', { name: '1 task still on v1' }).click()
  await row(page, tasks.bill).waitFor()
})

onPage('the tasks of a flow are filtered by version', () => '/ui/flows/bill?tab=tasks', async page => {
  await row(page, tasks.bill).waitFor()
  await page.getByLabel('Filter by version').selectOption('2')
  await page.getByText('No tasks of v2').waitFor()
  await page.getByLabel('Filter by version').selectOption('1')
  await row(page, tasks.bill).waitFor()
})

onPage('a long log is searched, and only visible lines are rendered', () => `/ui/tasks/${tasks.printed}?tab=logs`, async page => {
  await page.getByText('20,002 lines').waitFor()
  await page.locator('.log').getByText('Disk is full').waitFor()
  assert.ok(await page.locator('.log-line').count() < 120)
  await page.getByLabel('Filter lines by text').fill('disk IS')
  await page.getByText('1 of 20,002 lines').waitFor()
  await page.locator('mark').getByText('Disk is').waitFor()
  await page.getByLabel('Filter by stream').selectOption('stdout')
  await page.getByText('No lines match.').waitFor()
})

onPage('a log is followed while its job runs', () => '/ui/', async page => {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-ui-talk-'))
  await member.api('PUT', '/v1/flows/talker', printing(3, `until [ -e ${dir}/go ]; do sleep 0.1; done; echo And then >&2;`))
  const id = await member.start('talker', {})
  await page.goto(`${member.url}/ui/tasks/${id}?node=say`)
  await page.locator('.log').getByText('Disk is full').waitFor()
  assert.equal(await page.locator('.log').getByText('And then').count(), 0)
  writeFileSync(join(dir, 'go'), '')
  await page.locator('.log').getByText('And then').waitFor()
  rmSync(dir, { recursive: true })
})

onPage('a list receives changes without polling', () => '/ui/tasks', async page => {
  await row(page, tasks.nightly).waitFor()
  await page.getByText('live', { exact: true }).first().waitFor()
  await page.waitForTimeout(1000)
  const asked = []
  page.on('request', r => { if (/\/v1\/tasks\?/.test(r.url())) asked.push(r.url()) })
  await row(page, tasks.bill).hover()
  await member.api('POST', `/v1/tasks/${tasks.nightly}/pause`)
  await row(page, tasks.nightly).getByText('paused').waitFor()
  await member.api('POST', `/v1/tasks/${tasks.nightly}/resume`)
  await row(page, tasks.nightly).getByText('running').waitFor()
  await page.waitForTimeout(2500)
  assert.deepEqual(asked, [])
})

const looked = {
  'timeline, zoomed': () => `/ui/tasks/${tasks.nightly}?tab=timeline&open=pack%231`, replay: () => `/ui/tasks/${tasks.order}?at=3`, 'events picked': () => `/ui/tasks/${tasks.order}?tab=events&type=step_ended`,
  versions: () => '/ui/flows/bill?tab=versions', 'tasks of a version': () => '/ui/flows/bill?tab=tasks&of=1', log: () => `/ui/tasks/${tasks.printed}?tab=logs`,
}
for (const [name, path] of Object.entries(looked)) onPage(`axe finds nothing in light and dark: ${name}`, path, axeFindsNothing)
