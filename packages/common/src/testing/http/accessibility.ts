import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

/** The checks of axe-core, which run in the page. Read, not imported: they need a document. */
const CHECKS = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Names the elements of violations only, as describing those that pass takes half of the time. */
const RUN_CHECKS = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)"

interface Violation {
  id: string
  nodes: { target: string[]; failureSummary?: string }[]
}

/**
 * Lists the violations that axe-core finds in a page, a line for each element, such as `region: .report (Fix any …)`.
 */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // A document keeps them: compiling them takes as long as the checks themselves.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(CHECKS)
  const violations = await page.evaluate<Violation[]>(RUN_CHECKS)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id}: ${target.join(' ')} (${failureSummary.replaceAll(/\s+/g, ' ')})`,
    ),
  )
}

/**
 * Watches the focus. In the page: its script would need the types of a document. A radio button that is not chosen is
 * reached by the arrows of its group.
 */
const WATCH_FOCUS = `(() => {
  const scope = document.querySelector('dialog[open]') ?? document.body
  const usable = [...scope.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled)
    .filter((each) => each.type !== 'radio' || each.checked)
  const reached = new Set()
  const unmarked = new Set()
  addEventListener('focusin', ({ target }) => {
    reached.add(target)
    const { outlineStyle, boxShadow } = getComputedStyle(target)
    if (outlineStyle === 'none' && boxShadow === 'none') unmarked.add(target)
  })
  const named = (each) => each.outerHTML.replace(/>.*/s, '>') + each.textContent.trim().slice(0, 40)
  globalThis.focusFaults = () => [
    ...usable.filter((each) => !reached.has(each)).map((each) => 'not reached: ' + named(each)),
    ...usable.filter((each) => unmarked.has(each)).map((each) => 'no visible focus: ' + named(each)),
  ]
  document.activeElement?.blur()
  const parts = { date: 4, time: 4 }
  return usable.reduce((presses, { type }) => presses + (parts[type] ?? 1), 2)
})()`

/** Lists the links, buttons and fields that the Tab key does not reach, or not visibly. In a dialog, those of it. */
export async function keyboardFaults(page: Page): Promise<string[]> {
  const presses = await page.evaluate<number>(WATCH_FOCUS)
  for (let i = 0; i < presses; i++) await page.keyboard.press('Tab')
  return page.evaluate<string[]>('focusFaults()')
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
