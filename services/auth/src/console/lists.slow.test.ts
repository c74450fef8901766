import { readFile } from 'node:fs/promises'
import { accessibilityFaults } from '@services/common/testing/http/accessibility'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ALL_KINDS } from '../adapters/mail/kinds.ts'
import { type ConsoleBrowser, startConsoleBrowser } from './testing/console-browser.ts'

describe('the lists of the console and what every screen does', { tags: 'chromium' }, () => {
  let console_: ConsoleBrowser
  beforeAll(async () => {
    console_ = await startConsoleBrowser()
  })
  afterAll(() => console_?.close())

  test('a mail that was given up is found by its address and sent again once, also by a double click', async () => {
    const { service } = console_
    const { page, open, complaints } = await console_.openConsole()
    const email = 'given-up@example.com'
    await service.mailbox.answer(550)
    await service.post('/signup', { email, password: 'correct horse' })
    await service.settled()
    await service.mailbox.accept()

    await open('/messages', 'Messages')
    const kinds = await page
      .getByRole('combobox', { name: 'Kind' })
      .locator('option')
      .evaluateAll((options) => options.map((option) => (option as unknown as { value: string }).value))
    expect(kinds).toEqual(expect.arrayContaining(ALL_KINDS))
    await page.getByRole('searchbox', { name: 'Address' }).focus()
    await page.keyboard.type(email)
    await page.keyboard.press('Enter')
    await page.waitForURL(/address=/)
    await page.locator('h1:focus').waitFor()
    const state = page.getByRole('combobox', { name: 'State' })
    await state.focus()
    for (const _ of ['queued', 'sent', 'failed']) await page.keyboard.press('ArrowDown')
    expect(page.url()).not.toContain('state=')
    await page.locator('select[name=state]:focus').waitFor()
    expect(await state.inputValue()).toBe('failed')
    await page.getByRole('button', { name: 'Apply' }).press('Enter')
    await page.waitForURL(/state=failed/)
    const rows = page
      .locator('main:not([aria-busy])')
      .getByRole('row')
      .filter({ has: page.getByRole('cell') })
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.first().textContent()).toMatch(/confirmation \(mail\)\s*failed.*550/s)
    await rows.getByRole('button', { name: 'Send again' }).dblclick()
    await page.getByRole('status').getByText('Message queued').waitFor()
    await service.settled()
    expect(service.mailbox.messages({ to: email })).toHaveLength(1)
    await page.getByText('No message matches.').waitFor()
    await page.goBack()
    await expect.poll(() => state.inputValue()).toBe('')
    expect(complaints).toEqual([])
  })

  test('a refused filter stays in its field, to be corrected there', async () => {
    const { page, open, complaints } = await console_.openConsole()
    await open(`/messages?address=${'a'.repeat(300)}&state=lost`, 'Messages')
    await page.getByRole('alert').getByText('state').waitFor()
    expect(await page.getByRole('combobox', { name: 'State' }).inputValue()).toBe('lost')
    await page.getByRole('searchbox', { name: 'Address' }).fill('')
    await page.getByRole('combobox', { name: 'State' }).selectOption('')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('table', { name: 'Messages' }).or(page.getByText('No message matches.')).waitFor()
    await open('/users?cursor=none&filter=given', 'Users')
    await page.getByRole('main').getByRole('alert').waitFor()
    expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('given')
    await page.getByRole('link', { name: 'First page' }).click()
    await page.getByRole('table', { name: 'Users' }).waitFor()
    expect(complaints.filter((line) => !line.includes('400'))).toEqual([])
  })

  test('the audit log is searched, shown with its details and saved as a file', async () => {
    const { service } = console_
    const name = '<img src=x onerror="document.title=1">'
    const { page, open, complaints } = await console_.openConsole()
    const attempt = { email: 'nobody@example.com', password: 'wrong horse' }
    await service.post('/token?grant_type=password', attempt, { 'user-agent': name })
    await open('/audit', 'Audit')
    await page.getByRole('combobox', { name: 'Search in' }).selectOption('action')
    await page.getByRole('searchbox', { name: 'Text' }).fill('login_failed')
    await page.keyboard.press('Enter')
    await page.waitForURL(/query=action/)
    // The result takes the focus to the heading: a button that has it before would lose it.
    await page.locator('h1:focus').waitFor()
    await page.getByRole('cell', { name: 'nobody@example.com' }).waitFor()
    await page.getByRole('button', { name: 'Details' }).first().press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Entry' })
    await dialog.getByText(name.replaceAll('"', '\\"')).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export as CSV' }).press('Enter')
    const file = await saved
    expect(file.suggestedFilename()).toBe('audit.csv')
    expect(await readFile(await file.path(), 'utf8')).toContain('"login_failed"')

    await page.getByRole('combobox', { name: 'Search in' }).selectOption('user')
    await page.getByRole('searchbox', { name: 'Text' }).fill('no id')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('user:… must have the id of a user').waitFor()
    expect(await page.title()).toBe('Audit – Console')
    await page.goBack()
    await page.getByRole('cell', { name: 'nobody@example.com' }).first().waitFor()
    const fields = [page.getByRole('combobox', { name: 'Search in' }), page.getByRole('searchbox', { name: 'Text' })]
    expect(await Promise.all(fields.map((field) => field.inputValue()))).toEqual(['action', 'login_failed'])
    expect(complaints.filter((line) => !line.includes('400'))).toEqual([])
  })

  test('the overview draws what has happened, and has the same numbers as a table', async () => {
    const { service } = console_
    await service.post('/signup', { email: 'drawn@example.com', password: 'correct horse' })
    await service.post('/token?grant_type=password', { email: 'drawn@example.com', password: 'wrong horse' })
    const { page, open, complaints } = await console_.openConsole()
    await open('/overview', 'Overview')
    const failures = page.getByRole('region', { name: 'Failures', exact: true })
    expect(await failures.locator('rect').count()).toBeGreaterThan(0)
    await failures.getByText('Numbers').press('Enter')
    const { body } = await service.get('/admin/statistics', service.admin)
    const { password } = body.hours.at(-1).failures
    const now = failures.getByRole('table', { name: 'Failures' }).getByRole('row').nth(1)
    await now.getByText(String(password.invalid_credentials), { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Last 30 days' }).press('Enter')
    await page.getByText('Days begin at midnight UTC.').waitFor()
    expect(complaints).toEqual([])
  })

  test('an outcome covers no button that was pressed, a failure stays until it is dismissed', async () => {
    const { page, open, admin } = await console_.openConsole()
    await page.clock.install()
    await open(`/users/${admin.userId}`, admin.email)
    const button = page.getByRole('button', { name: 'Send recovery mail' })
    const { y, height } = (await button.boundingBox()) ?? { y: 0, height: 0 }
    await page.setViewportSize({ width: 1280, height: Math.ceil(y + height) })
    const refused = (status: number, message: string, headers = {}) =>
      page.route('**/recover', (route) => route.fulfill({ status, headers, json: { message } }), { times: 1 })
    await refused(500, 'The first failure')
    await button.press('Enter')
    const failures = page.getByRole('alert').getByText(/./).and(page.locator('p'))
    await failures.getByText('The first failure').waitFor()
    await refused(429, 'Email rate limit exceeded', { 'retry-after': '38' })
    await button.press('Enter')
    await failures.getByText('Email rate limit exceeded. Try again in 38 seconds.').waitFor()
    const at =
      '(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.activeElement.getBoundingClientRect())'
    expect(await page.evaluate(`document.elementFromPoint(...${at}).textContent`)).toBe('Send recovery mail')
    await page.clock.fastForward('20:00')
    expect(await failures.count()).toBe(2)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Dismiss' }).first().click()
    await failures.getByText('The first failure').waitFor({ state: 'detached' })
    expect(await failures.count()).toBe(1)
    // Browsers have no clipboard on plain http.
    await page.evaluate('delete Navigator.prototype.clipboard')
    await page.getByRole('button', { name: `Copy ${admin.userId}` }).click()
    await page.getByRole('status').getByText('Not copied: the browser refuses').waitFor()

    const tooMany = { status: 429, headers: { 'retry-after': '30' }, json: { message: 'Too many' } }
    await page.route('**/admin/messages?*', (route) => route.fulfill(tooMany), { times: 1 })
    await open('/messages', 'Messages')
    const again = page.getByRole('main').getByRole('button', { name: 'Try again' })
    await page.getByText('Too many. Try again in 30 seconds.').waitFor()
    expect(await again.isDisabled()).toBe(true)
    await page.clock.fastForward('00:30')
    await again.click()
    await page.getByRole('searchbox', { name: 'Address' }).waitFor()
  })

  test('the reader is warned before the session ends and before the own account is lost', async () => {
    const { page, open, admin } = await console_.openConsole()
    await page.clock.install()
    await open(`/users/${admin.userId}`, admin.email)
    for (const act of ['Ban', 'Delete']) {
      await page.getByRole('button', { name: act, exact: true }).click()
      await page.getByRole('dialog').getByText('This is your own account: the console closes for you').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    }
    await page.getByRole('button', { name: 'Edit' }).first().click()
    const editor = page.getByRole('textbox', { name: 'JSON object' })
    await editor.fill('{ "typed": true }')
    const warning = page.getByRole('dialog', { name: 'Are you still there?' })
    await page.clock.fastForward('25:00')
    const asked = page.waitForResponse('**/console/session')
    await warning.getByRole('button', { name: 'Stay signed in' }).click()
    expect((await asked).status()).toBe(200)
    await page.clock.fastForward('24:59')
    expect([await warning.count(), await editor.inputValue()]).toEqual([0, '{ "typed": true }'])
    await page.clock.fastForward('00:01')
    await warning.waitFor()
    // A request in another tab has kept the session.
    await page.evaluate("new BroadcastChannel('console-session').postMessage('used')")
    await warning.waitFor({ state: 'detached' })
    await page.clock.fastForward('07:04:59')
    await page.getByRole('dialog', { name: 'Your session ends in a few minutes' }).waitFor()
    expect(await editor.inputValue()).toBe('{ "typed": true }')
  })

  test('of the sessions of a user fifty are shown, with links to the others', async () => {
    const { service } = console_
    const { page, open, admin } = await console_.openConsole()
    await service.deps.pool.query(
      `insert into sessions (id, user_id, aal, initial_aal, amr, refreshed_at, created_at)
        select gen_random_uuid(), $1, 'aal1', 'aal1', '[]', now(), $2::timestamptz - n * interval '1 s'
        from generate_series(1, 60) n`,
      [admin.userId, service.clock.now()],
    )
    await open(`/users/${admin.userId}`, admin.email)
    const rows = page.getByRole('region', { name: 'Sessions' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(50)
    await page.getByRole('link', { name: 'Next page' }).press('Enter')
    await expect.poll(() => rows.count()).toBe(11)
    await page.goBack()
    await expect.poll(() => rows.count()).toBe(50)
  })

  test('without scripts the page says what it needs', async () => {
    const context = await console_.browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto(`${console_.url}/console`)
    expect(await page.locator('noscript p').isVisible()).toBe(true)
    expect(await page.getByText('is loading').isVisible()).toBe(false)
    await context.close()
  })
})
