import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, createDatabase, startTestService, type TestService, test } from './service.ts'

const picture = (width: number) => gif(width, 20, [{ delay: 10 }])
const outcome = ({ status, body, headers }: Answer) => [status, body.error?.code, headers.get('ratelimit-remaining')]

/** No more clips are being made: as if a worker had done its work. */
const emptyQueue = ({ deps, clock }: TestService) =>
  deps.pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = $1`, [clock.now()])

/** A server that has one clip. */
async function startSite(): Promise<string> {
  const bytes = await readFile(await clip('plain.gif'))
  const server = createServer((_request, response) => response.end(bytes)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/clip.gif`
}

test.each(['upload', 'import'] as const)('an %s that is told to come back is not paid for', async (kind) => {
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
