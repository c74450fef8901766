// Keys of clients with private_key_jwt: registered, or fetched from the client's server.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { type ClientKeyDeps, clientKeys, createClientKeySets } from './client-keys.ts'

let fetches = 0
let answer: { status?: number; type?: string; body: string; location?: string }
const far = createFarServer((_request, response) => {
  fetches++
  const { status = 200, type = 'application/json', location } = answer
  response.writeHead(status, { 'content-type': type, ...(location && { location }) }).end(answer.body)
})

let service: TestService
let origin: string
beforeAll(async () => {
  await once(far.listen(0, '127.0.0.1'), 'listening')
  origin = `http://127.0.0.1:${(far.address() as AddressInfo).port}`
  service = await startTestService({ AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' })
})
afterAll(async () => {
  await service.close()
  far.close()
  far.closeAllConnections()
})

let addresses = 0
let client: { jwks: null; jwks_uri: string }
beforeEach(() => {
  client = { jwks: null, jwks_uri: `${origin}/keys/${++addresses}` }
  fetches = 0
})

async function newKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  return { jwk: { ...(await exportJWK(publicKey)), kid }, privateKey, kid }
}
type Key = Awaited<ReturnType<typeof newKey>>
const publish = (...keys: Key[]) => {
  answer = { body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) }
}
async function verified({ kid, privateKey }: Key, deps: ClientKeyDeps = service.deps) {
  const token = await new SignJWT({}).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)
  await jwtVerify(token, clientKeys(deps, client))
}

test('registered keys verify without a request', async () => {
  const key = await newKey('a')
  const registered = clientKeys(service.deps, { jwks: { keys: [key.jwk] }, jwks_uri: null })
  const token = await new SignJWT({}).setProtectedHeader({ alg: 'ES256', kid: 'a' }).sign(key.privateKey)
  await jwtVerify(token, registered)
  expect(fetches).toBe(0)
})

test('fetched keys verify; many at once fetch them once, and again after ten minutes', async () => {
  const key = await newKey('a')
  publish(key)
  await Promise.all([verified(key), verified(key), verified(key)])
  await verified(key)
  expect(fetches).toBe(1)
  service.clock.advance({ seconds: 600 })
  publish()
  await expect(verified(key)).rejects.toThrow('jwks must be an object with 1 to 10 keys')
})

test('a replaced key is taken at once, and strangers who name unknown ones cause a fetch per 30 s at most', async () => {
  const [first, second, unknown] = [await newKey('a'), await newKey('b'), await newKey('c')]
  publish(first)
  await verified(first)
  publish(second)
  await expect(verified(second)).rejects.toThrow('no applicable key')
  service.clock.advance({ seconds: 30 })
  await verified(second)
  for (const key of [unknown, unknown, first]) await expect(verified(key)).rejects.toThrow('no applicable key')
  expect(fetches).toBe(2)
})

test.each<[string, Partial<typeof answer>, string]>([
  ['a refusal', { status: 500 }, 'the status is 500'],
  ['a redirect', { status: 302, location: '/other' }, 'the status is 302'],
  ['a page', { type: 'text/html' }, 'the content type is not JSON'],
  ['a list', { body: '[]' }, 'the answer is no JSON object'],
  ['no JSON', { body: 'keys' }, 'the answer is no JSON object'],
  ['a large answer', { body: JSON.stringify({ keys: [], pad: 'x'.repeat(16 * 1024) }) }, 'larger than 16384 bytes'],
  ['a secret key', { body: '{"keys":[{"kty":"oct","k":"AA"}]}' }, 'jwks must hold public keys only'],
])('%s in place of keys fails, and is not asked for again for 30 s', async (_answer, wrong, reason) => {
  const key = await newKey('a')
  publish(key)
  answer = { ...answer, ...wrong }
  await expect(verified(key)).rejects.toThrow(reason)
  publish(key)
  await expect(verified(key)).rejects.toThrow(reason)
  expect(fetches).toBe(1)
  service.clock.advance({ seconds: 30 })
  await verified(key)
})

test('a private address is not requested', async () => {
  const key = await newKey('a')
  publish(key)
  const strict = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '' })
  await expect(verified(key, strict.deps)).rejects.toThrow('keys of a client could not be fetched')
  expect(fetches).toBe(0)
  await strict.close()
})

test('the keys of 200 addresses are kept', async () => {
  const key = await newKey('a')
  publish(key)
  const clientKeySets = createClientKeySets()
  const clientEgress = {
    fetch: async () => new Response(answer.body, { headers: { 'content-type': 'application/json' } }),
  }
  for (let n = 0; n <= 200; n++) {
    client = { jwks: null, jwks_uri: `https://${n}.example` }
    await verified(key, { ...service.deps, clientEgress, clientKeySets })
  }
  expect(clientKeySets.addresses.length).toBe(200)
  expect(clientKeySets.addresses[0]).toBe('https://1.example')
})
