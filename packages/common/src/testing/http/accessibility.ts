import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

/** The checks of axe-core, which run in the page. Read, not imported: they need a document. */
const CHECKS = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

interface Violation {
  id: string
  nodes: { target: string[]; failureSummary?: string }[]
}

/**
 * Lists the violations that axe-core finds in a page, a line for each element, such as `region: .report (Fix any …)`.
 */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(CHECKS)
  const violations = await page.evaluate<Violation[]>('axe.run().then(({ violations }) => violations)')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id}: ${target.join(' ')} (${failureSummary.replaceAll(/\s+/g, ' ')})`,
    ),
  )
}

/** Lists those of the page at /docs: as it opens, asking for a token, and with requests tried out and answered. */
export async function accessibilityFaultsOfDocs(page: Page, url: string) {
  await page.goto(url)
  const first = page.locator('.opblock').first()
  await first.waitFor()
  const closed = await accessibilityFaults(page)
  await page.locator('.btn.authorize').first().click()
  await page.locator('.modal-ux').waitFor()
  const asking = await accessibilityFaults(page)
  await page.locator('.close-modal').click()
  const health = page.locator('.opblock-get:has([data-path="/health"])')
  for (const one of [first, page.locator('.opblock-put, .opblock-patch').first(), health]) {
    await one.locator('.opblock-summary-control').press('Enter')
    await one.locator('.try-out__btn').click()
    await one.locator('.execute').waitFor()
  }
  await health.locator('.execute').click()
  await health.locator('.live-responses-table').waitFor()
  return { closed, asking, inUse: await accessibilityFaults(page) }
}
