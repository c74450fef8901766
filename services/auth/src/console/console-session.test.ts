import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { totpCode, verifyTotp, withTotp } from '../../test/second-factors.ts'
import { startTestService, type TestService } from '../../test/service.ts'
import { openPage, send } from '../flows/pages/testing/pages.ts'
import { administratorOf, enterConsole, FROM_CONSOLE } from './testing/administrator.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_CONSOLE_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    }),
  ),
})

test('an administrator acts under their own name, and the audit log says that it was in the console', async ({
  service,
}) => {
  const admin = await administratorOf(service)
  expect((await admin.call('GET', '/console/session')).body).toEqual({
    user: { id: admin.userId, name: admin.email },
    audiences: ['authenticated', 'other'],
    admin_roles: ['service_role', 'supabase_admin'],
    capabilities: { trusted_devices: true, oauth_server: false },
    idle_seconds: 1800,
    seconds_left: 8 * 3600,
  })
  const { userId } = await service.signedIn()
  service.clock.advance({ seconds: 1 })
  expect((await admin.call('PUT', `/admin/users/${userId}`, { role: 'editor' })).status).toBe(200)
  const { body } = await admin.call('GET', `/admin/audit?query=user:${userId}&limit=1`)
  expect(body[0].payload).toMatchObject({ action: 'user_modified', actor_id: admin.userId, via: 'console' })
  service.clock.advance({ seconds: 1 })
  const scripted = await service.put(`/admin/users/${userId}`, { role: 'author' }, service.admin)
  expect(scripted.status).toBe(200)
  const [entry] = (await admin.call('GET', `/admin/audit?query=user:${userId}&limit=1`)).body
  expect(entry.payload).not.toHaveProperty('via')
})

test('mails that an administrator sends lead to the site, not to the console on its host', async ({ service }) => {
  const site = 'https://auth.example/app'
  const at = await service.with({ AUTH_SITE_URL: site })
  const admin = await administratorOf(at)
  const email = 'forgot-it@example.com'
  const { userId } = await at.signedIn(email)
  const referer = 'https://auth.example/console'
  await admin.call('POST', `/admin/users/${userId}/recover`, undefined, { referer })
  await admin.call('POST', '/invite', { email: 'invited-there@example.com' }, { referer })
  for (const to of [email, 'invited-there@example.com']) {
    const { text } = await at.mailbox.waitFor(to)
    expect(text).toContain(`redirect_to=${site}`)
    expect(text).not.toContain(referer)
  }
  await at.close()
})

test('an export of a user and one of the audit log name the administrator', async ({ service }) => {
  const admin = await administratorOf(service)
  const { userId } = await service.signedIn()
  for (const [path, action] of [
    [`/admin/users/${userId}/export`, 'account_exported'],
    ['/admin/audit/export?query=action:none', 'audit_exported'],
  ]) {
    const { statusCode } = await service.app.inject({
      url: path,
      headers: { host: 'auth.example', cookie: admin.cookie, ...FROM_CONSOLE },
    })
    const { body } = await service.get(`/admin/audit?query=action:${action}&limit=1`, service.admin)
    expect([statusCode, body[0]?.payload]).toMatchObject([200, { actor_id: admin.userId, via: 'console' }])
  }
})

test('the cookie is out of reach of scripts and other sites', async ({ service }) => {
  const user = await withTotp(service)
  await service.put(`/admin/users/${user.userId}`, { role: 'service_role' }, service.admin)
  const { answer, location } = await enterConsole(service, user)
  expect([answer.statusCode, location]).toEqual([303, '../console'])
  expect(answer.cookies).toMatchObject([
    { name: '__Host-console', httpOnly: true, secure: true, sameSite: 'Strict', path: '/', maxAge: 8 * 3600 },
  ])
})

/** The page that a browser sees on its way into the console. */
const wayIn = async (browser: Pick<TestService, 'get' | 'submit'>, address = '/console/sign-in') =>
  openPage(browser, String((await browser.get(address)).headers.location).replace('../', '/'))

