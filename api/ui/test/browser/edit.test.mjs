// Editing flows on their pages: with the keyboard, and checked against the server.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axeFinds, openPage, patience, startBrowser, startMember, until } from './harness.mjs'

let member, browser

before(async () => {
  member = await startMember()
  browser = await startBrowser()
}, { timeout: 120_000 })

after(async () => {
  await browser?.close()
  await member?.stop()
})

/** onPage runs a test on a page, in which the browser must report no problems. */
function onPage(name, path, act, options) {
  test(name, { timeout: 120_000 }, async () => {
    const { page, complaints, close } = await openPage(browser, options)
    page.setDefaultTimeout(patience)
    try {
      await page.goto(member.url + path)
      await act(page)
      assert.deepEqual(complaints.filter(c => !expected(c)), [])
    } finally {
      await close()
    }
  })
}

// expected reports whether a console message is expected: a refusal, or that Chromium may not apply
// the inline colors of the editor.
const expected = complaint => /status of (404|409)|^console: Applying inline style violates/.test(complaint)

const text = page => page.getByRole('textbox', { name: /^Definition of/ })
const written = page => page.evaluate(() => [...document.querySelector('.code').shadowRoot.querySelectorAll('.cm-line')].map(l => l.textContent).join('\n'))
const focused = page => page.evaluate(() => {
  const e = document.activeElement
  return e.shadowRoot ? e.shadowRoot.activeElement?.getAttribute('aria-label') : (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent || e.tagName)
})

/** tabTo presses Tab until the named element has the focus, like a user without a mouse. */
async function tabTo(page, name, back = false) {
  for (let i = 0; i < 80; i++) {
    if (name.test(String(await focused(page)))) return
    await page.keyboard.press(back ? 'Shift+Tab' : 'Tab')
  }
  throw new Error(`Tab does not lead to ${name}`)
}

const definition = `# doubled, and then some
inputs: {amount: integer}
nodes:
  double:
    service: transform
    prep: {input_key: $run.amount}
    params: {mul: 2}
  rest:
    knd: timer
    depends_on: [double]
    params: {delay_ms: 300}
`

/** offered returns the offered completions of a word. */
const offered = (page, options) => page.locator('.cm-tooltip-autocomplete').getByRole('option', options)

