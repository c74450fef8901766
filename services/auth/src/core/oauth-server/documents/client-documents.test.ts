// Clients whose id is the address of their metadata document (draft-ietf-oauth-client-id-metadata-document).
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { authorizePath, begun, view } from '../../../flows/oauth-server/testing/applications.ts'
import { deleteExpired } from '../../../housekeeping.ts'
import { findClient, hostOf, publicIdOf } from '../find-client.ts'
import { touchClient } from '../oauth-clients.store.ts'

const CALLBACK = 'https://app.example/callback'
const DAY = 86_400

let fetches = 0
/** Answer for the document that was asked for; it has `client_id` unless `change` says otherwise. */
let answer: { status?: number; headers?: Record<string, string>; change?: object; body?: string }
const far = createFarServer((request, response) => {
  fetches++
  const client_id = `http://${request.headers.host}${request.url}`
  const document = { client_id, client_name: 'App', redirect_uris: [CALLBACK], ...answer.change }
  response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
  response.end(answer.body ?? JSON.stringify(document))
})

const settings = {
  AUTH_OAUTH_SERVER_ENABLED: 'true',
  AUTH_OAUTH_SERVER_CLIENT_METADATA_DOCUMENTS: 'true',
  AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  AUTH_WORKERS_ENABLED: 'false',
}
let service: TestService
let origin: string
beforeAll(async () => {
  await once(far.listen(0, '127.0.0.1'), 'listening')
  origin = `http://127.0.0.1:${(far.address() as AddressInfo).port}`
  service = await startTestService(settings)
})
afterAll(async () => {
  await service.close()
  far.close()
  far.closeAllConnections()
})

let documents = 0
let address: string
beforeEach(async () => {
  address = `${origin}/clients/${++documents}`
  answer = {}
  fetches = 0
  await service.deps.pool.query('delete from oauth_clients')
})

const find = (at = service, id = address) => findClient(at.deps, id)
const found = async (at = service, id = address) => (await find(at, id)) ?? expect.fail('no such client')

test('a document is a public client under its address, which names the host that vouches for it', async () => {
  const contacts = ['ops@app.example']
  answer = { change: { contacts, scope: 'openid mcp:tools users:read', unknown: 1, role: 'x', introspects: ['urn:x'] } }
  const client = await found()
  expect(client).toMatchObject({
    ...{ registration_type: 'metadata_document', metadata_uri: address, client_name: 'App', contacts },
    ...{ client_type: 'public', token_endpoint_auth_method: 'none', secret_hash: null, redirect_uris: [CALLBACK] },
    ...{ scope: 'openid', grant_types: ['authorization_code', 'refresh_token'], role: 'service', introspects: [] },
  })
  expect([publicIdOf(client), hostOf(address)]).toEqual([address, new URL(origin).host])
  expect(await find(service, client.id)).toBeUndefined()
  const path = `/admin/oauth/clients/${client.id}`
  expect((await service.get(path, service.admin)).body).toMatchObject({ client_id: client.id, metadata_uri: address })
  expect(await service.put(path, { client_name: 'Other' }, service.admin)).toMatchObject({
    ...{ status: 400, body: { msg: 'The client changes with its metadata document' } },
  })
})

test('grants and scopes that a document may not have are left out, and none left means the usual scopes', async () => {
  const device = 'urn:ietf:params:oauth:grant-type:device_code'
  answer = { change: { grant_types: ['authorization_code', 'client_credentials', 'x', device], scope: 'mcp:tools' } }
  expect(await found()).toMatchObject({ grant_types: ['authorization_code', device], scope: null })
})

