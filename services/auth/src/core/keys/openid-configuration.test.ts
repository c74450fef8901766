import { findFreePort } from '@services/common/dev/dev-ports'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { startTestService } from '../../../test/service.ts'

const PATH = '/.well-known/openid-configuration'

async function makeKey(alg: string, kid: string, ops: string[]) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg, key_ops: ops }
}

test('a verifier that knows only the address of the service finds the keys and verifies its tokens', async () => {
  const keys = [await makeKey('ES256', 'new', ['sign', 'verify']), await makeKey('RS256', 'old', ['verify'])]
  const port = await findFreePort()
  const service = await startTestService({
    AUTH_JWT_KEYS: JSON.stringify({ keys }),
    AUTH_API_EXTERNAL_URL: `http://127.0.0.1:${port}/`,
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  const issuer = await service.app.listen({ host: '127.0.0.1', port })
  const answer = await fetch(`${issuer}${PATH}`)
  expect(answer.headers.get('cache-control')).toBe('public, max-age=600')
  const found = (await answer.json()) as Record<string, string> & { id_token_signing_alg_values_supported: string[] }
  expect(found.issuer).toBe(issuer)

  const { body } = await service.post('/signup', { email: 'verified@example.com', password: 'correct horse' })
  const { payload, protectedHeader } = await jwtVerify(
    body.access_token,
    createRemoteJWKSet(new URL(found.jwks_uri as string)),
    {
      issuer: found.issuer as string,
      audience: 'authenticated',
      algorithms: found.id_token_signing_alg_values_supported,
      currentDate: service.clock.now(),
    },
  )
  expect([payload.sub, protectedHeader.kid]).toEqual([body.user.id, 'new'])
  expect(found.id_token_signing_alg_values_supported).toEqual(['ES256', 'RS256'])
  await service.close()
})

test('it lists only endpoints and claims that exist', async () => {
  const service = await startTestService({ AUTH_JWT_ISSUER: 'my-project', AUTH_MAILER_AUTOCONFIRM: 'true' })
  const { body } = await service.get(PATH)
  expect(body).toMatchObject({ issuer: 'my-project', id_token_signing_alg_values_supported: ['HS256'] })
  const addresses = Object.values(body).filter((value) => String(value).startsWith('https://'))
  expect(addresses).toEqual(['https://auth.example/.well-known/jwks.json'])
  for (const address of addresses) {
    expect((await service.get(String(address).replace('https://auth.example', ''))).status).toBe(200)
  }
  const { body: signedIn } = await service.post('/signup', { email: 'claims@example.com', password: 'correct horse' })
  const claims = JSON.parse(Buffer.from(signedIn.access_token.split('.')[1], 'base64url').toString())
  expect(Object.keys(claims)).toEqual(expect.arrayContaining(body.claims_supported))
  await service.close()
})
