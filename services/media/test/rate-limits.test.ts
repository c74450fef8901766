import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, createDatabase, idIn, startTestService, type TestService, test } from './service.ts'

const picture = (width: number) => gif(width, 20, [{ delay: 10 }])
const outcome = ({ status, body, headers }: Answer) => [status, body.error?.code, headers.get('ratelimit-remaining')]

/** No more clips are being made: as if a worker had done its work. */
const emptyQueue = ({ deps, clock }: TestService) =>
  deps.pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = $1`, [clock.now()])

/** A server that has one clip. */
async function startSite(): Promise<string> {
  const bytes = await readFile(await clip('plain.gif'))
  const server = createFarServer((_request, response) => response.end(bytes)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/clip.gif`
}

test.each(['upload', 'import'] as const)('an %s refused for load does not use up the limit', async (kind) => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_QUEUE_LIMIT: '1',
    MEDIA_SYNC_WAIT: '0',
    [`MEDIA_RATE_LIMIT_${kind.toUpperCase()}`]: '2/1h',
  })
  const source = await startSite()
  const add = (width: number) => (kind === 'upload' ? service.upload(picture(width)) : service.importFrom({ source }))
  expect(outcome(await add(30))).toEqual([201, undefined, '1'])
  for (let n = 0; n < 3; n++) expect(outcome(await add(31))).toEqual([503, 'busy', '1'])
  await emptyQueue(service)
  expect(outcome(await add(32))).toEqual([201, undefined, '0'])
  expect(outcome(await add(33))).toEqual([429, 'rate_limited', '0'])
  await service.close()
})

test('imports are limited, by one count for all services on a database', async () => {
  const database = await createDatabase()
  const settings = {
    MEDIA_DATABASE_URL: database.url,
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_RATE_LIMIT_IMPORT: '3/1h',
  }
  const services = await Promise.all([startTestService(settings), startTestService(settings)])
  const [first, second] = services
  const { token } = first
  const get = (service: TestService) => service.importFrom({ source: 'http://127.0.0.1:9/' }, { token })
  expect([await get(first), await get(second), await get(first)].map(outcome)).toEqual([
    [424, 'source_fetch_failed', '2'],
    [424, 'source_fetch_failed', '1'],
    [424, 'source_fetch_failed', '0'],
  ])
  const refused = await get(second)
  expect(outcome(refused)).toEqual([429, 'rate_limited', '0'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  for (const service of services) await service.close()
  await database.drop()
})

test('imports have a limit per minute beside that per hour; a higher hourly limit raises both', async () => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_RATE_LIMIT_IMPORT: '6/1h',
    MEDIA_RATE_LIMIT_IMPORT_BURST: '2/1m',
  })
  const add = async (token = service.token) => {
    const { headers, body } = await service.importFrom({ source: 'http://127.0.0.1:9/' }, { token })
    return [body.error.code, headers.get('ratelimit-remaining'), headers.get('ratelimit-policy')]
  }
  expect([await add(), await add(), await add()]).toEqual([
    ['source_fetch_failed', '1', '2;w=60'],
    ['source_fetch_failed', '0', '2;w=60'],
    ['rate_limited', '0', '2;w=60'],
  ])
  const { token } = await service.newToken({ limits: { import: 12 } })
  expect(await add(token)).toEqual(['source_fetch_failed', '3', '4;w=60'])
  const { token: few } = await service.newToken({ limits: { import: 1 } })
  expect([await add(few), await add(few)]).toEqual([
    ['source_fetch_failed', '0', '1;w=3600'],
    ['rate_limited', '0', '1;w=3600'],
  ])
  await service.close()
})

describe('without a token', () => {
  let service: TestService
  let id: string
  beforeAll(async () => {
    service = await startTestService({
      MEDIA_UPLOAD_AUTH: 'optional',
      MEDIA_RATE_LIMIT_HEADER: 'x-real-ip',
      MEDIA_RATE_LIMIT_PUBLIC: '3/1m',
      MEDIA_RATE_LIMIT_READ: '3/1m',
    })
    id = idIn(await service.upload(picture(60)))
  })
  afterAll(() => service.close())

  let addresses = 1
  const newAddress = () => ({ 'x-real-ip': `192.0.2.${addresses++}` })
  const tus = { 'tus-resumable': '1.0.0' }
  const upload = `/tus/${'a'.repeat(32)}`

  test.each<[string, string, (id: string) => string, object, number]>([
    ['pages', 'GET', (clip) => `/gif/${clip}`, {}, 200],
    ['players', 'GET', (clip) => `/embed/${clip}`, {}, 200],
    ['oEmbed', 'GET', (clip) => `/oembed/${clip}`, {}, 200],
    ['addresses for oEmbed', 'GET', (clip) => `/oembed?url=https://media.example/gif/${clip}`, {}, 200],
    ['files that are not there', 'GET', () => '/f/AAAAAAAA.mp4', {}, 404],
    ['looks at an upload', 'HEAD', () => upload, tus, 404],
    ['pieces of an upload', 'PATCH', () => upload, { ...tus, 'content-type': 'application/offset+octet-stream' }, 404],
    ['deletions', 'DELETE', (clip) => `/media/${clip}`, { 'x-delete-token': 'guessed' }, 404],
  ])('one address has so many %s a minute, and another one its own', async (_, method, path, extra, usual) => {
    const call = async (address: object) =>
      (await service.call(method, path(id), { headers: { ...extra, ...address } as Record<string, string> })).status
    const address = newAddress()
    const statuses = []
    for (let n = 0; n < 4; n++) statuses.push(await call(address))
    expect(statuses).toEqual([usual, usual, usual, 429])
    expect(await call(newAddress())).toBe(usual)
  })

  test('ports and forged entries before the last one make no other address, and all invalid addresses share one limit', async () => {
    const look = async (address: string) =>
      (await service.call('GET', `/gif/${id}`, { headers: { 'x-real-ip': address } })).status
    const spellings = [
      ['203.0.113.9:1', '203.0.113.9:2', '8.8.8.8, 203.0.113.9'],
      ['unknown', '_hidden', 'nonsense'],
    ]
    for (const values of spellings) {
      const statuses = []
      for (const value of [...values, values[0] as string]) statuses.push(await look(value))
      expect(statuses).toEqual([200, 200, 200, 429])
    }
  })

  test('files that are there are not counted, and the next minute is a new one', async () => {
    const address = newAddress()
    const get = (path: string) => service.get(path, address)
    for (let n = 0; n < 5; n++) expect((await get(`/f/${id}.gif`)).status).toBe(200)
    for (let n = 0; n < 3; n++) await get('/f/AAAAAAAA.gif')
    const refused = await get('/f/AAAAAAAA.gif')
    expect(outcome(refused).slice(0, 2)).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    service.clock.advance({ seconds: 61 })
    expect((await get('/f/AAAAAAAA.gif')).status).toBe(404)
  })
})

test('without client addresses no caller exhausts pages and uploads for all', async () => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_RATE_LIMIT_PUBLIC: '1/1m',
    MEDIA_RATE_LIMIT_READ: '1/1m',
  })
  const headers = { 'tus-resumable': '1.0.0' }
  for (let n = 0; n < 3; n++) {
    expect((await service.get('/gif/AAAAAAAA')).status).toBe(404)
    expect((await service.call('HEAD', `/tus/${'a'.repeat(32)}`, { headers })).status).toBe(404)
  }
  await service.close()
})