test('a client may prove itself by keys, at an address or in the document', async () => {
  const method = { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://app.example/keys' }
  answer = { change: method }
  expect(await found()).toMatchObject({ client_type: 'confidential', ...method })
})

const nested = (levels: number): unknown[] => (levels === 0 ? [] : [nested(levels - 1)])

describe('a document', () => {
  test.each<[string, typeof answer, string]>([
    ['of another address', { change: { client_id: 'https://other.example/client' } }, 'client_id is not the address'],
    ['with a secret', { change: { client_secret: 'x' } }, 'a document must not have a secret'],
    ['with a method of secrets', { change: { token_endpoint_auth_method: 'client_secret_post' } }, 'must be of'],
    ['with a script', { change: { redirect_uris: ['javascript:alert(1)'] } }, 'must not have the scheme'],
    ['without addresses', { change: { redirect_uris: undefined } }, 'redirect_uris is required'],
    ['of a wrong type', { change: { client_name: 1 } }, 'client_name has the wrong type'],
    ['with NUL', { change: { client_name: 'a\0b' } }, 'NUL, half characters or too many levels'],
    ['of a secret key', { change: { jwks: { keys: [{ kty: 'oct', k: 'AA' }] } } }, 'public keys only'],
    ['that moved', { status: 302, headers: { location: '/elsewhere' } }, 'the status is 302'],
    ['that is a page', { headers: { 'content-type': 'text/html' } }, 'the content type is not JSON'],
    ['that is no object', { body: '[1]' }, 'no JSON object'],
    ['that is large', { change: { x: 'x'.repeat(16 * 1024) } }, 'larger than 16384 bytes'],
    ['that nests deeply', { change: { contacts: nested(1000) } }, 'NUL, half characters or too many levels'],
  ])('%s is no client, and is not asked for again for 30 s', async (_what, wrong, reason) => {
    answer = wrong
    const reasons: unknown[] = []
    const log = { info: (fields: object) => reasons.push((fields as { reason: string }).reason) }
    const looked = () => findClient({ ...service.deps, log }, address)
    expect([await looked(), await looked(), fetches]).toEqual([undefined, undefined, 1])
    expect(reasons).toEqual(Array(2).fill(expect.stringContaining(reason)))
    answer = {}
    service.clock.advance({ seconds: 30 })
    expect(await looked()).toMatchObject({ client_name: 'App' })
  })

  test.each([
    ...['', '/', '/a#b', '/a/../b', '/a b', '/ä'].map((path) => [`http://127.0.0.1${path}`]),
    ...['https://app.example', 'HTTPS://app.example/a', 'https://App.example/a', 'https://app.example:443/a'].map(
      (id) => [id],
    ),
    ...['https://user@app.example/a', 'http://app.example/a', 'ftp://app.example/a', 'javascript:alert(1)'].map(
      (id) => [id],
    ),
    [`https://app.example/${'a'.repeat(2048)}`],
  ])('at %s is not requested', async (id) => {
    const client = findClient(
      { ...service.deps, clientEgress: { fetch: async () => expect.fail('requested') } },
      id.replace('127.0.0.1', new URL(origin).host),
    )
    expect(await client).toBeUndefined()
    expect(service.deps.clientDocuments.addresses).not.toContain(id)
  })

  test('at a private address is not requested', async () => {
    const strict = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '' })
    expect([await find(strict), fetches]).toEqual([undefined, 0])
    await strict.close()
  })

  test('is not requested while the setting is off, and its client is none', async () => {
    await found()
    const off = await service.with({ AUTH_OAUTH_SERVER_CLIENT_METADATA_DOCUMENTS: 'false' })
    expect([await find(off), fetches]).toEqual([undefined, 1])
    await off.close()
  })
})

describe('the row of a document', () => {
  test('serves requests at once at two replicas, each of which fetches once, and later ones without a fetch', async () => {
    const replicas = await Promise.all([service.with({}), service.with({})])
    const clients = await Promise.all([0, 1, 2, 3, 4, 5].map((n) => found(replicas[n % 2])))
    expect(new Set(clients.map(({ id }) => id)).size).toBe(1)
    expect(fetches).toBeLessThanOrEqual(2)
    const before = fetches
    await Promise.all(replicas.map((replica) => found(replica)))
    expect(fetches).toBe(before)
    await Promise.all(replicas.map((replica) => replica.close()))
  })

  test.each([
    ['max-age=1', 60],
    ['no-store', 60],
    ['public, max-age=600', 600],
    ['', 3_600],
    ['max-age=99999999', DAY],
  ])('is fresh as "%s" says, from a minute to a day', async (cacheControl, seconds) => {
    answer = { headers: { 'cache-control': cacheControl } }
    const { id } = await found()
    answer = { ...answer, change: { client_name: 'New' } }
    service.clock.advance({ seconds: seconds - 1 })
    expect(await found()).toMatchObject({ id, client_name: 'App' })
    service.clock.advance({ seconds: 1 })
    expect(await found()).toMatchObject({ id, client_name: 'New' })
    expect(fetches).toBe(2)
  })

  test('outlives its document for a day and no longer', async () => {
    answer = { headers: { 'cache-control': 'max-age=60' } }
    const { id } = await found()
    answer = { status: 500 }
    service.clock.advance({ seconds: 60 })
    expect(await found()).toMatchObject({ id })
    service.clock.advance({ seconds: DAY - 1 })
    expect(await found()).toMatchObject({ id })
    service.clock.advance({ seconds: 1 })
    expect(await find()).toBeUndefined()
    service.clock.advance({ seconds: 30 })
    answer = {}
    expect(await found()).toMatchObject({ id })
  })

  test('is deleted after 30 days without tokens', async () => {
    const { id } = await found()
    service.clock.advance({ seconds: 30 * DAY + 1 })
    await deleteExpired(service.deps, service.deps.log)
    expect((await found()).id).not.toBe(id)
  })
})

