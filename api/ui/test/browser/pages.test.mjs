// Users' actions on the pages, in a real browser with a real member.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axeFindsNothing, onPageOf, openPage, patience, seed, startBrowser, startMember, until } from './harness.mjs'

let member, browser, tasks

before(async () => {
  member = await startMember()
  browser = await startBrowser()
  tasks = await seed(member)
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

/** onPage runs a test on a page, in which the browser must report no problems. */
function onPage(name, path, act, options) {
  test(name, { timeout: 120_000 }, () => onPageOf(browser, member.url + (typeof path === 'function' ? path() : path), act, options))
}

const row = (page, id) => page.getByRole('row').filter({ has: page.locator(`[title="${id}"]`) })
const node = (page, name) => page.locator(`.graph [data-node="${name}"], .graph [data-node^="${name}: "]`)

onPage('the root address leads to the pages', '/', async page => {
  await page.waitForURL('**/ui/**')
  await page.getByRole('heading', { level: 1 }).waitFor()
})

onPage('a list of tasks shows the state of each task, and new tasks', '/ui/tasks', async page => {
  await row(page, tasks.failed[0]).getByText('failed').waitFor()
  await row(page, tasks.paused).getByText('paused').waitFor()
  const id = await member.start('greet', { name: 'later' })
  await row(page, id).getByText('completed').waitFor()
})

onPage('rows do not move under the cursor while new ones wait', '/ui/tasks', async page => {
  await row(page, tasks.failed[0]).hover()
  const id = await member.start('greet', { name: 'meanwhile' })
  const pill = page.getByRole('button', { name: /^\d+ new$/ })
  await pill.waitFor()
  assert.equal(await row(page, id).count(), 0)
  await pill.click()
  await row(page, id).waitFor()
})

onPage('every filter is in the address and has a removable chip', '/ui/tasks', async page => {
  await page.getByRole('navigation', { name: 'States' }).getByRole('link', { name: 'failed' }).click()
  await page.waitForURL('**/tasks?state=failed')
  await row(page, tasks.failed[0]).waitFor()
  assert.equal(await row(page, tasks.done[0]).count(), 0)
  await row(page, tasks.failed[0]).getByRole('link', { name: 'customer:ada' }).click()
  await page.waitForURL('**/tasks?label=customer:ada')
  await row(page, tasks.done[0]).waitFor()
  await page.getByRole('link', { name: 'Remove filter Label: customer:ada' }).click()
  await page.waitForURL('**/tasks')
})

onPage('a list is saved under a name that all users see, and deleted', '/ui/tasks?state=failed', async page => {
  await page.getByRole('button', { name: 'Save view' }).click()
  await page.getByLabel('View name', { exact: true }).fill('what failed')
  await page.keyboard.press('Enter')
  const named = page.getByRole('link', { name: 'what failed', exact: true })
  await named.waitFor()
  await page.goto(`${member.url}/ui/tasks`)
  await named.click()
  await page.waitForURL('**/tasks?state=failed')
  await axeFindsNothing(page)
  await page.getByRole('button', { name: 'Delete view “what failed”' }).click()
  await named.waitFor({ state: 'detached' })
})

onPage('a filter without matches says so', '/ui/tasks?label=customer:nobody', async page => {
  await page.getByText('No tasks match').waitFor()
  await page.getByRole('link', { name: 'Clear filters' }).click()
  await row(page, tasks.failed[0]).waitFor()
})

onPage('a failed task opens at the failed step, with its error and input', '/ui/tasks?state=failed', async page => {
  await row(page, tasks.failed[0]).getByRole('link', { name: /^task-/ }).click()
  const side = page.getByRole('complementary', { name: 'Step pay' })
  await side.getByText('the card was refused').first().waitFor()
  await side.getByLabel('input', { exact: true }).getByText('24').waitFor()
  await node(page, 'ship').waitFor()
  assert.match(page.url(), /node=pay/)
})

onPage('a failed task is retried and fails again', () => `/ui/tasks/${tasks.failed[1]}`, async page => {
  await page.getByRole('button', { name: 'Retry', exact: true }).click()
  await page.getByText('Task retried: it continues at the failed steps').waitFor()
  await page.getByRole('link', { name: 'Events' }).click()
  await page.getByRole('cell', { name: 'task retried' }).waitFor()
})

test("an approval is given on the task's page, which then follows the task live", { timeout: 120_000 }, async () => {
  const id = await member.start('order', { order: 'A-9', amount: 3, lines: [1] })
  const { page, complaints, close } = await openPage(browser)
  try {
    await page.goto(`${member.url}/ui/tasks/${id}`)
    await page.getByText('a person must answer').waitFor()
    await page.locator('.graph [data-node="ship: created"]').waitFor()
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.locator('.graph [data-node="ship: completed"]').waitFor()
    await page.locator('.task-head').getByText('completed').waitFor()
    assert.deepEqual(complaints, [])
  } finally {
    await close()
  }
})

onPage('a task is paused, resumed and canceled', () => `/ui/tasks/${tasks.paused}`, async page => {
  await page.locator('.task-head').getByRole('button', { name: 'Resume' }).click()
  await page.locator('.task-head').getByText('running').waitFor()
  await page.locator('.task-head').getByRole('button', { name: 'Pause' }).click()
  await page.locator('.task-head').getByText('paused', { exact: true }).waitFor()
  await page.locator('.task-head').getByRole('button', { name: 'Resume' }).click()
  await page.locator('.task-head').getByText('running').waitFor()
  await page.locator('.task-head').getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel task' }).click()
  await page.locator('.task-head').getByText('canceled', { exact: true }).waitFor()
})

onPage('the contents of a node open in place and stay in the address', () => `/ui/tasks/${tasks.queued}`, async page => {
  await page.getByText('a worker must poll for service gpu-upload').waitFor()
  await page.getByText('No matching worker is online').first().waitFor()
  await node(page, 'pack').dblclick()
  await node(page, 'weigh').waitFor()
  await page.waitForURL('**open=pack**')
  await page.reload()
  await node(page, 'light').waitFor()
})

onPage('the keyboard is enough for the main actions', '/ui/tasks?state=failed', async page => {
  await row(page, tasks.failed[0]).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/tasks/task-**')
  await page.locator('.graph [tabindex="0"]').waitFor()
  for (let i = 0; i < 60 && !(await page.evaluate(() => document.activeElement?.closest('.graph .node'))); i++) await page.keyboard.press('Tab')
  await page.keyboard.press('ArrowLeft')
  await page.locator('.node.selected').waitFor()
  await page.keyboard.press('3')
  await page.getByRole('columnheader', { name: 'Step' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.getByRole('heading', { name: 'Tasks' }).waitFor()
})

onPage('an unknown address shows that the page was not found', '/ui/nothing', async page => {
  await page.getByText(/^Page .* not found$/).waitFor()
})

onPage('the list of tasks works on a phone', '/ui/tasks', async page => {
  await page.getByText('the card was refused').first().isVisible()
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
}, { viewport: { width: 390, height: 800 } })

for (const path of ['tasks?state=failed&label=customer:ada&since=24h', 'flows', 'workers', 'schedules']) {
  onPage(`nothing overflows the page on a phone: ${path}`, `/ui/${path}`, async page => {
    await page.locator('table, [role="table"]').first().waitFor()
    assert.equal(await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth)), 360)
  }, { viewport: { width: 360, height: 740 } })
}

onPage('a flow shows its plan, and a form of its inputs starts a task', '/ui/flows', async page => {
  await page.getByRole('link', { name: 'pay', exact: true }).click()
  await node(page, 'pay').waitFor()
  await page.getByRole('link', { name: 'Start', exact: true }).click()
  await page.getByLabel('amount').fill('many')
  await page.getByText('amount must be an integer').waitFor()
  await page.getByLabel('amount').fill('1200')
  assert.equal(await page.getByLabel('currency').inputValue(), 'EUR')
  await page.getByLabel('lines').fill('[1, 2]')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.waitForURL('**/tasks/task-**')
  await page.locator('.task-head').getByText('completed').waitFor()
})

const foreseen = page => page.getByRole('region', { name: 'Planned steps' })
const begun = async flow => (await member.api('GET', `/v1/tasks/count?flow=${flow}`)).count

onPage("a dry run by keyboard shows what the form's task would do", '/ui/flows/order?tab=start', async page => {
  const before = await begun('order')
  await page.getByLabel('Params (JSON)').fill('{"order": "A-1", "amount": 3, "lines": [1, 2]}')
  await page.getByRole('button', { name: 'Start', exact: true }).focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await foreseen(page).getByRole('row').filter({ hasText: 'price_lines' }).getByText('runs on transform for 2 units').waitFor()
  await page.getByText(/^Nothing was started\. .*The next steps depend on results and signals\.$/).waitFor()
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Planned steps')
  await axeFindsNothing(page)
  await page.getByLabel('Params (JSON)').fill('{"order": "A-1", "amount": 3, "lines": []}')
  await foreseen(page).waitFor({ state: 'hidden' })
  assert.equal(await begun('order'), before)
})

onPage('a task is rerun with other params after a dry run counts recorded results', () => `/ui/tasks/${tasks.done[0]}`, async page => {
  const before = await begun('greet')
  await page.getByRole('button', { name: 'Rerun' }).click()
  await page.getByRole('button', { name: 'Dry run' }).click()
  await foreseen(page).getByText('reuses the recorded result for the same input "ADA"').waitFor()
  await page.getByText('The task ends as completed.').waitFor()
  await axeFindsNothing(page)
  await page.getByText('Change params').click()
  await page.getByLabel('Params (JSON)').fill('{"name": "Zoe"}')
  await foreseen(page).waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Dry run' }).click()
  await foreseen(page).getByText('runs on upper').waitFor()
  assert.equal(await begun('greet'), before)
  await page.getByRole('button', { name: 'Start new task' }).click()
  await page.waitForURL(url => url.pathname.includes('/tasks/task-') && !url.pathname.endsWith(tasks.done[0]))
  await page.locator('.task-head').getByText('completed').waitFor()
  const made = new URL(page.url()).pathname.split('/').at(-1)
  assert.deepEqual((await member.api('GET', `/v1/tasks/${made}`)).params, { name: 'Zoe' })
})

test('a state with very many tasks has an approximate count', { timeout: 120_000 }, async () => {
  const { page, complaints, close } = await openPage(browser)
  page.setDefaultTimeout(patience)
  try {
    const groups = [{ key: 'completed', count: 10_000, truncated: true }, { key: 'failed', count: 12 }]
    await page.route('**/v1/tasks/count?*', route => route.fulfill({ json: { count: 10_012, exact: false, groups } }))
    await page.goto(`${member.url}/ui/tasks`)
    const states = page.getByRole('navigation', { name: 'States' })
    for (const [name, tally] of [['all', '10,012+'], ['completed', '10,000+'], ['failed', '12']]) await states.getByRole('link', { name }).getByText(tally, { exact: true }).waitFor()
    assert.deepEqual(complaints, [])
  } finally {
    await close()
  }
})

onPage('a queue without workers is listed first', '/ui/workers', async page => {
  await page.getByRole('row').filter({ hasText: 'gpu-upload' }).getByText('No workers').waitFor()
  await page.getByRole('row').filter({ hasText: 'demo-push' }).getByText('online').waitFor()
})

onPage('all matching tasks are counted and then canceled at once', '/ui/tasks?label=customer:many', async page => {
  const ids = []
  for (const n of [1, 2, 3]) ids.push(await member.start('order', { order: `M-${n}`, amount: 12, lines: [1] }, { labels: { customer: 'many' } }))
  for (const id of ids) await row(page, id).waitFor()
  await page.getByLabel('Actions for all matching tasks').selectOption('cancel')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('3 tasks will be canceled.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel 3 tasks' }).click()
  await page.getByText('3 tasks canceled').waitFor()
  for (const id of ids) await until(async () => (await member.api('GET', `/v1/tasks/${id}`)).state === 'canceled', `${id} is canceled`)
})

onPage('an approval is answered on a phone, and its author is recorded', '/ui/approvals', async page => {
  const id = await member.start('order', { order: 'A-9', amount: 108, lines: [1] }, { labels: { customer: 'phone' } })
  await until(async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items.length === 1, 'the approval is there')
  const fits = async () => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true)
  await page.getByLabel('Search', { exact: true }).fill(id)
  await fits()
  await page.getByRole('listitem').filter({ has: page.locator(`a[href$="${id}"]`) }).getByRole('link', { name: 'Ship the order?' }).click()
  await page.getByText('Both checks are done.').waitFor()
  await page.getByRole('region', { name: 'order' }).getByText('A-9').waitFor()
  await fits()
  await page.getByLabel('Comment').fill('too late')
  await page.getByLabel('Your name').fill('Grace')
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByRole('status').getByText('rejected by Grace').waitFor()
  await until(async () => (await member.api('GET', `/v1/tasks/${id}/events?type=signal_received`)).items.some(e => e.sent_by === 'Grace' && e.status_text === 'too late'), 'the answer is kept')
}, { viewport: { width: 360, height: 740 } })

