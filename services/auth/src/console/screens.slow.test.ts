import { readFile } from 'node:fs/promises'
import { accessibilityFaults } from '@services/common/testing/http/accessibility'
import type { Route } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enrollTotp, totpCode, verifyTotp } from '../../test/second-factors.ts'
import { type ConsoleBrowser, startConsoleBrowser } from './testing/console-browser.ts'

describe('the console', { tags: 'chromium' }, () => {
  let console_: ConsoleBrowser
  beforeAll(async () => {
    console_ = await startConsoleBrowser()
  })
  afterAll(() => console_?.close())

  const userNamed = async (full_name: unknown, email: string) => {
    const user = { email, email_confirm: true, password: 'correct horse', user_metadata: { full_name } }
    return (await console_.service.post('/admin/users', user, console_.service.admin)).body as { id: string }
  }
  const read = async (id: string) => (await console_.service.get(`/admin/users/${id}`, console_.service.admin)).body

  test('a user is found, changed and deleted by keys alone', async () => {
    const { id } = await userNamed('Kay Board', 'keys@example.com')
    const { page, open, complaints } = await console_.openConsole()
    await open('/users', 'Users')
    const press = async (role: 'link' | 'button', name: string) => {
      await page.getByRole(role, { name, exact: true }).first().focus()
      await page.keyboard.press('Enter')
    }
    await page.getByRole('searchbox', { name: 'Search' }).focus()
    await page.keyboard.type('Kay B')
    await page.keyboard.press('Enter')
    // The result takes the focus to the heading: a link that has it before would lose it.
    await page.locator('h1:focus').waitFor()
    await page.locator('tbody tr').first().getByText('Kay Board').waitFor()
    await press('link', 'keys@example.com')
    const heading = page.getByRole('heading', { level: 1, name: 'keys@example.com' })
    await heading.waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toBe('keys@example.com')

    await press('button', 'Ban')
    const dialog = page.getByRole('dialog', { name: 'Ban keys@example.com' })
    await dialog.getByRole('combobox', { name: 'Duration' }).focus()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await press('button', 'Ban')
    const requested = Promise.withResolvers<Route>()
    await page.route(`**/admin/users/${id}`, requested.resolve, { times: 1 })
    await dialog.getByRole('button', { name: 'Ban' }).focus()
    await page.keyboard.press('Enter')
    const request = await requested.promise
    for (const key of ['Escape', 'Escape', 'Enter']) await page.keyboard.press(key)
    await dialog.getByRole('button', { name: 'Cancel' }).press('Enter')
    expect(await dialog.count(), 'while the request runs').toBe(1)
    await request.continue()
    await page.getByRole('status').getByText('User banned').waitFor()
    await page.getByRole('button', { name: 'Lift the ban' }).waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Lift the ban')
    expect((await read(id)).banned_until).toBeDefined()

    await press('button', 'Edit')
    const editor = page.getByRole('textbox', { name: 'JSON object' })
    await editor.fill('{ "full_name": "Kay", ')
    await page.getByText('This is not valid JSON').waitFor()
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Save' }).press('Enter')
    await editor.fill('{ "full_name": "Kay", "full_name": "Bea" }')
    await page.getByText('The name "full_name" is there twice').waitFor()
    await editor.fill('{ "full_name": "Kay" }')
    await page.getByRole('button', { name: 'Save' }).press('Enter')
    await page.getByRole('status').getByText('Metadata saved').waitFor()
    expect((await read(id)).user_metadata).toEqual({ full_name: 'Kay', email_verified: true })

    await press('button', 'Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    expect((await read(id)).error_code).toBe('user_not_found')
    expect(complaints).toEqual([])
  })

  test('a user is created, invited, helped and signed out by keys alone', async () => {
    const { service } = console_
    const { page, open, complaints } = await console_.openConsole()
    const press = (name: string) =>
      page.getByRole('main').getByRole('button', { name, exact: true }).first().press('Enter')
    const dialog = page.getByRole('dialog')
    const agree = (name: string) => dialog.getByRole('button', { name, exact: true }).press('Enter')
    const said = (text: string) => page.getByRole('status').getByText(text).waitFor()
    const titled = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

    await open('/users', 'Users')
    await press('Invite')
    await dialog.getByLabel('E-mail address').fill('invited@example.com')
    await agree('Send the invitation')
    await titled('invited@example.com')
    expect((await service.mailbox.waitFor('invited@example.com')).subject).toBe("You've been invited")

    const email = 'helped@example.com'
    const password = 'correct horse'
    await open('/users', 'Users')
    await press('Create user')
    await dialog.getByLabel('E-mail address').fill(email)
    await dialog.getByLabel('The address counts as confirmed').press('Space')
    await dialog.getByLabel('Password').fill(password)
    await agree('Create')
    await titled(email)
    const signIn = await service.post('/token?grant_type=password', { email, password })
    expect(signIn.status).toBe(200)
    const user = { auth: { authorization: `Bearer ${signIn.body.access_token}` } }
    await verifyTotp(service, user, await enrollTotp(service, user, 'Lost phone'))
    const { id } = signIn.body.user

    await page.reload()
    await press('Send recovery mail')
    await said(`Recovery mail to ${email} queued`)
    expect((await service.mailbox.waitFor(email, { subject: 'Reset your password' })).text).toMatch(/\d{6}/)
    await press('Remove')
    await page.getByRole('dialog', { name: 'Remove Lost phone?' }).waitFor()
    await agree('Remove the factor')
    await said('Factor removed')
    expect((await read(id)).factors).toBeUndefined()
    const download = page.waitForEvent('download')
    await press('Export data')
    expect(JSON.parse(await readFile(await (await download).path(), 'utf8')).user.email).toBe(email)
    await service.post('/token?grant_type=password', { email, password })
    await page.reload()
    await press('Sign out everywhere')
    await agree('Sign out')
    await said('Signed out everywhere')
    await page.getByText('The user is signed in nowhere.').waitFor()
    expect((await service.get(`/admin/users/${id}/sessions`, service.admin)).body).toEqual([])
    expect(complaints).toEqual([])
  })

  test('clients and scopes are in the menu only while the OAuth server is enabled', async () => {
    const { page, open } = await console_.openConsole()
    await open('/keys', 'Keys')
    const menu = page.getByRole('navigation', { name: 'Console' })
    const names = await menu.getByRole('link').allTextContents()
    expect(names.slice(3, 7)).toEqual(['Overview', 'Providers', 'Webhooks', 'Hooks'])
    const capabilities = { trusted_devices: true, oauth_server: true }
    await page.route('**/console/session', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), capabilities } })
    })
    await page.reload()
    await menu.getByRole('link', { name: 'Clients' }).waitFor()
    expect(await menu.getByRole('link').allTextContents()).toEqual(names.toSpliced(5, 0, 'Clients', 'Scopes'))
  })

  test('of two administrators at one user, the second sees the change of the first before it is replaced', async () => {
    const { id } = await userNamed('Two', 'two@example.com')
    const [one, other] = [await console_.openConsole(), await console_.openConsole()]
    const editors = []
    for (const { page, open } of [one, other]) {
      await open(`/users/${id}`)
      await page.getByRole('button', { name: 'Edit' }).first().click()
      editors.push(page.getByRole('textbox', { name: 'JSON object' }))
    }
    const save = async ({ page }: typeof one) => page.getByRole('button', { name: 'Save' }).click()
    console_.service.clock.advance({ seconds: 1 })
    await editors[0]?.fill('{ "full_name": "Two", "email_verified": true, "plan": "gold" }')
    await save(one)
    await one.page.getByText('Metadata saved').waitFor()

    console_.service.clock.advance({ seconds: 1 })
    await editors[1]?.fill('{ "full_name": "Two", "email_verified": true, "plan": "silver", "note": "mine" }')
    await save(other)
    await other.page.getByText('Someone else has changed this meanwhile: plan is now "gold"').waitFor()
    expect((await read(id)).user_metadata).toMatchObject({ plan: 'gold' })
    await save(other)
    await other.page.getByText('Metadata saved').waitFor()
    expect((await read(id)).user_metadata).toMatchObject({ plan: 'silver', note: 'mine' })

    await other.page.getByRole('button', { name: 'Edit' }).first().click()
    await one.page.getByRole('button', { name: 'Delete' }).click()
    await one.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await one.page.getByText('User deleted').waitFor()
    await editors[1]?.fill('{ "plan": "none" }')
    await save(other)
    await other.page.getByRole('dialog').getByText('User not found').waitFor()
  })

  test('says that it is signed out only once it is', async () => {
    const { page, open, admin } = await console_.openConsole()
    await open('/users', 'Users')
    await page.route('**/console/sign-out', (route) => route.abort())
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    await page.unroute('**/console/sign-out')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('alert').getByText('You are signed out.').waitFor()
    expect((await admin.call('GET', '/console/session')).status).toBe(403)
  })

  test('a page that an upgrade breaks while it loads offers to load again, and one that is there needs no more', async () => {
    const { page, open } = await console_.openConsole()
    await page.route('**/kit/form.js?*', (route) => route.fulfill({ status: 404 }), { times: 1 })
    await page.goto(`${console_.url}/console#/users`)
    await page.getByRole('alert').getByText('The service may have been upgraded just now.').waitFor()
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    await page.route('**/console/assets/**', (route) => route.abort())
    for (const heading of ['Audit', 'Webhooks', 'Keys']) await open(`/${heading.toLowerCase()}`, heading)
  })

  test('a new address is confirmed only where the box is ticked for it', async () => {
    const { id } = await userNamed('Moved', 'old@example.com')
    const { page, open, complaints } = await console_.openConsole()
    await open(`/users/${id}`)
    const changeTo = async (email: string, tick: boolean) => {
      await page.getByRole('button', { name: 'Change' }).click()
      await page.getByLabel('E-mail address').fill(email)
      const box = page.getByLabel('The address counts as confirmed')
      expect(await box.isChecked()).toBe(false)
      if (tick) await box.check()
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('heading', { level: 1, name: email }).waitFor()
      return 'email_confirmed_at' in (await read(id))
    }
    expect(await changeTo('typed@example.com', false)).toBe(false)
    expect(await changeTo('shown@example.com', true)).toBe(true)
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByLabel('E-mail address').fill('other@example.com')
    await page.getByLabel('E-mail address').fill('shown@example.com')
    expect(await page.getByLabel('The address counts as confirmed').isChecked()).toBe(true)
    expect(complaints).toEqual([])
  })

  test('the rights of an administrator are shown and taken as they are held, after a question', async () => {
    const { page, open, admin } = await console_.openConsole()
    const { id } = await userNamed('Held', 'held@example.com')
    await console_.service.put(`/admin/users/${id}`, { app_metadata: { role: 'service_role' } }, console_.service.admin)
    const roles = async () => {
      const { role, app_metadata } = await read(id)
      return [role, app_metadata.role]
    }
    await open(`/users/${id}`, 'held@example.com')
    const mark = page.getByRole('main').getByText('administrator', { exact: true })
    await mark.waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    const role = page.getByRole('textbox', { name: 'Role', exact: true })
    const metadata = page.getByRole('textbox', { name: 'Role in the metadata of the application' })
    expect([await role.inputValue(), await metadata.inputValue()]).toEqual(['authenticated', 'service_role'])
    await role.fill('supabase_admin')
    await metadata.fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('User saved').waitFor()
    expect(await roles()).toEqual(['supabase_admin', undefined])

    await page.getByRole('button', { name: 'Change' }).click()
    await role.fill('authenticated')
    await page.getByRole('button', { name: 'Save' }).click()
    const question = page.getByRole('dialog', { name: 'Take the rights of held@example.com?' })
    await question.getByText('If no administrator is left, only the command admin create makes one again.').waitFor()
    await question.getByRole('button', { name: 'Cancel' }).click()
    expect([await roles(), await role.inputValue()]).toEqual([['supabase_admin', undefined], 'authenticated'])
    await page.getByRole('button', { name: 'Save' }).click()
    await question.getByRole('button', { name: 'Take them' }).click()
    await mark.waitFor({ state: 'detached' })
    expect(await roles()).toEqual(['authenticated', undefined])

    await open(`/users/${admin.userId}`, admin.email)
    await page.getByRole('button', { name: 'Change' }).click()
    await role.fill('authenticated')
    await page.getByRole('button', { name: 'Save' }).click()
    const own = page.getByRole('dialog', { name: 'Give up your own rights?' })
    await own.getByText('the console closes for you at once').waitFor()
    await own.getByRole('button', { name: 'Give them up' }).click()
    await page.getByRole('alert').getByText('This account is not an administrator.').waitFor()
  })

  test('a part of a user that is slow or fails keeps no act away, nor shows what was before', async () => {
    const { id } = await userNamed('Parts', 'parts@example.com')
    const { page } = await console_.openConsole()
    const slow: Route[] = []
    await page.route('**/admin/audit?*', (route) => route.fulfill({ status: 504, json: { message: 'Too slow' } }))
    await page.route('**/admin/messages?*', (route) => void slow.push(route))
    await page.goto(`${console_.url}/console#/users/${id}`)
    const audit = page.getByRole('region', { name: 'Audit' })
    await audit.getByText('Too slow').waitFor()
    await page.getByRole('region', { name: 'Sessions' }).getByText('The user is signed in nowhere.').waitFor()
    // The page asks for its parts again after each act.
    const after = async (name: string, act: () => Promise<void>) => {
      const failed = page.waitForResponse('**/admin/audit?*')
      await act()
      await failed
      await page.getByRole('button', { name, exact: true }).waitFor()
    }
    await page.getByRole('button', { name: 'Ban', exact: true }).click()
    await after('Lift the ban', () => page.getByRole('dialog').getByRole('button', { name: 'Ban' }).click())
    await after('Ban', () => page.getByRole('button', { name: 'Lift the ban' }).click())
    const answer = (kind: string) => ({ json: { messages: [{ kind, channel: 'mail', state: 'sent' }] } })
    await slow[1]?.fulfill(answer('while_banned'))
    await slow[2]?.fulfill(answer('newest'))
    await page.getByText('newest (mail)').waitFor()
    await slow[0]?.fulfill(answer('oldest'))
    await page.unroute('**/admin/audit?*')
    await audit.getByRole('button', { name: 'Try again' }).click()
    await audit.getByText('user_modified').first().waitFor()
    expect(await page.getByText('newest (mail)').count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Lift the ban' }).count()).toBe(0)
  })

  test('a session that was ended elsewhere leads to the sign-in and back to the same page', async () => {
    const { id } = await userNamed('Ended', 'ended@example.com')
    const { page, open, admin } = await console_.openConsole()
    await open(`/users/${id}`)
    await console_.service.delete(`/admin/users/${admin.userId}/sessions`, console_.service.admin)
    await page.getByRole('button', { name: 'Ban' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Ban' }).click()
    await page.getByRole('alert').getByText('Your session has ended.').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect((await read(id)).banned_until).toBeUndefined()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByLabel('Email address').fill(admin.email)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByLabel('Password').fill('correct horse')
    await page.getByRole('button', { name: 'Sign in' }).click()
    const code = page.getByLabel('Code', { exact: true })
    await code.waitFor()
    console_.service.clock.advance({ seconds: 30 })
    await code.fill(totpCode(admin.totp.secret, console_.service.clock.now()))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { level: 1, name: 'ended@example.com' }).waitFor()
  })
})
