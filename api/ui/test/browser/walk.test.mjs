// An operator's path: a worker dies, a queue ages, and an alert fires. Its link leads to the queue,
// to the waiting tasks, and to the remedy. Every number on the way equals that of the list it links
// to.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { openPage, patience, startBrowser, startMember, until } from './harness.mjs'

const service = 'press'
const definition = { nodes: { print: { service, route: 'queue', start_timeout: '20s' } } }
let member, browser

before(async () => {
  member = await startMember({ flags: ['--worker-ttl', '2s'] })
  browser = await startBrowser()
  await member.api('PUT', '/v1/flows/leaflets', definition)
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

function startWorker() {
  return spawn(process.env.TROUPE, ['worker', '--server', member.url, '--mode', 'pull', '--exec', `${service}=echo 1`], { stdio: 'ignore' })
}

/** series returns the values of a metric by service. */
function series(metrics, name) {
  const found = new Map()
  for (const [, labels, value] of metrics.matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, 'gm'))) {
    const of = /service="([^"]*)"/.exec(labels)?.[1]
    found.set(of, Math.max(found.get(of) ?? -Infinity, Number(value)))
  }
  return found
}

const rules = readFileSync(new URL('../../../../deploy/observability/alerts.yaml', import.meta.url), 'utf8')
const alert = name => rules.slice(rules.indexOf(`alert: ${name}\n`)).split('- alert: ')[0]

/**
 * firing returns the services for which the alert's own expression is true, given an earlier and a
 * current output of a member's metrics.
 */
function firing(name, before, now) {
  const expression = /expr: >-\n([\s\S]*?)\n {8}for:/.exec(alert(name))[1].replace(/\s+/g, ' ').trim()
  const vectors = []
  const form = expression.replace(/(max|sum) by \(service\) \((increase\()?(\w+)(?:\[5m\]\))?\) > (\d+)/g, (_, how, increase, metric, least) => {
    const old = increase ? series(before, metric) : new Map()
    vectors.push([...series(now, metric)].filter(([of, value]) => value - (old.get(of) ?? 0) > Number(least)).map(([of]) => of))
    return 'V'
  })
  assert.equal(form, '(V unless on (service) (V)) unless on (service) (V)', 'the expression has a form that this test can work out')
  const [wait, served, begun] = vectors
  return wait.filter(of => !served.includes(of) && !begun.includes(of))
}

const scrape = async () => (await fetch(`${member.url}/metrics`)).text()
const count = async query => (await member.api('GET', `/v1/tasks/count?${query}`)).count
const rows = (page, n) => page.waitForFunction(n => document.querySelectorAll('.rows .row:not(.row-head)').length === n, n)

test('an alert leads from a dead worker to its waiting tasks and their completion', { timeout: 120_000 }, async () => {
  const first = startWorker()
  const done = await member.start('leaflets', {})
  await until(async () => (await member.api('GET', `/v1/tasks/${done}`)).state === 'completed', 'a worker prints')
  first.kill('SIGKILL')
  await once(first, 'exit')

  const left = []
  for (let n = 0; n < 3; n++) left.push(await member.start('leaflets', { n }))
  await until(async () => (await member.api('GET', `/v1/workers?service=${service}&state=online`)).items.length === 0, 'the worker is missed')
  const before = await scrape()
  await until(async () => firing('QueueWithoutWorkers', before, await scrape()).includes(service), 'the alert would fire')

  const { page, complaints, close } = await openPage(browser)
  page.setDefaultTimeout(patience)
  try {
    const link = /https:\/\/troupe\.example(\/ui\/[^'\n]+)/.exec(alert('QueueWithoutWorkers'))[1].replace('{{ $labels.service }}', service)
    await page.goto(member.url + link)
    const queue = page.getByRole('row').filter({ hasText: service }).filter({ hasText: 'No workers' })
    await queue.waitFor()
    assert.equal(await queue.getAttribute('aria-current'), 'true')
    const told = (await member.api('GET', '/v1/queues')).items.find(q => q.service === service)
    assert.deepEqual([told.waiting, told.tasks, await count(`queued=${service}`)], [3, 3, 3])
    await queue.getByRole('link', { name: `3 tasks of ${service}` }).click()
    await page.getByRole('link', { name: `Remove filter Queue: ${service}` }).waitFor()
    await rows(page, 3)

    await until(async () => (await count('flow=leaflets&state=failed')) === 3, 'nobody came for them', 60_000)
    await page.goto(`${member.url}/ui/`)
    const group = (await member.api('GET', '/v1/overview')).recent_failures.groups.find(g => g.flow === 'leaflets')
    assert.deepEqual([group.count, await count(group.query)], [3, 3])
    await page.getByRole('region', { name: 'Failures' }).getByRole('row').filter({ hasText: 'leaflets' }).getByRole('link', { name: '3', exact: true }).click()
    await rows(page, 3)

    const second = startWorker()
    try {
      await page.getByLabel('Actions for all matching tasks').selectOption('retry')
      const dialog = page.getByRole('dialog')
      await dialog.getByText('3 tasks will be retried.').waitFor()
      await dialog.getByRole('button', { name: 'Retry 3 tasks' }).click()
      await page.getByText('3 tasks retried').waitFor()
      for (const id of left) await until(async () => (await member.api('GET', `/v1/tasks/${id}`)).state === 'completed', `${id} is printed`)
    } finally {
      second.kill('SIGTERM')
      await once(second, 'exit')
    }
    assert.deepEqual(firing('QueueWithoutWorkers', before, await scrape()), [])
    assert.deepEqual(complaints, [])
  } finally {
    await close()
  }
})
