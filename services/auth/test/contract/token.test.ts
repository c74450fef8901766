// POST /token: cases that no test beside the code shows.
import { createHash } from 'node:crypto'
import { describe, expect } from 'vitest'
import { type TestService, test } from '../service.ts'

const password = 'correct horse'
const refresh = (service: TestService, refresh_token: string, headers = {}) =>
  service.post('/token?grant_type=refresh_token', { refresh_token }, headers)

describe('checks come in the order of the contract', () => {
  test.for<[string, string, object, number, string]>([
    ['an unknown grant before the body', 'saml', { email: 1 }, 400, 'invalid_credentials'],
    ['no grant', '', {}, 400, 'invalid_credentials'],
    ['two addresses before the provider', 'password', { email: 'a@b.c', phone: '1' }, 400, 'validation_failed'],
    [
      'the provider before the account',
      'password',
      { phone: '4915111111111', password },
      422,
      'phone_provider_disabled',
    ],
    ['no address', 'password', { password }, 400, 'validation_failed'],
    ['a malformed address is an unknown one', 'password', { email: 'nobody', password }, 400, 'invalid_credentials'],
  ])('%s', async ([, grant, body, status, code], { service }) => {
    expect(await service.post(`/token?grant_type=${grant}`, body)).toMatchObject({ status, body: { error_code: code } })
  })

  test('a provider that is off before a missing address', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_EXTERNAL_EMAIL_ENABLED: 'false' })
    for (const body of [{}, { email: 'a@example.com', password }]) {
      expect(await service.post('/token?grant_type=password', body)).toMatchObject({
        status: 422,
        body: { error_code: 'email_provider_disabled' },
      })
    }
    await service.close()
  })
})

describe('a refresh token', () => {
  test.for(['', 'abcdefghijk', 'ABCDEFGHIJKL', 'abcdefghij-!', '0000000000000', 'a'.repeat(55), `A${'A'.repeat(54)}`])(
    '%j is malformed, or nobody’s',
    async (token, { service }) => {
      const { status, body } = await refresh(service, token)
      expect([status, ['validation_failed', 'refresh_token_not_found'].includes(body.error_code)]).toEqual([400, true])
    },
  )

  test('three rotations old ends the session, and every other one of it is refused from then on', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0' })
    const tokens = [(await service.signedIn()).refreshToken]
    for (let i = 0; i < 3; i++) tokens.push((await refresh(service, tokens.at(-1) as string)).body.refresh_token)
    expect(await refresh(service, tokens[0] as string)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_already_used' },
    })
    for (const token of tokens) {
      expect(await refresh(service, token)).toMatchObject({ body: { error_code: 'refresh_token_not_found' } })
    }
    await service.close()
  })

  // contract/auth-core.md 18, BUG4.
  test('used again and again within its interval does not prolong it', async ({ service }) => {
    const { refreshToken: first } = await service.signedIn()
    await refresh(service, first)
    for (let i = 0; i < 3; i++) {
      service.clock.advance({ seconds: 3 })
      expect((await refresh(service, first)).status).toBe(200)
    }
    service.clock.advance({ seconds: 3 })
    const elsewhere = { 'user-agent': 'Elsewhere/1.0' }
    expect((await refresh(service, first, elsewhere)).body.error_code).toBe('refresh_token_already_used')
  })

  test('survives more refreshes than one byte counts', async ({ service }) => {
    let token = (await service.signedIn()).refreshToken
    for (let i = 0; i < 260; i++) token = (await refresh(service, token)).body.refresh_token
    expect((await refresh(service, token)).status).toBe(200)
  })

  test('lives to the end of its session, distinct from inactivity', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' })
    const end = async (not_after: Date | null) => service.deps.db.updateTable('sessions').set({ not_after }).execute()
    const later = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1000)
    let token = (await service.signedIn()).refreshToken
    await end(later(60))
    token = (await refresh(service, token)).body.refresh_token
    await end(later(0))
    const ended = await refresh(service, token)
    await end(null)
    service.clock.advance({ seconds: 3601 })
    const inactive = await refresh(service, token)
    for (const answer of [ended, inactive]) {
      expect(answer).toMatchObject({ status: 400, body: { error_code: 'session_expired' } })
    }
    expect(inactive.body.msg).not.toBe(ended.body.msg)
    await service.close()
  })
})

describe('a PKCE code', () => {
  const ask = async (service: TestService, email: string) => {
    const code_challenge = createHash('sha256').update('v'.repeat(43)).digest('base64url')
    await service.post('/otp', { email, code_challenge, code_challenge_method: 'S256' })
    const { text } = await service.mailbox.waitFor(email)
    const token = /token=(pkce_[\w-]+)/.exec(text)?.[1]
    const { headers } = await service.get(`/verify?type=email&token=${token}`)
    return new URL(String(headers.location)).searchParams.get('code')
  }
  const exchange = (service: TestService, auth_code: string | null, code_verifier: string) =>
    service.post('/token?grant_type=pkce', { auth_code, code_verifier })

  test('is no longer known once its user is gone, whatever the verifier', async ({ service }) => {
    const code = await ask(service, 'gone@example.com')
    await service.deps.db.deleteFrom('users').where('email', '=', 'gone@example.com').execute()
    for (const verifier of ['v'.repeat(43), 'wrong']) {
      expect(await exchange(service, code, verifier)).toMatchObject({
        status: 404,
        body: { error_code: 'flow_state_not_found' },
      })
    }
  })

  test.for<[string, number, boolean]>([
    ['42 characters', 42, false],
    ['43 characters', 43, true],
    ['128 characters', 128, true],
    ['129 characters', 129, false],
  ])('may have a challenge of %s: %s', async ([, length, isAccepted], { service }) => {
    const body = { email: `challenge-${length}@example.com`, code_challenge: '~'.repeat(length) }
    const { status } = await service.post('/recover', { ...body, code_challenge_method: 'PLAIN' })
    expect(status).toBe(isAccepted ? 200 : 400)
  })

  test.for(['+', '/', '=', ' ', 'é'])('may not have a challenge with %j', async (character, { service }) => {
    const code_challenge = `${character}${'a'.repeat(43)}`
    for (const path of ['/signup', '/otp', '/magiclink', '/recover']) {
      const body = { email: 'charset@example.com', password, code_challenge, code_challenge_method: 's256' }
      expect(await service.post(path, body)).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    }
  })
})