test('the way in is the sign-in of the hosted pages', async ({ service }) => {
  const email = 'way-in@example.com'
  await service.signedIn(email)
  const browser = service.otherBrowser()
  const asked = await send(browser, await wayIn(browser), { address: email })
  const { location } = await send(browser, asked, { password: 'correct horse' })
  expect(location).toMatch(/\/console\/sign-in$/)
  // No administrator: the page says so, and the next attempt asks for another user.
  expect((await browser.get('/console/sign-in')).headers.location).toBe('../console?refused=not_admin')
  expect((await wayIn(browser, '/console/sign-in?again=1')).forms[0]?.fields).toHaveProperty('address')
})

test('a sign-in older than ten minutes is given again, with its second factor', async ({ service }) => {
  const { userId, email, totp } = await withTotp(service)
  await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
  const browser = service.otherBrowser()
  for (const time of ['first', 'second']) {
    const password = await send(browser, await wayIn(browser), { address: email })
    const factor = await send(browser, password, { password: 'correct horse' })
    service.clock.advance({ seconds: 30 })
    const { location } = await send(browser, factor, { code: totpCode(totp.secret, service.clock.now()) })
    expect([time, location]).toEqual([time, '/console/sign-in'])
    expect((await browser.get('/console/sign-in?next=//evil.example')).headers.location).toBe('../console')
    service.clock.advance({ seconds: 601 })
  }
})

test('a password that renews the session on an account page opens no console on an old second factor', async ({
  service,
}) => {
  const { userId, email, totp } = await withTotp(service)
  await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
  const browser = service.otherBrowser()
  const password = await send(browser, await openPage(browser, '/ui/account'), { address: email })
  const factor = await send(browser, password, { password: 'correct horse' })
  service.clock.advance({ seconds: 30 })
  await send(browser, factor, { code: totpCode(totp.secret, service.clock.now()) })
  service.clock.advance({ seconds: 601 })
  const asked = await openPage(browser, '/ui/account/confirm?next=/ui/account')
  expect((await send(browser, asked, { password: 'correct horse' })).title).toBe('Your account')
  expect((await browser.get('/console/sign-in')).headers.location).toMatch(/^\.\.\/ui\/sign-in\?/)
})

describe('into the console', () => {
  test.for<[string, object, string]>([
    ['a role', { role: 'supabase_admin' }, '../console'],
    ['a role in app_metadata', { app_metadata: { role: 'service_role' } }, '../console'],
    ['a role that the user wrote', { user_metadata: { role: 'service_role' } }, '../console?refused=not_admin'],
    ['another role', { role: 'editor' }, '../console?refused=not_admin'],
  ])('%s leads to where it belongs', async ([, change, location], { service }) => {
    const user = await withTotp(service)
    await service.put(`/admin/users/${user.userId}`, change, service.admin)
    expect((await enterConsole(service, user)).location).toBe(location)
  })

  test('leads no session of one factor, nor one that a trusted device raised', async ({ service }) => {
    const withFactor = await withTotp(service)
    const { body: device } = await service.post('/factors/trusted-devices', {}, withFactor.auth)
    const plain = { email: 'plain@example.com', password: 'correct horse' }
    await service.signedIn(plain.email)
    const enter = async (credentials: object, headers = {}) => {
      const { body } = await service.post('/token?grant_type=password', credentials, headers)
      await service.put(`/admin/users/${body.user.id}`, { role: 'service_role' }, service.admin)
      const user = {
        accessToken: body.access_token,
        refreshToken: '',
        userId: body.user.id,
        auth: { authorization: '' },
      }
      return (await enterConsole(service, user)).location
    }
    expect(await enter(plain)).toBe('../console?refused=insufficient_aal')
    const second = { email: withFactor.email, password: 'correct horse' }
    expect(await enter(second)).toMatch(/^\.\.\/ui\/factor\?next=\/console\/sign-in&/)
    expect(await enter(second, { 'x-device-token': device.token })).toMatch(/^\.\.\/ui\/factor\?/)
  })

  test('leads no browser whose sign-in is older than ten minutes', async ({ service }) => {
    const user = await withTotp(service)
    await service.put(`/admin/users/${user.userId}`, { role: 'service_role' }, service.admin)
    service.clock.advance({ seconds: 601 })
    expect((await enterConsole(service, user)).location).toMatch(/^\.\.\/ui\/sign-in\?/)
    await verifyTotp(service, user, user.totp)
    expect((await enterConsole(service, user)).location).toBe('../console')
  })
})