onPage('approvals are browsed and opened with the keyboard', '/ui/approvals', async page => {
  for (const order of ['B-1', 'B-2']) {
    const id = await member.start('order', { order, amount: 108, lines: [1] })
    await until(async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items.length === 1, 'the approval is there')
  }
  await page.reload() // rows that arrive during key presses would move the others
  const rows = page.getByRole('listitem').locator('strong a')
  await rows.nth(1).waitFor()
  const chosen = () => rows.evaluateAll(all => all.indexOf(document.activeElement))
  for (const [key, at] of [['k', 0], ['j', 1], ['k', 0], ['k', 0], ['j', 1], ['Escape', -1], ['j', 0]]) {
    await page.keyboard.press(key)
    assert.equal(await chosen(), at, `after ${key}`)
  }
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/ui/approvals/task-**')
})

onPage('Enter activates the focused element, and otherwise the selected row', '/ui/tasks', async page => {
  await page.getByRole('link', { name: /^failed/ }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL('**state=**')
  await page.evaluate(() => document.activeElement.blur())
  await page.locator('.row a.cover').first().waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/ui/tasks/task-**')
})

test('a link answers one approval and shows an earlier answer of another user', { timeout: 120_000 }, async () => {
  const id = await member.start('order', { order: 'A-10', amount: 120, lines: [1] })
  await until(async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items.length === 1, 'the approval is there')
  const approval = (await member.api('GET', `/v1/approvals?q=${id}`)).items[0].id
  const { path } = await member.api('POST', `/v1/approvals/${approval}/link`, { name: 'Bo' })
  const { page, complaints, close } = await openPage(browser, { viewport: { width: 360, height: 740 } })
  try {
    await page.goto(member.url + path)
    await page.getByText('You answer as Bo.').waitFor()
    assert.equal(await page.getByRole('navigation').count(), 0)
    await axeFindsNothing(page)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('status').getByText('approved by Bo').waitFor()
    assert.deepEqual(complaints, [])
    await page.goto(member.url + path.slice(0, -3) + 'AAA')
    await page.reload()
    await page.getByText('the link is not one of this server').waitFor()
  } finally {
    await close()
  }
})

onPage('a schedule is turned off and on, and fires on command', '/ui/schedules', async page => {
  await page.getByRole('button', { name: 'pay', exact: true }).click()
  await page.getByText('Europe/Berlin').first().waitFor()
  await page.getByRole('button', { name: 'Disable pay' }).click()
  await page.getByRole('button', { name: 'Enable pay' }).click()
  await page.getByRole('button', { name: 'Run now pay' }).click()
  await page.waitForURL('**/tasks/task-**')
})

onPage('the cluster page shows members and shards', '/ui/cluster', async page => {
  await page.getByText('healthy').waitFor()
  await page.getByRole('img', { name: '1024 shards, 0 without an owner' }).waitFor()
})

test('a user signs in with a token and gets live updates', { timeout: 120_000 }, async () => {
  const guarded = await startMember({ token: 'open sesame' })
  const { page, close } = await openPage(browser)
  try {
    await page.goto(`${guarded.url}/ui/tasks`)
    await page.getByLabel('Token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Token').fill('open sesame')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('No tasks yet').waitFor()
    const id = await guarded.start('order', { order: 'A-1', amount: 3, lines: [1] })
    await page.goto(`${guarded.url}/ui/tasks/${id}`)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.locator('.graph [data-node="ship: completed"]').waitFor()
    assert.equal(await page.evaluate(() => document.cookie), '', 'no script can read the cookie')
  } finally {
    await close()
    await guarded.stop()
  }
})

onPage('tasks are found by their errors and counted by state', '/ui/tasks', async page => {
  await row(page, tasks.failed[0]).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('card was')
  await page.keyboard.press('Enter')
  await page.waitForURL(url => url.searchParams.get('q') === 'card was')
  await page.getByRole('navigation', { name: 'States' }).getByRole('link', { name: 'failed 2' }).click()
  await row(page, tasks.failed[0]).waitFor()
  assert.equal(await page.getByRole('row').count(), 1 + 2, 'a number leads to a list of as many')
})

onPage('all units of a step are shown at once, and one is selected', () => `/ui/tasks/${tasks.waiting}?node=price_lines`, async page => {
  const map = page.getByRole('img', { name: '5 units: 5 completed' })
  await map.click({ position: { x: 2, y: 2 } })
  await page.waitForURL('**unit=0**')
  await page.locator('.unit-facts').getByLabel('input', { exact: true }).getByText('1').waitFor()
})

/** followed follows each number of a list of links and counts the tasks that it leads to. */
async function followed(page, tiles) {
  for (const [name, n] of tiles) {
    await page.goto(`${member.url}/ui/`)
    await page.getByRole('link', { name: `${n} ${name}`, exact: true }).or(page.getByRole('link', { name: `${n}${name}`, exact: true })).first().click()
    await page.waitForURL('**/tasks?**')
    if (n === 0) await page.getByText('No tasks match').waitFor()
    else await page.waitForFunction(n => document.querySelectorAll('.rows .row:not(.row-head)').length === n, n)
  }
}

onPage('every number of the overview leads to a list of that length', '/ui/', async page => {
  const told = await member.api('GET', '/v1/overview')
  await page.getByRole('list', { name: 'Tasks by state' }).getByText('completed').waitFor()
  await followed(page, told.states.map(s => [s.state, s.count]))
  const [group] = told.recent_failures.groups
  await page.goto(`${member.url}/ui/`)
  await page.getByRole('region', { name: 'Failures' }).getByRole('row').filter({ hasText: 'the card was refused' }).getByRole('link', { name: String(group.count), exact: true }).click()
  await page.getByRole('link', { name: /^Remove filter Error:/ }).waitFor()
  await page.waitForFunction(n => document.querySelectorAll('.rows .row:not(.row-head)').length === n, group.count)
})

onPage('the overview shows services without workers', '/ui/', async page => {
  await page.getByRole('region', { name: 'Queues' }).getByRole('row').filter({ hasText: 'gpu-upload' }).getByText('No workers').waitFor()
})

onPage('the graph of a flow is colored by failures, with numbers at each node', '/ui/', async page => {
  await page.getByRole('region', { name: 'Failures' }).getByRole('link', { name: 'refused', exact: true }).click()
  await page.waitForURL('**/flows/refused?heat=failures')
  // another test may have retried one
  await page.locator('.node.tone-failed').getByText(/· \d failed/).waitFor()
  await page.getByRole('group', { name: 'Color scale' }).getByRole('combobox').first().selectOption('p95')
  await page.waitForURL('**heat=p95**')
  await page.locator('.node').getByText('not visited').waitFor()
  await page.getByRole('link', { name: 'Statistics', exact: true }).click()
  await page.getByRole('row').filter({ hasText: 'pay' }).getByRole('link', { name: /^task-/ }).click()
  await page.waitForURL('**/tasks/task-**')
})

onPage('two tasks are compared node by node', () => `/ui/tasks/${tasks.failed[0]}`, async page => {
  await page.getByRole('link', { name: 'Compare', exact: true }).click()
  await page.getByLabel('B', { exact: true }).fill(tasks.waiting)
  await page.getByRole('button', { name: 'Compare' }).click()
  await page.waitForURL(url => url.searchParams.get('b') === tasks.waiting)
  await page.getByText(/^\d+ equal, \d+ different, \d+ only in A, \d+ only in B$/).waitFor()
  await page.locator('.merged [data-node$=", first difference"]').waitFor()
  const all = await page.getByRole('row').count()
  assert.ok(all > 1)
  await page.getByLabel('Differences only').check()
  await page.waitForURL('**different=true**')
  await page.getByRole('link', { name: tasks.failed[0] }).click()
  await page.getByRole('button', { name: 'Rerun' }).click()
  await page.getByRole('button', { name: 'Start new task' }).click()
  await page.getByRole('link', { name: 'Compare with original' }).click()
  await page.waitForURL(url => url.searchParams.get('a') === tasks.failed[0])
})

onPage('a new task continues from any event of another task', () => `/ui/tasks/${tasks.failed[0]}?tab=events`, async page => {
  await page.getByRole('button', { name: 'Fork the task at event 1.0' }).click()
  await page.getByText('0 steps kept').waitFor()
  await page.getByRole('button', { name: 'Dry run' }).click()
  await foreseen(page).getByRole('row').nth(1).waitFor()
  await axeFindsNothing(page)
  await page.getByRole('button', { name: 'Start new task' }).click()
  await page.waitForURL(url => /\/tasks\/task-/.test(url.pathname) && !url.pathname.endsWith(tasks.failed[0]))
  await page.getByRole('link', { name: tasks.failed[0] }).waitFor()
})

const looked = {
  comparison: () => `/ui/compare?a=${tasks.failed[0]}&b=${tasks.waiting}`,
  overview: () => '/ui/', heat: () => '/ui/flows/refused?heat=failures', statistics: () => '/ui/flows/order?tab=stats',
  flows: () => '/ui/flows', flow: () => '/ui/flows/order?node=approve', form: () => '/ui/flows/pay?tab=start', workers: () => '/ui/workers', schedules: () => '/ui/schedules', cluster: () => '/ui/cluster', approvals: () => '/ui/approvals',
  timeline: () => `/ui/tasks/${tasks.waiting}?tab=timeline`,
  'list of tasks': () => '/ui/tasks', 'filtered list': () => '/ui/tasks?state=failed&label=customer:ada&since=24h', 'failed task': () => `/ui/tasks/${tasks.failed[0]}`,
  'waiting task': () => `/ui/tasks/${tasks.waiting}?node=approve`, steps: () => `/ui/tasks/${tasks.refused}?tab=steps`, events: () => `/ui/tasks/${tasks.refused}?tab=events`, values: () => `/ui/tasks/${tasks.refused}?tab=values`,
}
for (const [name, path] of Object.entries(looked)) onPage(`axe finds nothing in light and dark: ${name}`, path, axeFindsNothing)