for (const colorScheme of ['light', 'dark']) {
  onPage(`a flow is written, fixed, tried and published with the keyboard: ${colorScheme}`, '/ui/flows', async page => {
    const slug = `written-${colorScheme}`
    await page.getByRole('heading', { name: 'Flows' }).waitFor()
    await tabTo(page, /^\s*New flow$/)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/ui/edit')
    await text(page).waitFor()
    await tabTo(page, /^Definition of/)
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(definition)
    await page.getByText('depends_on: [double]').waitFor()
    await page.locator('.graph [data-node="double"]').waitFor()
    await page.getByRole('button', { name: /9:5 .*knd/ }).waitFor()
    await page.locator('.node.tone-failed').getByText('rest').waitFor()

    await tabTo(page, /9:5/) // Tab leaves the editor
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement.shadowRoot)
    await page.locator('.node.selected').getByText('rest').waitFor()
    await page.keyboard.press('Shift+End')
    await page.keyboard.press('Backspace')
    await page.keyboard.type('ki')
    await offered(page, { name: /^kind/ }).waitFor()
    await page.keyboard.press('Enter')
    await offered(page, { name: 'timer' }).waitFor()
    await page.keyboard.type('ti')
    await offered(page, { name: 'approval' }).waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    assert.match(await written(page), /^ {4}kind: timer$/m)
    await page.getByText('No problems').waitFor()
    assert.deepEqual(await axeFinds(page), [])
    await page.emulateMedia({ colorScheme })

    await tabTo(page, /^Try$/)
    await page.keyboard.press('Enter')
    await tabTo(page, /^Params/)
    await page.keyboard.press('Control+a')
    await page.keyboard.type('{"amount": 21}')
    await tabTo(page, /^Definition of/, true)
    await page.keyboard.press('Control+Enter')
    await page.locator('.graph [data-node="rest: completed"]').waitFor()
    await page.locator('.tried').getByText('completed').waitFor()
    await page.getByLabel('result', { exact: true }).getByText('rest').waitFor()
    assert.deepEqual(await axeFinds(page), [])
    await page.emulateMedia({ colorScheme })
    assert.ok(!(await member.api('GET', '/v1/flows')).items.some(f => f.slug === slug), 'nothing is published')

    await tabTo(page, /^Name/, true)
    await page.keyboard.type(slug)
    await tabTo(page, /^Publish v1$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/ui/edit/${slug}`)
    await page.getByText('published v1', { exact: true }).waitFor()
    assert.match(await written(page), /^# doubled, and then some$/m, 'comments stay where they were written')
    assert.ok((await member.api('GET', `/v1/flows/${slug}/versions/1`)).definition.nodes.rest.kind === 'timer')
  }, { colorScheme })
}

onPage('a published flow opens as equivalent YAML', '/ui/flows/order', async page => {
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByText('No problems').waitFor()
  for (const { slug } of (await member.api('GET', '/v1/flows')).items) {
    await page.goto(`${member.url}/ui/edit/${slug}`)
    await text(page).waitFor()
    await text(page).focus()
    const before = (await member.api('GET', `/v1/flows/${slug}/versions/latest`)).definition
    const sent = await page.evaluate(() => document.querySelector('.code').shadowRoot.querySelector('.cm-content').cmTile?.view.state.doc.toString() ?? document.querySelector('.code').shadowRoot.querySelector('.cm-content').cmView.view.state.doc.toString())
    const tried = await fetch(`${member.url}/v1/flows/again-${slug}`, { method: 'PUT', headers: { 'Content-Type': 'application/yaml' }, body: sent })
    assert.equal(tried.status, 201, await tried.text())
    assert.deepEqual((await member.api('GET', `/v1/flows/again-${slug}/versions/latest`)).definition, before, slug)
  }
})

onPage('a newer version is shown before a draft replaces it', '/ui/edit/greet', async page => {
  await page.getByText('No problems').waitFor()
  await text(page).focus()
  await page.keyboard.press('Control+Home')
  await page.keyboard.type('# mine')
  await page.keyboard.press('Enter')
  await page.getByText('published v1, changed').waitFor()
  const theirs = (await member.api('GET', '/v1/flows/greet/versions/latest')).definition
  await member.api('PUT', '/v1/flows/greet', { ...theirs, description: 'of somebody else' })
  await page.getByRole('button', { name: 'Publish v2' }).click()
  await page.getByText('Version 2 was published in the meantime').waitFor()
  await page.getByRole('button', { name: 'Show differences' }).click()
  await page.getByText('of somebody else').waitFor()
  assert.deepEqual(await axeFinds(page), [])
  await page.getByRole('button', { name: 'Publish my draft as v3' }).click()
  await page.getByText('published v3', { exact: true }).waitFor()
  assert.equal((await member.api('GET', '/v1/flows/greet/versions/3')).definition.description, undefined)
})

onPage('a draft stays in the browser until it is discarded', '/ui/edit/pay', async page => {
  await page.getByText('No problems').waitFor()
  await text(page).focus()
  await page.keyboard.press('Control+Home')
  await page.keyboard.type('# kept ')
  await page.getByText('changed').waitFor()
  await page.reload()
  await page.getByText('# kept').waitFor()
  await page.getByRole('button', { name: 'Discard changes' }).click()
  await page.getByText('published v1', { exact: true }).waitFor()
  assert.doesNotMatch(await written(page), /# kept/)
})

onPage('the server accepts every node of the palette, and a click on it leads to its line', '/ui/edit', async page => {
  await page.getByText('No problems').waitFor()
  const palette = page.getByLabel('Insert node')
  const names = (await palette.locator('option').allTextContents()).slice(1)
  for (const name of names) await palette.selectOption(name)
  await until(async () => (await page.locator('.graph .node').count()) === names.length + 1, 'all of them are drawn')
  await page.getByText('0 errors, 1 warning').waitFor() // the member lacks the local function
  await page.locator('.graph [data-node="approve"]').click()
  await page.waitForFunction(() => /approve:/.test(document.querySelector('.code').shadowRoot.querySelector('.cm-activeLine')?.textContent))
})

onPage('a JSON definition can be edited', '/ui/edit', async page => {
  await text(page).focus()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText('{"nodes": {"a": {"kind": "timr"}}}')
  await page.getByRole('button', { name: /1:\d+ nodes.a.kind/ }).click()
  for (let i = 0; i < 6; i++) await page.keyboard.press('Delete')
  await page.keyboard.type('"tim')
  await offered(page, { name: 'timer' }).waitFor()
  await page.keyboard.press('Enter')
  await until(async () => /"kind": "timer"\}\}\}$/.test(await written(page)), `the value is whole: ${await written(page)}`)
})