describe('the session ends', () => {
  const codeOf = async ({
    call,
  }: {
    call: (method: 'GET', url: string) => Promise<{ body?: { error_code?: string } }>
  }) => (await call('GET', '/admin/users?limit=1')).body?.error_code

  test('with a sign-out in the console, also for the hosted pages', async ({ service }) => {
    const admin = await administratorOf(service)
    expect((await admin.call('POST', '/console/sign-out')).status).toBe(204)
    expect(await codeOf(admin)).toBe('session_not_found')
    expect((await service.get('/user', admin.auth)).status).toBe(200)
    expect((await service.put('/user', { data: {} }, admin.auth)).body.error_code).toBe('session_not_found')
  })

  test('with a sign-out elsewhere, a ban, and the loss of the role or the second factor', async ({ service }) => {
    const elsewhere = await administratorOf(service)
    await service.delete(`/admin/users/${elsewhere.userId}/sessions`, service.admin)
    expect(await codeOf(elsewhere)).toBe('session_not_found')
    const banned = await administratorOf(service)
    await service.put(`/admin/users/${banned.userId}`, { ban_duration: '1h' }, service.admin)
    expect(await codeOf(banned)).toBe('session_not_found')
    const demoted = await administratorOf(service)
    await service.put(`/admin/users/${demoted.userId}`, { role: 'authenticated' }, service.admin)
    expect(await codeOf(demoted)).toBe('not_admin')
    const lost = await administratorOf(service)
    await service.delete(`/admin/users/${lost.userId}/factors/${lost.totp.id}`, service.admin)
    expect(await codeOf(lost)).toBe('insufficient_aal')
  })

  test('after half an hour without a request, and after eight hours', async ({ service }) => {
    const admin = await administratorOf(service)
    const browser = { cookie: admin.cookie }
    const ask = async () => {
      const { statusCode, cookies } = await service.app.inject({
        url: '/console/session',
        headers: { cookie: browser.cookie, ...FROM_CONSOLE },
      })
      for (const { name, value } of cookies) browser.cookie = `${name}=${value}`
      return statusCode
    }
    for (let quarter = 1; quarter < 32; quarter++) {
      service.clock.advance({ seconds: 900 })
      expect([quarter, await ask()]).toEqual([quarter, 200])
    }
    service.clock.advance({ seconds: 900 })
    expect(await ask()).toBe(401)
    const idle = await administratorOf(service)
    service.clock.advance({ seconds: 1800 })
    expect((await idle.call('GET', '/console/session')).status).toBe(401)
  })

  test('by the inactivity limit of sessions only where the console is not used either', async ({ service }) => {
    const limited = await service.with({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '5m' })
    const admin = await administratorOf(limited)
    const ask = async () => (await admin.call('GET', '/console/session')).status
    for (const minutes of [4, 8, 12]) {
      service.clock.advance({ seconds: 240 })
      expect([minutes, await ask()]).toEqual([minutes, 200])
    }
    const { body } = await admin.call('GET', '/console/session')
    expect([body.idle_seconds, body.seconds_left]).toEqual([300, 8 * 3600 - 12 * 60])
    service.clock.advance({ seconds: 301 })
    expect(await ask()).toBe(403)
    await limited.app.close()
  })
})