describe('beyond the limit a new document', () => {
  /** Finds the client of a document, whichever host it is at. */
  const foundAnywhere = async ({ deps }: TestService, id: string) => {
    const document = JSON.stringify({ client_id: id, redirect_uris: [CALLBACK] })
    const fetch = async () => new Response(document, { headers: { 'content-type': 'application/json' } })
    return findClient({ ...deps, clientEgress: { fetch } }, id)
  }
  const known = async () =>
    (await service.deps.pool.query('select metadata_uri from oauth_clients order by created_at, id')).rows.map(
      ({ metadata_uri }) => metadata_uri,
    )

  test.each([
    ['of any host', '2', ['https://a.example/', 'https://b.example/', 'https://c.example/']],
    [
      'of one host, whatever its port and path,',
      '20',
      ['https://a.example/', 'https://a.example:8443/', 'https://a.example/x/'],
    ],
  ])('%s replaces the oldest without tokens for an hour, never a client in use', async (_, max, places) => {
    const few = await service.with({ AUTH_OAUTH_SERVER_MAX_DYNAMIC_CLIENTS: max })
    const [used = '', unused = '', third = ''] = places.map((place) => `${place}app`)
    const client = (await foundAnywhere(few, used)) ?? expect.fail('no client')
    await touchClient(few.deps.db, client, few.clock.now())
    service.clock.advance({ seconds: 1 })
    await foundAnywhere(few, unused)
    expect(await foundAnywhere(few, third)).toBeUndefined()
    service.clock.advance({ seconds: 3_601 })
    expect(await foundAnywhere(few, third)).toMatchObject({ metadata_uri: third })
    expect(await known()).toEqual([used, third])
    await few.close()
  })

  test('of one host takes no slot of another', async () => {
    const few = await service.with({ AUTH_OAUTH_SERVER_MAX_DYNAMIC_CLIENTS: '3' })
    const ids = ['https://a.example/1', 'https://a.example/2', 'https://a.example.org/1', 'https://b.example/1']
    const all = []
    for (const id of ids) all.push(await foundAnywhere(few, id))
    expect(all.map(Boolean)).toEqual([true, false, true, true])
    await few.close()
  })
})

test('an address names three times as many unknown documents as it may register clients, and known ones freely', async () => {
  const rate = { AUTH_RATE_LIMIT_HEADER: 'x-client', AUTH_RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER: '1' }
  const limited = await service.with(rate)
  const client = { 'x-client': '192.0.2.1' }
  const begin = (id: string, from = client) => limited.get(authorizePath(id), from)
  const answers = await Promise.all([1, 2, 3, 4].map((n) => begin(`${address}/${n}`)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([302, 302, 302, 429])
  const unknown = `${address}/unknown`
  const ask = (path: string) =>
    limited.submit(path, { client_id: unknown, grant_type: 'refresh_token', token: 'x' }, client)
  const refused = [
    ...[await ask('/oauth/token'), await ask('/oauth/par'), await ask('/oauth/introspect'), await ask('/oauth/revoke')],
    ...[await begin(unknown), await limited.get(`${authorizePath(unknown)}&request_uri=urn:x`, client)],
  ]
  expect([refused.map(({ status }) => status), fetches]).toEqual([Array(6).fill(429), 3])
  const { rows } = await service.deps.pool.query('select metadata_uri from oauth_clients')
  expect((await begin(rows[0].metadata_uri)).status).toBe(302)
  expect((await begin(unknown, { 'x-client': '192.0.2.2' })).status).toBe(302)
  await limited.close()
})

test('a client with a known document counts once per request, before a document that is due is requested', async () => {
  const limited = await service.with({ AUTH_RATE_LIMIT_HEADER: 'x-client', AUTH_RATE_LIMIT_TOKEN_REFRESH: '2' })
  answer = { headers: { 'cache-control': 'max-age=60' } }
  await found()
  const statuses = []
  for (const seconds of [60, 0, 60]) {
    service.clock.advance({ seconds })
    const form = { client_id: address, token: 'x' }
    statuses.push((await limited.submit('/oauth/revoke', form, { 'x-client': '192.0.2.3' })).status)
  }
  expect([statuses, fetches]).toEqual([[200, 200, 429], 2])
  await limited.close()
})

test('a request of a document reaches its user, who sees the host that vouches for it', async () => {
  const { auth } = await service.signedIn()
  answer = { change: { client_name: 'Bank' } }
  const id = await begun(service, address)
  expect((await view(service, id, auth)).body.client).toEqual({
    ...{ id: address, name: 'Bank', host: new URL(origin).host },
  })
  answer = { change: { client_id: 'https://other.example/client' } }
  address = `${origin}/another`
  expect(await service.get(authorizePath(address))).toMatchObject({
    ...{ status: 400, body: { error_code: 'oauth_client_not_found', msg: 'invalid client_id' } },
  })
})
