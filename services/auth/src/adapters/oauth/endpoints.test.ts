import { expect, test } from 'vitest'
import { startTestService } from '../../../test/service.ts'
import { json, startUpstream } from '../../../test/upstream.ts'

const BROKEN: [string, object][] = [
  ['an authorize address that is a number', { authorization_endpoint: 5 }],
  ['an authorize address that is none', { authorization_endpoint: 'somewhere' }],
  ['an authorize address that is a script', { authorization_endpoint: 'javascript:alert(1)' }],
  ['a token address that is an object', { token_endpoint: { url: 'https://issuer.example' } }],
  ['keys whose address is a list', { jwks_uri: ['https://issuer.example'] }],
  ['a profile whose address is none', { userinfo_endpoint: 'somewhere' }],
]

test.each(BROKEN)(
  'a provider that describes itself by %s is not there, until it does better',
  async (_what, broken) => {
    const far = await startUpstream(json({}))
    const service = await startTestService({
      AUTH_EXTERNAL_OIDC_CORP_ENABLED: 'true',
      AUTH_EXTERNAL_OIDC_CORP_CLIENT_ID: 'id',
      AUTH_EXTERNAL_OIDC_CORP_SECRET: 'secret',
      AUTH_EXTERNAL_OIDC_CORP_REDIRECT_URI: 'https://auth.example/callback',
      AUTH_EXTERNAL_OIDC_CORP_ISSUER: far.url,
      AUTH_WORKERS_ENABLED: 'false',
    })
    const description = {
      issuer: far.url,
      authorization_endpoint: `${far.url}/authorize`,
      token_endpoint: `${far.url}/token`,
      jwks_uri: `${far.url}/keys`,
    }
    const ask = async () => {
      const { status, body } = await service.get('/authorize?provider=corp')
      return [status, body?.error_code]
    }
    far.answer((response) => {
      response.setHeader('content-type', 'application/json')
      json({ ...description, ...broken })(response, '')
    })
    expect(await ask()).toEqual([503, 'provider_unavailable'])
    far.answer((response) => {
      response.setHeader('content-type', 'application/json')
      json(description)(response, '')
    })
    expect(await ask()).toEqual([302, undefined])
    await service.close()
    await far.close()
  },
)
