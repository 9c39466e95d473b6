// Pages that stay open: during many events, and while the server is slow or unavailable.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { onPageOf, openPage, patience, startBrowser, startMember, until } from './harness.mjs'

let member, browser, printing

before(async () => {
  member = await startMember()
  browser = await startBrowser()
  const script = { cmd: 'sh', args: ['-c', 'sleep 0.1; echo a line >&2; echo {}'], stderr_mode: 'log' }
  await member.api('PUT', '/v1/flows/printing', { start: 'say', nodes: { say: { exec_type: 'local_script', script } }, edges: [{ from: 'say', action: 'default', to: 'say' }] })
  printing = await member.start('printing', {})
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

function onPage(name, path, act) {
  test(name, { timeout: 120_000 }, () => onPageOf(browser, member.url + (typeof path === 'function' ? path() : path), act))
}

/** onPoorPage is onPage for tests with failing requests, which make the browser report problems. */
function onPoorPage(name, path, act) {
  test(name, { timeout: 120_000 }, async () => {
    const { page, close } = await openPage(browser)
    page.setDefaultTimeout(patience)
    try {
      await page.goto(member.url + (typeof path === 'function' ? path() : path))
      await act(page)
    } finally {
      await close()
    }
  })
}

/** seen hides a page or shows it again, as the page sees it. */
async function seen(page, is) {
  await page.evaluate(is => {
    Object.defineProperty(document, 'hidden', { value: !is, configurable: true })
    Object.defineProperty(document, 'visibilityState', { value: is ? 'visible' : 'hidden', configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, is)
}

/** startMany starts many tasks, 16 at a time. */
async function startMany(n, labels) {
  await Promise.all(Array.from({ length: 16 }, async () => { while (n-- > 0) await member.start('greet', { name: 'Ada' }, { labels }) }))
}

onPage('a list shows no gap after more starts than the channel reports', '/ui/tasks?label=lot:gap', async page => {
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

onPage('a long list loads while the user scrolls, up to its limit', '/ui/tasks?label=lot:long', async page => {
  await startMany(2150, { lot: 'long' })
  await page.reload()
  let asked = 0
  page.on('request', r => { if (/\/v1\/tasks\?.*cursor=/.test(r.url())) asked++ })
  const end = page.getByText('Showing the first 2,000 tasks. Add a filter to find others.')
  await until(async () => {
    await page.locator('.rows').evaluate(rows => rows.scrollTo(0, rows.scrollHeight))
    return end.isVisible()
  }, 'the end of the list is reached')
  assert.equal(asked, 19)
  await page.getByText('2,000+ tasks').waitFor()
})

const lines = async page => Number.parseInt((await page.locator('.log-view .table-tools .faint').textContent()).replaceAll(',', ''))

onPoorPage('a log continues after the server has refused it', () => `/ui/tasks/${printing}?tab=logs`, async page => {
  await page.locator('.log-line').first().waitFor()
  let refused = 0
  await page.route('**/logs/stream?*', route => (refused++ === 0 ? route.fulfill({ status: 503 }) : route.continue()))
  await page.getByLabel('Filter by stream').selectOption('stderr')
  await until(() => refused === 1, 'the log is refused')
  await page.locator('.log-line').first().waitFor()
  const before = await lines(page)
  await until(async () => (await lines(page)) > before, 'more lines come')
})

onPage('a hidden log holds no connection and resumes behind its last line', () => `/ui/tasks/${printing}?tab=logs`, async page => {
  await page.locator('.log-line').first().waitFor()
  const left = page.waitForEvent('requestfailed', r => r.url().includes('/logs/stream'))
  await seen(page, false)
  await left
  const before = await lines(page)
  const again = page.waitForRequest('**/logs/stream?after=*')
  await seen(page, true)
  await again
  await until(async () => (await lines(page)) > before, 'more lines come')
})

onPage('details of a running task stay current when answers take over a second', () => `/ui/tasks/${printing}?tab=events`, async page => {
  const newest = async () => Number.parseInt(await page.locator('tbody td').first().textContent())
  await page.locator('tbody td').first().waitFor()
  await page.route('**/events?*', async route => {
    await sleep(1500)
    await route.continue().catch(() => {}) // the page may have canceled the request
  })
  for (let i = 0; i < 2; i++) {
    const before = await newest()
    await until(async () => (await newest()) > before, 'newer events are shown')
  }
})

onPage('a hidden task page sends no requests and is current when shown again', () => `/ui/tasks/${printing}?tab=events`, async page => {
  const newest = async () => Number.parseInt(await page.locator('tbody td').first().textContent())
  await page.locator('tbody td').first().waitFor()
  await seen(page, false)
  await sleep(1500) // lets requests in flight finish
  const before = await newest()
  let asked = 0
  page.on('request', () => asked++)
  await sleep(3000)
  assert.equal(asked, 0)
  await seen(page, true)
  await until(async () => (await newest()) > before, 'newer events are shown')
})

onPoorPage('form input and a list survive failed reads', '/ui/flows/pay?tab=start', async page => {
  await page.getByLabel('amount').fill('1234')
  let refused = 0
  await page.route('**/v1/**', route => {
    refused += Number(new URL(route.request().url()).pathname === '/v1/flows/pay')
    return route.fulfill({ status: 403, json: { title: 'no', status: 403, code: 'forbidden', message: 'nobody may' } })
  })
  await sleep(1100) // the page reads data again only if it is older than a second
  await seen(page, false)
  await seen(page, true)
  await until(() => refused > 0, 'the flow is asked for')
  await sleep(500)
  assert.equal(await page.getByLabel('amount').inputValue(), '1234')
  await page.unroute('**/v1/**')
  await page.goto(`${member.url}/ui/tasks/${printing}?tab=events`)
  await page.getByRole('button', { name: 'Older events' }).waitFor()
  refused = 0
  await page.route('**/events?*', route => {
    refused++
    return route.fulfill({ status: 403, json: { title: 'no', status: 403, code: 'forbidden', message: 'nobody may' } })
  })
  await until(() => refused > 0, 'the events are asked for')
  await sleep(500)
  await page.getByRole('button', { name: 'Older events' }).waitFor({ timeout: 1000 })
})

const wide = { start: 'one', nodes: { one: { exec_type: 'local_func', func: 'upper', params: { text: 'x' } }, all: { kind: 'foreach', exec_type: 'local_func', func: 'mul', params: { mul: 2 }, prep: { input_key: '$params.list' } } }, edges: [{ from: 'one', action: 'default', to: 'all' }] }

test('the units of each step are shown from the first one', { timeout: 120_000 }, async () => {
  await member.api('PUT', '/v1/flows/wide', wide)
  const id = await member.start('wide', { list: Array.from({ length: 120 }, (_, i) => i) })
  await until(async () => (await member.api('GET', `/v1/tasks/${id}`)).state === 'completed', `${id} ends`)
  await onPageOf(browser, `${member.url}/ui/tasks/${id}?node=one`, async page => {
    const choose = async name => {
      await page.locator(`.graph [data-node^="${name}: "]`).click()
      await page.getByRole('complementary', { name: `Step ${name}` }).waitFor()
    }
    await page.getByLabel('output', { exact: true }).first().waitFor()
    await choose('all')
    await page.getByRole('button', { name: 'Next', exact: true }).click()
    await page.locator('.units').getByText('50', { exact: true }).waitFor()
    await choose('one')
    await page.locator('.unit-facts').waitFor()
    await choose('all')
    await page.locator('.units').getByText('0', { exact: true }).waitFor()
  })
})

test('dialog input stays when another wait ends', { timeout: 120_000 }, async () => {
  const wait = key => ({ kind: 'wait_event', params: { signal_key: `$shared.${key}` } })
  await member.api('PUT', '/v1/flows/two-waits', { nodes: { first: wait('first'), second: wait('second') } })
  const id = await member.start('two-waits', {})
  await onPageOf(browser, `${member.url}/ui/tasks/${id}`, async page => {
    await page.getByRole('button', { name: 'Send second' }).click()
    await page.getByRole('dialog').getByLabel('Value').fill('"of mine"')
    await member.api('POST', `/v1/tasks/${id}/signal`, { key: 'first', value: 1 })
    await page.locator('.wait').nth(1).waitFor({ state: 'detached' })
    assert.equal(await page.getByRole('dialog').getByLabel('Value').inputValue(), '"of mine"')
    await page.getByRole('dialog').getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.task-head').getByText('completed').waitFor()
  })
})

test("recent tasks are found when the browser's clock is wrong", { timeout: 120_000 }, async () => {
  await startMany(2, { lot: 'clock' })
  for (const minutes of [-40, 40]) {
    const { page, complaints, close } = await openPage(browser)
    try {
      await page.addInitScript(ms => {
        const real = Date.now
        Date.now = () => real() + ms
      }, minutes * 60_000)
      const asked = page.waitForRequest(/\/v1\/tasks\?.*created_from/)
      await page.goto(`${member.url}/ui/tasks?since=15m&label=lot:clock`)
      const from = Date.parse(new URL((await asked).url()).searchParams.get('created_from'))
      assert.ok(Math.abs(Date.now() - 15 * 60_000 - from) < 60_000, `asked for what began since ${new Date(from).toISOString()}`)
      await page.waitForFunction(() => document.querySelectorAll('.rows .row a.cover').length === 2)
      assert.deepEqual(complaints, [])
    } finally {
      await close()
    }
  }
})

const inside = title => ({ start: 'box', nodes: { box: { kind: 'subflow', subflow: { start: 'ask', nodes: { ask: { kind: 'approval', params: { approval_key: '$shared.decision', title } } } } } } })

test('a wait inside a closed node leads to its step', { timeout: 120_000 }, async () => {
  await member.api('PUT', '/v1/flows/inside', inside('Really?'))
  const id = await member.start('inside', {})
  await onPageOf(browser, `${member.url}/ui/tasks/${id}`, async page => {
    await page.getByRole('button', { name: 'box#1/ask' }).click()
    await page.getByRole('complementary', { name: 'Step ask' }).getByText('waiting').waitFor()
    await page.reload()
    await page.getByRole('complementary', { name: 'Step ask' }).getByText('waiting').waitFor()
  })
})

test('long words do not widen a page on a phone', { timeout: 120_000 }, async () => {
  const word = 'y'.repeat(180)
  await member.api('PUT', '/v1/flows/words', inside(word))
  const id = await member.start('words', {}, { labels: { word: word.slice(0, 100) } })
  await until(async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items.length === 1, 'the approval is there')
  for (const [path, there] of [['approvals', '.approvals li'], [`tasks/${id}`, '.facts .label'], [`tasks?error=${word}&flow=words`, '.chip']]) {
    await onPageOf(browser, `${member.url}/ui/${path}`, async page => {
      await page.locator(there).first().waitFor()
      assert.equal(await page.evaluate(() => document.querySelector('main').scrollWidth), 360, path)
    }, { viewport: { width: 360, height: 740 } })
  }
})

/** paged answers like a server that has more than one page of items. */
async function paged(page, path, of) {
  const items = (from, to) => Array.from({ length: to - from }, (_, i) => of(from + i))
  await page.route(`**${path}?*`, route => route.fulfill({ json: new URL(route.request().url()).searchParams.get('cursor') ? { items: items(500, 520) } : { items: items(0, 500), next: 'behind' } }))
}

onPage('workers and schedules beyond the first page can be shown', '/ui/flows', async page => {
  const at = new Date().toISOString()
  await paged(page, '/v1/workers', n => ({ id: `w-${n}`, state: 'online', services: ['transform'], load: 0, capacity: 1, last_heartbeat_at: at, registered_at: at }))
  await paged(page, '/v1/schedules', n => ({ name: `s-${n}`, flow: 'greet', every: '24h', enabled: true, started_count: 0, skipped_count: 0, next_at: at }))
  for (const [path, more] of [['workers', 'Load more workers'], ['schedules', 'Load more schedules']]) {
    await page.goto(`${member.url}/ui/${path}`)
    await page.locator('tbody tr').nth(499).waitFor()
    await page.locator('button', { hasText: more }).click()
    await page.locator('tbody tr').nth(519).waitFor()
    await page.locator('button', { hasText: more }).waitFor({ state: 'detached' })
  }
})

onPoorPage('an expired session leads to the sign-in at once', '/ui/', async page => {
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.route('**/v1/**', route => route.fulfill({ status: 401, json: { title: 'Unauthorized', status: 401, code: 'unauthorized', message: 'a token is needed' } }))
  await page.getByLabel('Token').waitFor({ timeout: 15_000 })
})

onPage('rows do not move under the focus', '/ui/tasks?label=lot:focus', async page => {
  await startMany(2, { lot: 'focus' })
  await page.locator('.row a.cover').nth(1).focus()
  const place = () => page.evaluate(() => document.activeElement.closest('.row')?.getBoundingClientRect().top)
  const before = await place()
  await startMany(40, { lot: 'focus' })
  await page.getByRole('button', { name: '40 new' }).waitFor()
  assert.equal(await place(), before)
})

test('a copy over plain HTTP can be pasted, and a failed copy is reported', { timeout: 120_000 }, async () => {
  const { page, close } = await openPage(browser)
  page.setDefaultTimeout(patience)
  try {
    await page.route('http://troupe.test/**', async route => route.fulfill({ response: await route.fetch({ url: route.request().url().replace('http://troupe.test', member.url), headers: {} }) }))
    await page.goto(`http://troupe.test/ui/tasks/${printing}`)
    await page.getByRole('button', { name: 'Copy ID' }).click()
    assert.equal(await page.evaluate(() => navigator.clipboard), undefined)
    const search = page.getByRole('search').getByRole('textbox')
    await search.focus()
    await page.keyboard.press('Control+v')
    assert.equal(await search.inputValue(), printing)
    await page.evaluate(() => { document.execCommand = () => false })
    await page.getByRole('button', { name: 'Copy ID' }).click()
    await page.getByText('Copying is blocked by the browser.').waitFor()
  } finally {
    await close()
  }
})

test('an approval keeps no input of the previous one', { timeout: 120_000 }, async () => {
  const ids = []
  for (const title of ['First?', 'Second?']) {
    const flow = `asks-${ids.length}`
    await member.api('PUT', `/v1/flows/${flow}`, { start: 'ask', nodes: { ask: { kind: 'approval', params: { approval_key: '$shared.decision', title } } } })
    const id = await member.start(flow, {})
    await until(async () => (await member.api('GET', `/v1/approvals?q=${id}`)).items.length === 1, 'the approval is there')
    ids.push((await member.api('GET', `/v1/approvals?q=${id}`)).items[0].id)
  }
  const row = (page, id) => page.locator(`.approvals a[href$="/approvals/${encodeURIComponent(id)}"]`)
  await onPageOf(browser, `${member.url}/ui/approvals`, async page => {
    await row(page, ids[0]).click()
    await page.getByRole('heading', { name: 'First?' }).waitFor()
    await page.getByRole('link', { name: 'Approvals', exact: true }).last().click()
    await row(page, ids[1]).click()
    await page.getByRole('heading', { name: 'Second?' }).waitFor()
    await page.getByLabel('Comment').fill('of the second')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('status').getByText('approved').waitFor()
    await page.evaluate(() => history.go(-2))
    await page.getByRole('heading', { name: 'First?' }).waitFor()
    await page.getByRole('button', { name: 'Approve' }).waitFor({ timeout: 5000 })
    assert.equal(await page.getByLabel('Comment').inputValue(), '')
  })
})

onPoorPage('a missing answer is explained in plain words and retried', '/ui/tasks', async page => {
  let away = false
  const sockets = []
  await page.routeWebSocket('**/v1/ws', socket => {
    if (away) return void socket.close()
    socket.connectToServer()
    sockets.push(socket)
  })
  await page.route('**/v1/**', route => (away ? route.abort() : route.continue()))
  await page.reload()
  await page.getByRole('button', { name: 'live', exact: true }).waitFor()
  await page.locator('.row a.cover').first().waitFor()
  away = true
  for (const socket of sockets) await socket.close()
  await page.getByText('The list may be outdated. The server does not respond. Retrying …').waitFor()
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('alert').getByText('Retrying every few seconds.').first().waitFor()
  away = false
  await page.getByText('Idle connection timeout').waitFor()
  await page.waitForFunction(() => !document.querySelector('[role=alert]'))
  await page.goto(`${member.url}/ui/flows/pay?tab=start`)
  await page.getByLabel('amount').fill('1200')
  await page.getByLabel('lines').fill('[1, 2]')
  away = true
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('alert').getByText('The server does not respond.').waitFor()
  assert.equal(await page.getByText('Failed to fetch').count(), 0)
})

test('rows far down a list are current after a return and after a break', { timeout: 120_000 }, async () => {
  const wait = { start: 'wait', nodes: { wait: { kind: 'wait_event', params: { signal_key: '$shared.go' } } } }
  await member.api('PUT', '/v1/flows/waiting', wait)
  const ids = [await member.start('waiting', {}, { labels: { lot: 'deep' } }), await member.start('waiting', {}, { labels: { lot: 'deep' } })]
  await startMany(248, { lot: 'deep' })
  const end = async id => {
    await member.api('POST', `/v1/tasks/${id}/signal`, { key: 'go', value: 1 })
    await until(async () => (await member.api('GET', `/v1/tasks/${id}`)).state === 'completed', `${id} ends`)
  }
  const row = (page, id) => page.getByRole('row').filter({ has: page.locator(`[title="${id}"]`) })
  const down = page => until(async () => {
    await page.locator('.rows').evaluate(rows => rows.scrollTo(0, rows.scrollHeight))
    return row(page, ids[0]).isVisible()
  }, 'the end of the list is reached')
  await onPageOf(browser, `${member.url}/ui/tasks?label=lot:deep`, async page => {
    await down(page)
    await row(page, ids[0]).getByText('running').waitFor()
    await row(page, ids[0]).getByRole('link', { name: /^task-/ }).click()
    await page.locator('.task-head').getByText('running').waitFor()
    await end(ids[0])
    await page.locator('.task-head').getByText('completed').waitFor()
    await page.goBack()
    await down(page)
    await row(page, ids[0]).getByText('completed').waitFor({ timeout: 10_000 })
    await page.getByRole('button', { name: 'live', exact: true }).click()
    await end(ids[1])
    assert.ok(await row(page, ids[1]).getByText('running').isVisible())
    await page.getByRole('button', { name: 'not live' }).click()
    await row(page, ids[1]).getByText('completed').waitFor({ timeout: 10_000 })
  })
})

test('a dead connection is replaced, and an idle one is kept', { timeout: 120_000 }, async () => {
  const { page, complaints, close } = await openPage(browser)
  page.setDefaultTimeout(patience)
  let silent = false, opened = 0, answered = 0
  try {
    await page.clock.install()
    await page.routeWebSocket('**/v1/ws', socket => {
      const server = socket.connectToServer()
      opened++
      server.onMessage(m => {
        if (silent) return
        answered += JSON.parse(m).event === 'rejected' ? 1 : 0
        socket.send(m)
      })
    })
    await page.goto(`${member.url}/ui/tasks?label=lot:none`)
    const live = page.getByRole('button', { name: 'live', exact: true })
    await live.waitFor()
    for (let i = 1; i < 4; i++) {
      await page.clock.runFor(11_000)
      await until(() => answered === i, 'the member has answered')
    }
    assert.equal(opened, 1)
    silent = true
    await page.clock.runFor(22_000)
    await until(() => opened === 2, 'another connection is opened')
    silent = false
    await live.waitFor()
    assert.deepEqual(complaints, [])
  } finally {
    await close()
  }
})

/** startHeld starts a task that waits for a held step. */
async function startHeld() {
  await member.api('PUT', '/v1/flows/held', { mode: 'dag', nodes: { a: { route: 'direct' }, b: { route: 'direct', depends_on: ['a'] } } })
  const id = await member.start('held', {})
  await member.api('POST', `/v1/tasks/${id}/hold`, { step: 'b' })
  await member.api('POST', `/v1/tasks/${id}/complete`, { step: 'a', output: 1 })
  return id
}

onPage('a held step is released from the list of waits', '/ui/', async page => {
  await page.goto(`${member.url}/ui/tasks/${await startHeld()}`)
  const waits = page.getByLabel('Current waits')
  await waits.getByText('the step is held').waitFor()
  await waits.getByRole('button', { name: 'Release' }).click()
  await waits.getByRole('button', { name: 'Complete' }).waitFor()
})

onPoorPage('an action refused for a missing token leads to the sign-in', '/ui/', async page => {
  await page.goto(`${member.url}/ui/tasks/${await startHeld()}`)
  const release = page.getByLabel('Current waits').getByRole('button', { name: 'Release' })
  await release.waitFor()
  const refusal = { status: 401, json: { title: 'Unauthorized', status: 401, code: 'unauthorized', message: 'a token is needed' } }
  await page.route('**/release', route => route.fulfill(refusal))
  await page.route('**/v1/info', route => route.fulfill(refusal))
  await release.click()
  await page.getByLabel('Token').waitFor({ timeout: 5_000 })
})
