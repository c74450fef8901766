import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { expect, onTestFinished } from 'vitest'
import { totpCode, withTotp } from '../../test/second-factors.ts'
import { type TestService, test } from '../../test/service.ts'
import { openPage, send } from '../flows/pages/testing/pages.ts'
import { openConsolePort } from './console-port.ts'

/** Serves on two ports, as in production; the console has the one of its own. */
async function onTwoPorts(service: TestService) {
  const port = await findFreePort()
  const { app } = await service.with({
    ...{ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_CONSOLE_ENABLED: 'true', AUTH_CONSOLE_PORT: String(port) },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const close = await openConsolePort(app, { host: '127.0.0.1', port })
  onTestFinished(() => app.close())
  onTestFinished(close)
  return { app, port, shared: (app.server.address() as AddressInfo).port }
}

/** One browser over the network, which sends its cookies to both ports, and its own origin. */
function openBrowser(port: number) {
  const cookies = new Map<string, string>()
  const request = async (url: string, init: RequestInit = {}, at = port) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const given = { cookie, 'sec-fetch-site': 'same-origin', ...(init.headers as Record<string, string>) }
    const answer = await fetch(`http://127.0.0.1:${at}${url}`, { ...init, headers: given, redirect: 'manual' })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const text = await answer.text()
    return { status: answer.status, body: undefined, text, headers: Object.fromEntries(answer.headers) }
  }
  return {
    request,
    get: (url: string) => request(url),
    submit: (url: string, form: Record<string, string>) =>
      request(url, {
        ...{ method: 'POST', body: new URLSearchParams(form) },
        headers: { origin: `http://127.0.0.1:${port}` },
      }),
  }
}

test('an administrator signs in, acts and signs out on the port of the console alone', async ({ service }) => {
  const { email, userId, totp } = await withTotp(service)
  await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
  const { port, shared } = await onTwoPorts(service)
  const browser = openBrowser(port)
  const follow = ({ headers }: { headers: Record<string, unknown> }, from: string) =>
    new URL(String(headers.location), `http://127.0.0.1:${port}${from}`)
  const asked = follow(await browser.get('/console/sign-in'), '/console/sign-in')
  expect([asked.port, asked.pathname]).toEqual([String(port), '/ui/sign-in'])
  const password = await send(browser, await openPage(browser, asked.pathname + asked.search), { address: email })
  const factor = await send(browser, password, { password: 'correct horse' })
  service.clock.advance({ seconds: 30 })
  const back = follow(await send(browser, factor, { code: totpCode(totp.secret, service.clock.now()) }), '/ui/factor')
  expect([back.port, back.pathname]).toEqual([String(port), '/console/sign-in'])
  const inside = follow(await browser.get(back.pathname), back.pathname)
  expect([inside.port, inside.pathname]).toEqual([String(port), '/console'])

  // A browser sends its cookies to all ports of a host.
  const call = async (at: number, method: string, path: string, headers: Record<string, string> = {}) =>
    (await browser.request(path, { method, headers: { 'x-console': '1', ...headers } }, at)).status
  expect(await call(port, 'GET', '/console/session')).toBe(200)
  expect(await call(port, 'GET', `/admin/users/${userId}`)).toBe(200)
  expect(await call(shared, 'GET', '/console/session')).toBe(404)
  expect(await call(shared, 'GET', `/admin/users/${userId}`)).toBe(401)
  expect(await call(port, 'POST', '/console/sign-out', { 'sec-fetch-site': 'same-site' })).toBe(401)
  expect(await call(port, 'POST', '/console/sign-out')).toBe(204)
  expect(await call(port, 'GET', '/console/session')).not.toBe(200)
})

test('with a port of its own the console is served there alone, as is all that it needs', async ({ service }) => {
  const { app, port, shared } = await onTwoPorts(service)
  const status = async (at: number, path: string) => (await fetch(`http://127.0.0.1:${at}${path}`)).status
  expect([await status(port, '/console'), await status(port, '/ui/sign-in')]).toEqual([200, 200])
  for (const path of ['/console', '/console/sign-in', '/console/session', '/console/assets/main.js']) {
    expect([path, await status(shared, path)]).toEqual([path, 404])
  }
  expect(await status(shared, '/ui/sign-in')).toBe(200)
  await expect(openConsolePort(app, { host: '127.0.0.1', port })).rejects.toThrow('EADDRINUSE')
})
