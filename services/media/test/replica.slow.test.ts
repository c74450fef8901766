// DATABASE_REPLICA_URL with a real standby: public pages and lists come from it. New clips and lists are as on the
// primary; a page of a deleted clip may stay as long as the permitted lag.
import { type PostgresPair, startPostgresPair } from '@services/common/testing/database/postgres-pair'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { idIn, migrateDatabase, startTestService, type TestService } from './service.ts'

let pair: PostgresPair
let service: TestService

beforeEach(async () => {
  pair ??= await startPostgresPair('media', migrateDatabase)
  pair.leadTo(pair.standby)
  service ??= await startTestService({
    MEDIA_DATABASE_URL: pair.primary.url,
    MEDIA_DATABASE_REPLICA_URL: pair.url,
    MEDIA_DATABASE_REPLICA_MAX_LAG: '10m',
  })
})
afterAll(async () => {
  await service.close()
  await pair.end()
})

let height = 10
/** Makes a clip that was never sent before. */
async function addClip(headers: Record<string, string> = {}): Promise<string> {
  const answer = await service.upload(gif(20, height++, [{ delay: 10 }]), [], headers)
  expect(answer.status).toBe(201)
  return idIn(answer)
}

const PAGES = [
  ['the page', (id: string) => `/gif/${id}`],
  ['the player', (id: string) => `/embed/${id}`],
  ['oEmbed', (id: string) => `/oembed/${id}`],
] as const

async function pauseReplay() {
  await pair.pauseReplay()
  onTestFinished(pair.resumeReplay)
}

const listIds = async () => {
  const { status, body } = await service.get('/media', { token: service.token })
  expect(status).toBe(200)
  return body.success.items.map(({ id }: { id: string }) => id)
}

const statusesOf = async (id: string) =>
  Promise.all(PAGES.map(async ([, pathOf]) => (await service.get(pathOf(id))).status))

test.for(PAGES)('%s of a clip is read from the replica', async ([, pathOf]) => {
  const id = await addClip()
  await pair.expectScans('clips', async () => expect((await service.get(pathOf(id))).status).toBe(200))
})

test('GET /media is read from the replica and shows a clip at once', async () => {
  await pair.expectScans('clips', listIds)
  for (let number = 0; number < 5; number++) {
    const id = await addClip({ prefer: 'respond-async' })
    expect(await listIds()).toContain(id)
  }
})

test('a clip that a late replica lacks has its pages', async () => {
  await pauseReplay()
  expect(await statusesOf(await addClip())).toEqual([200, 200, 200])
})

test('a clip that a late replica shows as unfinished has the pages of a ready one', async () => {
  const id = await addClip()
  const setState = (state: string) =>
    pair.onPrimary(
      `update sources set state = '${state}' from clips where clips.source_id = sources.id and clips.id = '${id}'`,
    )
  const readCaching = () =>
    Promise.all(PAGES.map(async ([, pathOf]) => (await service.get(pathOf(id))).headers.get('cache-control')))
  await setState('processing')
  await pauseReplay()
  expect(await readCaching()).toEqual(PAGES.map(() => 'no-store'))
  await setState('ready')
  expect(await readCaching()).toEqual(PAGES.map(() => 'public, no-cache'))
})

test('a deleted clip leaves lists at once, and its pages when the replica learns of it', async () => {
  const id = await addClip()
  await pair.expectScans('clips', () => service.get(`/gif/${id}`))
  await pauseReplay()
  expect((await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })).status).toBe(204)
  expect(await listIds()).not.toContain(id)
  expect((await service.get(`/media/${id}`, { token: service.token })).status).toBe(410)
  expect(await statusesOf(id)).toEqual([200, 200, 200])
  await pair.resumeReplay()
  await expect.poll(() => statusesOf(id)).toEqual([410, 410, 410])
})

test('pages and lists are answered while the replica disconnects, is unreachable and returns', async () => {
  const id = await addClip()
  await pair.expectScans('clips', () => service.get(`/gif/${id}`))
  pair.leadTo({ url: 'postgres://127.0.0.1:1' })
  const answers = Array.from({ length: 5 }, () => statusesOf(id))
  await pair.endReaders()
  for (let number = 0; number < 5; number++) answers.push(statusesOf(id))
  expect((await Promise.all(answers)).flat().filter((status) => status !== 200)).toEqual([])
  expect(await listIds()).toContain(id)
  pair.leadTo(pair.standby)
  await pair.expectScans('clips', () => service.get(`/gif/${id}`))
})
