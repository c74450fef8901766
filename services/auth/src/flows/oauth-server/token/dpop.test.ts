// Tokens that are bound to a key of their application (RFC 9449). At endpoints of this service: http/caller.
import { createHash, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { authorizePath, registered } from '../testing/applications.ts'
import { failure, shown, type TestClient } from '../testing/clients.ts'
import { askForTokens, codeOf, exchange } from '../testing/codes.ts'

const TOKEN = 'https://auth.example/oauth/token'
const OPEN = { token_endpoint_auth_method: 'none' }

let service: TestService
let open: TestClient
let user: SignedIn
const [first, second] = [
  generateKeyPair('ES256', { extractable: true }),
  generateKeyPair('EdDSA', { extractable: true }),
]
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
  open = await registered(service, { ...OPEN, scope: 'email offline_access account:read' })
  user = await service.signedIn()
})
afterAll(() => service.close())

const thumbprintOf = async (pair: typeof first) => calculateJwkThumbprint(await exportJWK((await pair).publicKey))

/** Header of a proof by one of the keys. */
async function proof(pair = first, claims: object = {}, header: object = {}) {
  const { privateKey, publicKey } = await pair
  const iat = Math.floor(service.clock.now().getTime() / 1000)
  const alg = pair === first ? 'ES256' : 'EdDSA'
  const text = await new SignJWT({ htm: 'POST', htu: TOKEN, iat, jti: randomUUID(), ...claims })
    .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk: await exportJWK(publicKey), ...header })
    .sign(privateKey)
  return { dpop: text }
}

const begin = async (headers: Record<string, string>, client = open) =>
  exchange(service, client, await codeOf(service, client, user, { scope: 'offline_access' }), {}, headers)
const again = (client: TestClient, token: string, headers: Record<string, string> = {}) =>
  askForTokens(service, client, { grant_type: 'refresh_token', refresh_token: token }, headers)
const keyIn = (token: string) => (decodeJwt(token).cnf as { jkt?: string } | undefined)?.jkt

test('a proof binds the token to its key, and the refresh token of a public client', async () => {
  const { status, body } = await begin(await proof())
  expect(status).toBe(200)
  expect([body.token_type, keyIn(body.access_token)]).toEqual(['DPoP', await thumbprintOf(first)])
  const other = failure(400, 'invalid_grant', 'The refresh token is bound to another DPoP key')
  expect(shown(await again(open, body.refresh_token))).toEqual(other)
  expect(shown(await again(open, body.refresh_token, await proof(second)))).toEqual(other)
  const next = await again(open, body.refresh_token, await proof())
  expect([next.status, next.body.token_type]).toEqual([200, 'DPoP'])
})

test('a confidential client may change its key: its refresh token is bound by its authentication', async () => {
  const client = await registered(service, { token_endpoint_auth_method: 'client_secret_post' })
  const { body } = await begin(await proof(), client)
  const next = await again(client, body.refresh_token, await proof(second))
  expect(keyIn(next.body.access_token)).toBe(await thumbprintOf(second))
  const plain = await again(client, next.body.refresh_token)
  expect([plain.body.token_type, keyIn(plain.body.access_token)]).toEqual(['bearer', undefined])
})

test('a client that is registered for bound tokens gets no others', async () => {
  const client = await registered(service, { ...OPEN, dpop_bound_access_tokens: true })
  expect(shown(await begin({}, client))).toEqual(failure(400, 'invalid_dpop_proof'))
  expect((await begin(await proof(), client)).body.token_type).toBe('DPoP')
})

test('a code of a request that named a key is exchanged by that key alone', async () => {
  const code = await codeOf(service, open, user, { dpop_jkt: await thumbprintOf(first) })
  const other = failure(400, 'invalid_grant', 'The DPoP key is not that of the request')
  expect(shown(await exchange(service, open, code))).toEqual(other)
  expect(shown(await exchange(service, open, code, {}, await proof(second)))).toEqual(other)
  expect((await exchange(service, open, code, {}, await proof())).status).toBe(200)
})

test('the proof of a pushed request binds its code to that key, which dpop_jkt may not contradict', async () => {
  const push = async (headers: object, dpop_jkt?: string) => {
    const [, query] = authorizePath(open.clientId, { dpop_jkt }).split('?')
    return service.submit('/oauth/par', Object.fromEntries(new URLSearchParams(query)), { ...headers })
  }
  const htu = 'https://auth.example/oauth/par'
  const [key, other] = [await thumbprintOf(first), await thumbprintOf(second)]
  const contradiction = 'The key of the DPoP proof is not that of dpop_jkt'
  expect(shown(await push(await proof(first, { htu }), other))).toEqual(
    failure(400, 'invalid_dpop_proof', contradiction),
  )
  expect(shown(await push(await proof()))).toEqual(failure(400, 'invalid_dpop_proof'))
  const pushed = [await push(await proof(first, { htu })), await push(await proof(first, { htu }), key)]
  expect(pushed.map(({ status }) => status)).toEqual([201, 201])
  const { rows } = await service.deps.pool.query(
    "select dpop_thumbprint from oauth_authorizations where status = 'pushed'",
  )
  expect(rows).toEqual(Array(2).fill({ dpop_thumbprint: key }))
})

