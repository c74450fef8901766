// Features enabled without their credentials: the service starts, and refuses to use them.
import { describe, expect } from 'vitest'
import { test } from '../../../test/service.ts'

const WHOLE = {
  AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
  AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'x',
  AUTH_EXTERNAL_GITHUB_SECRET: 'x',
  AUTH_EXTERNAL_GITHUB_REDIRECT_URI: 'https://auth.example/callback',
}

test.for([
  ['AUTH_EXTERNAL_GITHUB_CLIENT_ID', 'missing OAuth client ID'],
  ['AUTH_EXTERNAL_GITHUB_SECRET', 'missing OAuth secret'],
  ['AUTH_EXTERNAL_GITHUB_REDIRECT_URI', 'missing redirect URI'],
] as const)('without %s a provider is refused and not offered', async ([name, what], { service }) => {
  const own = await service.with({ ...WHOLE, [name]: '' })
  expect(await own.get('/authorize?provider=github')).toMatchObject({
    status: 400,
    body: { error_code: 'validation_failed', msg: `Unsupported provider: ${what}` },
  })
  expect((await own.get('/settings')).body.external.github).toBe(false)
  await own.close()
})

describe('a provider', () => {
  test('of one’s own without issuer is refused, and keycloak without its address', async ({ service }) => {
    const as = (name: string) =>
      Object.fromEntries(Object.entries(WHOLE).map(([key, value]) => [key.replace('GITHUB', name), value]))
    const own = await service.with({ ...as('OIDC_CORP'), ...as('KEYCLOAK') })
    const refusal = async (name: string) => (await own.get(`/authorize?provider=${name}`)).body.msg
    expect(await refusal('corp')).toBe('Unsupported provider: missing issuer')
    expect(await refusal('keycloak')).toBe('Unsupported provider: unable to find URL for the Keycloak provider')
    await own.close()
  })

  test('whose client id alone is set takes the id_tokens of native applications, without it none', async ({
    service,
  }) => {
    const grant = async (settings: Record<string, string>) => {
      const own = await service.with({ AUTH_EXTERNAL_APPLE_ENABLED: 'true', ...settings })
      const { body } = await own.post('/token?grant_type=id_token', { provider: 'apple', id_token: 'x' })
      await own.close()
      return body.msg
    }
    expect(await grant({ AUTH_EXTERNAL_APPLE_CLIENT_ID: 'com.example.app' })).toBe('Bad ID token')
    expect(await grant({})).toBe('Provider "apple" is not enabled')
  })
})

test('an SMS gateway without credentials leaves phones disabled if it is the only one', async ({ service }) => {
  const own = await service.with({ AUTH_SMS_PROVIDER: 'twilio' })
  expect((await own.get('/settings')).body).toMatchObject({ phone_enabled: false, sms_provider: '' })
  const phone = await own.post('/otp', { phone: '+4915100000001' })
  expect(phone.body.error_code).toBe('phone_provider_disabled')
  await own.close()
})