test('a refusal leaves the entry of a refused token, with the user that the cookie names', async ({ service }) => {
  const refusalsOf = async ({ userId }: { userId: string }) => {
    const { body } = await service.get('/admin/audit?query=action:login_failed&limit=20', service.admin)
    return body
      .filter(({ payload }: { payload: { actor_id: string } }) => payload.actor_id === userId)
      .map(({ payload: { via, traits } }: { payload: { via?: string; traits: object } }) => ({ via, ...traits }))
  }
  const refused = (error_code: string) => [{ via: 'console', provider: 'admin', error_code }]
  const demoted = await administratorOf(service)
  await service.put(`/admin/users/${demoted.userId}`, { role: 'authenticated' }, service.admin)
  await demoted.call('GET', '/admin/users?limit=1')
  expect(await refusalsOf(demoted)).toEqual(refused('not_admin'))
  const ended = await administratorOf(service)
  await service.delete(`/admin/users/${ended.userId}/sessions`, service.admin)
  await ended.call('GET', '/console/session')
  expect(await refusalsOf(ended)).toEqual(refused('session_not_found'))
  const stranger = await withTotp(service)
  await enterConsole(service, stranger)
  expect(await refusalsOf(stranger)).toEqual(refused('not_admin'))
  const { body } = await service.get('/admin/statistics?days=1', service.admin)
  // The hour may have changed since.
  const counted = body.hours.flatMap(({ failures }: { failures: { admin?: object } }) =>
    Object.keys(failures.admin ?? {}),
  )
  expect(counted).toContain('session_not_found')
  // A further page of the sign-in, and a request of another site, are no refusals.
  const admin = await administratorOf(service)
  await service.app.inject({ url: '/admin/users', headers: { cookie: admin.cookie, 'x-console': '1', origin: 'null' } })
  const lacking = await service.signedIn()
  await service.put(`/admin/users/${lacking.userId}`, { role: 'service_role' }, service.admin)
  await enterConsole(service, lacking)
  expect([await refusalsOf(admin), await refusalsOf(lacking)]).toEqual([[], refused('insufficient_aal')])
})

test('the cookie opens no route of the admin API to another page, whatever it sends', async ({ service }) => {
  const admin = await administratorOf(service)
  const { paths } = (await service.get('/openapi.json')).body
  const routes = Object.entries<Record<string, { security?: object[] }>>(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security = [] }]) => security.some((each) => 'admin' in each))
      .map(([method]) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, admin.userId)] as const),
  )
  expect(routes.length).toBeGreaterThan(40)
  const own = { 'x-console': '1' }
  const pages: Record<string, string>[] = [
    {},
    { 'sec-fetch-site': 'same-origin' },
    { ...own, 'sec-fetch-site': 'cross-site' },
    { ...own, 'sec-fetch-site': 'same-site' },
    { ...own, 'sec-fetch-site': 'none' },
    { ...own, origin: 'https://evil.example' },
    { ...own, origin: 'null' },
  ]
  for (const [method, url] of routes) {
    for (const page of pages) {
      const headers = { host: 'auth.example', cookie: admin.cookie, ...page }
      const answer = await service.app.inject({ method: method as 'GET', url, headers })
      expect([method, url, page, answer.statusCode]).toEqual([method, url, page, 401])
    }
  }
  const preflight = await service.app.inject({
    ...{ method: 'OPTIONS', url: '/admin/users' },
    headers: {
      ...{ origin: 'https://evil.example', 'access-control-request-method': 'GET' },
      'access-control-request-headers': 'x-console',
    },
  })
  expect(preflight.headers['access-control-allow-headers']).not.toContain('x-console')
  expect(preflight.headers['access-control-allow-credentials']).toBeUndefined()
})

test('without Sec-Fetch-Site, as on plain http, changes need the origin of the console', async ({ service }) => {
  const { cookie, userId } = await administratorOf(service)
  const ask = async (method: 'GET' | 'PUT', more: object) => {
    const headers = { host: 'auth.example', cookie, 'x-console': '1', ...more }
    const payload = method === 'PUT' ? { role: 'service_role' } : undefined
    return (await service.app.inject({ method, url: `/admin/users/${userId}`, headers, ...(payload && { payload }) }))
      .statusCode
  }
  expect(await ask('GET', {})).toBe(200)
  expect(await ask('PUT', {})).toBe(401)
  expect(await ask('PUT', { origin: 'http://auth.example' })).toBe(401)
  expect(await ask('PUT', { origin: 'https://auth.example' })).toBe(200)
})

test('where it is disabled, the console is not there and its cookie counts for nothing', async ({ service }) => {
  const { cookie } = await administratorOf(service)
  const off = await service.with({ AUTH_CONSOLE_ENABLED: 'false' })
  for (const url of ['/console', '/console/session', '/console/sign-in', '/console/assets/main.js']) {
    expect([url, (await off.get(url)).status]).toEqual([url, 404])
  }
  const asked = await off.app.inject({ url: '/admin/users?limit=1', headers: { cookie, ...FROM_CONSOLE } })
  expect(asked.statusCode).toBe(401)
  await off.app.close()
})