test('a machine gets bound tokens too', async () => {
  const client = await registered(service, {
    ...{ token_endpoint_auth_method: 'client_secret_post', grant_types: ['client_credentials'], scope: 'users:read' },
  })
  const { body } = await askForTokens(service, client, { grant_type: 'client_credentials' }, await proof())
  expect([body.token_type, keyIn(body.access_token)]).toEqual(['DPoP', await thumbprintOf(first)])
})

describe('a proof is refused', () => {
  const seconds = () => Math.floor(service.clock.now().getTime() / 1000)

  test('when it was used before, also by many requests at once', async () => {
    const once = await proof()
    const answers = await Promise.all(Array.from({ length: 10 }, () => begin(once)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(shown(await begin(once))).toEqual(failure(400, 'invalid_dpop_proof', 'The DPoP proof was used before'))
  })

  test.each<[string, () => object, object]>([
    ['for another method', () => ({ htm: 'GET' }), {}],
    ['for another address', () => ({ htu: 'https://auth.example/oauth/revoke' }), {}],
    ['for another host', () => ({ htu: 'https://other.example/oauth/token' }), {}],
    ['of a minute ago', () => ({ iat: seconds() - 61 }), {}],
    ['of the future', () => ({ iat: seconds() + 61 }), {}],
    ['without an id', () => ({ jti: undefined }), {}],
    ['without a time', () => ({ iat: undefined }), {}],
    ['of another type', () => ({}), { typ: 'JWT' }],
    ['without its key', () => ({}), { jwk: undefined }],
  ])('%s', async (_, claims, header) => {
    expect(shown(await begin(await proof(first, claims(), header)))).toEqual(failure(400, 'invalid_dpop_proof'))
  })

  test('by another key than it names, with a private or secret one, without a signature and of no form', async () => {
    const other = await exportJWK((await second).publicKey)
    const own = await exportJWK((await first).privateKey)
    const { dpop } = await proof()
    const none = `${Buffer.from('{"alg":"none","typ":"dpop+jwt"}').toString('base64url')}.${dpop.split('.')[1]}.`
    const secret = await new SignJWT({ htm: 'POST', htu: TOKEN, iat: seconds(), jti: 'x' })
      .setProtectedHeader({ alg: 'HS256', typ: 'dpop+jwt', jwk: { kty: 'oct', k: 'c2VjcmV0' } as never })
      .sign(Buffer.from('secret'))
    const wrong = [
      (await proof(first, {}, { jwk: other })).dpop,
      (await proof(first, {}, { jwk: own })).dpop,
      ...[none, secret, 'x', '', `${dpop}, ${(await proof()).dpop}`],
    ]
    for (const text of wrong) expect(shown(await begin({ dpop: text }))).toEqual(failure(400, 'invalid_dpop_proof'))
  })

  test('and one whose address has a query or a port that goes without saying is accepted', async () => {
    expect((await begin(await proof(first, { htu: 'https://AUTH.example:443/oauth/token?x#y' }))).status).toBe(200)
  })
})

describe('at an endpoint of this service', () => {
  const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url')
  const at = (token: string, claims: object = {}, pair = first) =>
    proof(pair, { htm: 'GET', htu: 'https://auth.example/user', ath: hashOf(token), ...claims })
  const bound = async () => {
    const code = await codeOf(service, open, user, { scope: 'account:read' })
    return String((await exchange(service, open, code, {}, await proof())).body.access_token)
  }
  const read = async (token: string, headers: Record<string, string>, scheme = 'DPoP') =>
    service.get('/user', { authorization: `${scheme} ${token}`, ...headers })
  const refused = { status: 401, body: { error_code: 'bad_jwt' } }

  test('a bound token is accepted with a new proof for it and the request', async () => {
    const token = await bound()
    const once = await at(token)
    expect(await read(token, once)).toMatchObject({ status: 200, body: { id: user.userId } })
    const again = await read(token, once)
    expect(again).toMatchObject(refused)
    expect(again.headers['www-authenticate']).toBe('DPoP error="invalid_token"')
  })

  test('it is refused without a proof, as a Bearer, by another key, for another token or another request', async () => {
    const token = await bound()
    expect(await read(token, {})).toMatchObject(refused)
    expect(await read(token, await at(token), 'Bearer')).toMatchObject(refused)
    expect(await read(token, await at(token, {}, second))).toMatchObject(refused)
    expect(await read(token, await at(await bound()))).toMatchObject(refused)
    expect(await read(token, await at(token, { ath: undefined }))).toMatchObject(refused)
    expect(await read(token, await at(token, { htu: TOKEN }))).toMatchObject(refused)
    expect(await read(token, await at(token, { htm: 'POST' }))).toMatchObject(refused)
  })

  test('a token without a key is refused by the scheme of bound ones, and its proof is not stored', async () => {
    const stored = async () => (await service.deps.pool.query('select count(*) from used_oauth_proofs')).rows
    const before = await stored()
    expect(await read(user.accessToken, await at(user.accessToken))).toMatchObject(refused)
    expect(await stored()).toEqual(before)
    expect((await read(user.accessToken, {}, 'Bearer')).status).toBe(200)
  })
})
