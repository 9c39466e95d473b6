// Takes the pictures of the main pages for the documentation: node test/browser/shots.mjs FOLDER
// [all]. With all, it takes each picture in light and dark.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openPage, seed, startBrowser, startMember } from './harness.mjs'

const folder = process.argv[2], all = process.argv[3] === 'all'
if (!folder) throw new Error('name the folder for the pictures')
mkdirSync(folder, { recursive: true })
const member = await startMember()
let browser
try {
  browser = await startBrowser()
  const tasks = await seed(member)
  const pictures = [
    ['tasks', '/ui/tasks', 'light'], ['task', `/ui/tasks/${tasks.waiting}`, 'light'], ['failed', `/ui/tasks/${tasks.failed[0]}`, 'dark'],
    ['timeline', `/ui/tasks/${tasks.waiting}?tab=timeline`, 'light'], ['flow', '/ui/flows/order', 'light'], ['workers', '/ui/workers', 'light'],
  ].concat(all ? [
    ['flows', '/ui/flows'], ['start', '/ui/flows/pay?tab=start'], ['nested', `/ui/tasks/${tasks.queued}?open=pack%231`], ['undone', `/ui/tasks/${tasks.refused}`], ['schedules', '/ui/schedules'], ['cluster', '/ui/cluster'],
    ['steps', `/ui/tasks/${tasks.refused}?tab=steps`], ['events', `/ui/tasks/${tasks.refused}?tab=events`], ['values', `/ui/tasks/${tasks.refused}?tab=values`],
  ] : [])
  for (const colorScheme of ['light', 'dark']) {
    const { page, complaints, close } = await openPage(browser, { colorScheme, viewport: { width: 1280, height: 760 } })
    for (const [name, path, scheme] of pictures) {
      if (!all && scheme !== colorScheme) continue
      await page.goto(member.url + path)
      await page.waitForLoadState('networkidle').catch(() => {})
      await page.waitForTimeout(600)
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) })
    }
    if (complaints.length > 0) console.error(colorScheme, complaints)
    await close()
  }
} finally {
  await browser?.close()
  await member.stop()
}
