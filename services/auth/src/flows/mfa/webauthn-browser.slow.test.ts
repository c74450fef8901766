import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { claimsOf, signInAgain } from '../../../test/second-factors.ts'
import { startTestService, type TestService, toSignedIn } from '../../../test/service.ts'

/** Script of an application's page, with the browser's own functions. */
const APPLICATION = `
  const call = async (base, path, token, body) => {
    const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
    const answer = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: await answer.json() }
  }
  const rp = { rpId: location.hostname, rpOrigins: [location.origin] }
  window.prove = async (base, token, id) => {
    const challenge = await call(base, '/factors/' + id + '/challenge', token, { factorId: id, webauthn: rp })
    if (challenge.status !== 200) return challenge
    const { type, credential_options: options } = challenge.body.webauthn
    const publicKey = type === 'create'
      ? PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey)
      : PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey)
    const credential = await navigator.credentials[type === 'create' ? 'create' : 'get']({ publicKey })
    const webauthn = { type, ...rp, credential_response: credential.toJSON() }
    return call(base, '/factors/' + id + '/verify', token, { challenge_id: challenge.body.id, webauthn })
  }`

describe('in a browser', { tags: 'chromium' }, () => {
  let service: TestService
  let site: Server
  let browser: Browser
  let page: Page
  let base: string

  beforeAll(async () => {
    site = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<!doctype html><title>App</title><script>${APPLICATION}</script>`)
    }).listen(0, '127.0.0.1')
    await once(site, 'listening')
    const url = `http://localhost:${(site.address() as AddressInfo).port}`
    ;[service, browser] = await Promise.all([
      startTestService({
        AUTH_SITE_URL: url,
        AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
        AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
      }),
      launchBrowser(),
    ])
    base = await service.app.listen({ port: 0, host: '127.0.0.1' })
    page = await browser.newPage()
    const devTools = await page.context().newCDPSession(page)
    await devTools.send('WebAuthn.enable')
    await devTools.send('WebAuthn.addVirtualAuthenticator', {
      options: { protocol: 'ctap2', transport: 'usb', automaticPresenceSimulation: true },
    })
    await page.goto(`${url}/`)
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
    site?.close()
  })

  const prove = (accessToken: string, id: string) =>
    // biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
    page.evaluate<{ status: number; body: any }>(`prove(${[base, accessToken, id].map((v) => JSON.stringify(v))})`)

  test("a page of the site registers a key and signs in with it; the key's counter moves on", async () => {
    const email = 'browser@example.com'
    const user = await service.signedIn(email)
    const { body: factor } = await service.post('/factors', { factor_type: 'webauthn' }, user.auth)
    const registered = await prove(user.accessToken, factor.id)
    expect(registered).toMatchObject({
      status: 200,
      body: {
        user: { factors: expect.arrayContaining([expect.objectContaining({ id: factor.id, status: 'verified' })]) },
      },
    })
    for (let i = 0; i < 2; i++) {
      const login = await signInAgain(service, email)
      const proven = await prove(login.accessToken, factor.id)
      expect(proven.status).toBe(200)
      expect(claimsOf(toSignedIn(proven.body))).toMatchObject({
        aal: 'aal2',
        amr: [{ method: 'mfa/webauthn' }, { method: 'password' }],
      })
    }
    const { rows } = await service.deps.pool.query('select credential from factors where id = $1', [factor.id])
    expect(rows[0].credential.counter).toBeGreaterThan(1)
  })

  test('the key of one user is not another user’s', async () => {
    const user = await service.signedIn()
    const { body: factor } = await service.post('/factors', { factor_type: 'webauthn' }, user.auth)
    await prove(user.accessToken, factor.id)
    const other = await service.signedIn()
    expect(await prove(other.accessToken, factor.id)).toMatchObject({ status: 404 })
  })
})
