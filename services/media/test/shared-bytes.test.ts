// Clips of the same bytes share a source and its files. No value of these reveals an earlier upload to a later one;
// docs/security/known-gaps.md lists the exceptions.
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { startReceiver } from '@services/common/testing/http/receiver'
import { expect, onTestFinished, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

/** Wider than a still, and encoded in no time. */
const bytes = gif(500, 20, [{ delay: 100 }, { delay: 100, color: 1 }])
const HOUR_SECONDS = 3600

/**
 * Everything that a token and visitors of its clip get to see of known bytes: answers with their headers, and events.
 */
async function watchUpload(service: TestService): Promise<Record<string, object>> {
  const { token, id: tokenId } = await service.newToken()
  const receiver = await startReceiver()
  onTestFinished(() => receiver.close())
  const post = (path: string, body: object) =>
    service.call('POST', path, {
      body: JSON.stringify(body),
      headers: { token, 'content-type': 'application/json' },
    })
  expect((await post('/webhooks', { url: receiver.url })).status).toBe(201)
  const addedAt = +service.clock.now()
  const added = await service.ready(bytes, [['title', 'Second']], { token })
  const id = idIn(added)

  /** Without ids, and with times in hours after the upload. */
  const plain = (text: string) =>
    text
      .replaceAll(id, 'ID')
      .replaceAll(tokenId, 'TOKEN')
      // Links, tags of texts that have the id, and ids of requests.
      .replaceAll(/\b(e=)\d+|\b(s=)[\w-]{22}|("request_id":)"[^"]*"|"[\w-]{22}"/g, '$1$2$3')
      .replaceAll(TIMES, (time) => `${Math.round((Date.parse(time) - addedAt) / 1000 / HOUR_SECONDS)} h`)
  const seen = ({ status, headers, text, bytes: sent }: Answer) => ({
    status,
    headers: Object.entries(Object.fromEntries(headers))
      .filter(([name]) => !PASSING.test(name))
      .map(([name, value]) => `${name}: ${plain(value)}`),
    body: /text|json/.test(headers.get('content-type') ?? '')
      ? plain(text)
      : createHash('sha256').update(sent).digest('hex'),
  })

  const own = { token }
  const links = (await post(`/media/${id}/links`, {})).text
  const requests: Record<string, () => Promise<Answer>> = {}
  for (const path of [`/media/${id}`, '/media', '/media?sort=size', '/media?q=second', `/media/${id}/events`]) {
    requests[path] = () => service.get(path, own)
  }
  for (const file of ['gif', 'jpg', 'mp4', 'webm'].map((kind) => `/f/${id}.${kind}`).concat(`/f/${id}/w160.jpg`)) {
    for (const method of ['GET', 'HEAD']) requests[`${method} ${file}`] = () => service.call(method, file)
    for (const hours of [-50, 2]) {
      const date = new Date(addedAt + hours * HOUR_SECONDS * 1000).toUTCString()
      for (const condition of ['if-modified-since', 'if-unmodified-since']) {
        requests[`${file} ${condition} ${hours} h`] = () => service.get(file, { [condition]: date })
      }
    }
  }
  for (const path of [`/gif/${id}`, `/embed/${id}`, `/embed/${id}/data`, `/oembed/${id}`, `/oembed/${id}?format=xml`]) {
    requests[path] = () => service.get(path)
  }
  const answers: Record<string, object> = { added: seen(added), links: { text: plain(links) } }
  for (const [name, send] of Object.entries(requests)) answers[plain(name)] = seen(await send())
  await expect.poll(() => receiver.received.length).toBe(1)
  return { ...answers, event: receiver.received.map(({ body }) => plain(body)) }
}

const TIMES = /\d{4}-\d\d-\d\dT[\d:.]+Z|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g
/** Headers of a moment: of the connection, the request and the rate of requests. */
const PASSING = /^(date|connection|keep-alive|x-request-id|ratelimit-reset)$/

async function start(settings: Record<string, string> = {}): Promise<TestService> {
  const service = await startTestService(settings)
  onTestFinished(() => service.close())
  return service
}

test('a token sees of bytes that another one uploaded days ago what it sees of new ones', async () => {
  const [alone, second] = [await start(), await start()]
  const { token } = await second.newToken()
  const secret = [
    ['title', 'First'],
    ['tags', 'first'],
    ['nsfw', 'true'],
    ['visibility', 'private'],
  ] satisfies [string, string][]
  const first = idIn(await second.ready(bytes, secret, { token }))
  const sources = async () => (await second.deps.pool.query('select id, clip_count from sources')).rows
  const shared = await sources()
  second.clock.advance({ seconds: 72 * HOUR_SECONDS })
  await second.call('DELETE', `/media/${first}`, { headers: { token } })
  const late = +second.clock.now() - +alone.clock.now()
  alone.clock.advance({ seconds: late / 1000 })
  const [known, fresh] = await Promise.all([watchUpload(second), watchUpload(alone)])
  // A new source would make both uploads the first of their bytes.
  expect(await sources()).toEqual(shared)
  expect(known).toEqual(fresh)
})

test('all stored files have one time of change, which web servers report', async () => {
  const service = await start({ MEDIA_ACCEL_PREFIX: '/blobs' })
  await service.ready(bytes)
  const stored = (await service.traces()).files.filter((path) => /^[0-9a-f]{2}\//.test(path))
  const times = await Promise.all(stored.map(async (path) => (await stat(join(service.blobsDir, path))).mtime))
  expect(new Set(times.map((time) => time.toISOString()))).toEqual(new Set(['2000-01-01T00:00:00.000Z']))
})
