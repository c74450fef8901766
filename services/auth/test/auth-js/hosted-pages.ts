// Sessions of the hosted pages, as the public client takes them up.
import { describe, expect, onTestFinished } from 'vitest'
import { openPage, send } from '../../src/flows/pages/testing/pages.ts'
import { totpCode, withTotp } from '../second-factors.ts'
import { clientOf, password, type Running, test } from './client.ts'

const PAGES = { AUTH_HOSTED_PAGES_ENABLED: 'true' }

/** Where a sign-in by the pages sends the browser of a user with an authenticator app. */
async function signInByPages({ service }: Running, flow: Record<string, string>): Promise<URL> {
  const pages = await service.with(PAGES)
  onTestFinished(pages.close)
  const { email, totp } = await withTotp(service)
  const browser = pages.otherBrowser()
  const start = await openPage(browser, `/ui/sign-in?${new URLSearchParams(flow)}`)
  const factor = await send(browser, await send(browser, start, { address: email }), { password })
  service.clock.advance({ seconds: 30 })
  const end = await send(browser, factor, { code: totpCode(totp.secret, service.clock.now()) })
  return new URL(end.location ?? '')
}

describe('a sign-in by the hosted pages', () => {
  const done = { error: null, data: { currentLevel: 'aal2', nextLevel: 'aal2' } }

  test('gives the client a session of aal2 in the fragment', async ({ open }) => {
    const { client } = clientOf(open)
    const { hash } = await signInByPages(open, { redirect_to: 'https://site.example/app' })
    const fragment = new URLSearchParams(hash.slice(1))
    const [access_token, refresh_token] = [fragment.get('access_token') ?? '', fragment.get('refresh_token') ?? '']
    expect((await client.setSession({ access_token, refresh_token })).error).toBeNull()
    expect(await client.mfa.getAuthenticatorAssuranceLevel()).toMatchObject(done)
  })

  test('gives the client a code for the same, with PKCE', async ({ open }) => {
    const { client, store } = clientOf(open, 'pkce', { storageKey: 'app' })
    const verifier = 'c'.repeat(43)
    store.set('app-code-verifier', JSON.stringify(verifier))
    const { searchParams } = await signInByPages(open, { code_challenge: verifier, code_challenge_method: 'plain' })
    expect((await client.exchangeCodeForSession(searchParams.get('code') ?? '')).error).toBeNull()
    expect(await client.mfa.getAuthenticatorAssuranceLevel()).toMatchObject(done)
  })
})
