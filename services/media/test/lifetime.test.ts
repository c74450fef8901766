import { startReceiver } from '@services/common/testing/http/receiver'
import { describe, expect } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService, test } from './service.ts'

const upload = async (service: TestService, fields: FormFields) =>
  idIn(await service.ready(await clip('plain.gif'), fields))

const detailsOf = async (service: TestService, id: string) =>
  (await service.get(`/media/${id}`, { token: service.token })).body.success

const change = (service: TestService, id: string, changes: object) =>
  service.call('PATCH', `/media/${id}`, {
    body: JSON.stringify(changes),
    headers: { token: service.token, 'content-type': 'application/json' },
  })

const lifetimeOf = async (service: TestService, id: string) =>
  (Date.parse((await detailsOf(service, id)).expires_at) - service.clock.now().getTime()) / 1000

test('an expired clip is gone at the second, for its owner and in lists too, long before housekeeping', async ({
  service,
}) => {
  const fields: FormFields = [
    ['expires_in', '90m'],
    ['title', 'Fleeting'],
  ]
  const answer = await service.ready(await clip('plain.gif'), fields)
  const id = idIn(answer)
  const end = Date.parse(answer.headers.get('x-expires-at') ?? '')
  service.clock.advance({ seconds: (end - service.clock.now().getTime()) / 1000 - 1 })
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
  service.clock.advance({ seconds: 1 })
  for (const path of [`/f/${id}.mp4`, `/gif/${id}`, `/embed/${id}`, `/oembed/${id}`]) {
    expect([path, (await service.get(path)).status]).toEqual([path, 410])
  }
  expect((await service.get(`/media/${id}`, { token: service.token })).status).toBe(410)
  expect((await service.get(`/media/${id}/events`, { token: service.token })).status).toBe(410)
  expect((await change(service, id, { expires_in: 'never' })).status).toBe(410)
  for (const list of ['/media', '/media?q=fleeting', '/media?sort=bytes', '/media?order=asc']) {
    const { items } = (await service.get(list, { token: service.token })).body.success
    expect(items.map((item: { id: string }) => item.id)).not.toContain(id)
  }
})

test('a cache keeps a file no longer than its clip lives', async ({ service }) => {
  const id = await upload(service, [['expires_in', '120']])
  const cacheControl = (await service.get(`/f/${id}.mp4`)).headers.get('cache-control') ?? ''
  expect(Number(/^public, max-age=(\d+), immutable$/.exec(cacheControl)?.[1])).toBeLessThanOrEqual(120)
})

test('housekeeping takes an expired clip of a token, reports the reason to its webhooks, and frees its quota and bytes', async () => {
  const service = await startTestService()
  const receiver = await startReceiver()
  const { deps, clock } = service
  const hook = await service.call('POST', '/webhooks', {
    body: JSON.stringify({ url: receiver.url, events: ['media.deleted'] }),
    headers: { token: service.token, 'content-type': 'application/json' },
  })
  expect(hook.status).toBe(201)
  const id = await upload(service, [['expires_in', '1h']])
  const kept = idIn(await service.readyAlike(gif(30, 20, [{ delay: 10 }]), [['expires_in', '2h']]))
  clock.advance({ seconds: 3601 })
  await Promise.all([cleanUp(deps), cleanUp(deps)])
  await expect.poll(() => receiver.received.length).toBe(1)
  expect(JSON.parse(receiver.received[0]?.body ?? '').data).toEqual({ id, state: 'deleted', reason: 'expired' })
  expect((await deps.pool.query('select clips from token_storage')).rows).toEqual([{ clips: 1 }])
  clock.advance({ seconds: 601 })
  await cleanUp(deps)
  expect((await detailsOf(service, kept)).state).toBe('ready')
  expect(await service.countRows()).toEqual({ clips: 2, sources: 1 })
  receiver.close()
  await service.close()
})

describe('a sliding lifetime', () => {
  /** Waits for writes of visits, for which no visitor waits. */
  const written = async (service: TestService) => {
    const other = await upload(service, [
      ['expires_in', '7d'],
      ['sliding', 'true'],
    ])
    service.clock.advance({ seconds: 2 * 86_400 })
    await service.get(`/gif/${other}`)
    await expect.poll(() => lifetimeOf(service, other)).toBeCloseTo(7 * 86_400, -2)
    service.clock.advance({ seconds: -2 * 86_400 })
  }

  const visit = (service: TestService, path: string) => service.get(path, { accept: 'text/html' })

  test.for(['/gif/', '/embed/', '/f/'])(
    'is extended by a visit of %s, once a day at most',
    async (endpoint, { service }) => {
      const id = await upload(service, [
        ['expires_in', '7d'],
        ['sliding', 'true'],
      ])
      const path = endpoint === '/f/' ? `/f/${id}.jpg` : endpoint + id
      service.clock.advance({ seconds: 86_000 })
      await visit(service, path)
      expect(await lifetimeOf(service, id)).toBeCloseTo(7 * 86_400 - 86_000, -2)
      service.clock.advance({ seconds: 3_600 })
      await visit(service, path)
      await expect.poll(() => lifetimeOf(service, id)).toBeCloseTo(7 * 86_400, -2)
    },
  )

  test('is not extended by its owner, by oEmbed, or by a visit that was refused', async ({ service }) => {
    const id = await upload(service, [
      ['expires_in', '7d'],
      ['sliding', 'true'],
    ])
    service.clock.advance({ seconds: 3 * 86_400 })
    expect((await service.get(`/oembed/${id}`)).status).toBe(200)
    expect((await service.get(`/media/${id}`, { token: service.token })).status).toBe(200)
    await change(service, id, { visibility: 'private' })
    for (const path of [`/gif/${id}`, `/f/${id}.mp4`, `/f/${id}/w160.jpg`]) {
      expect((await service.get(path)).status).toBe(404)
    }
    expect((await service.get(`/f/${id}/t9999.jpg`)).status).toBe(404)
    await written(service)
    expect(await lifetimeOf(service, id)).toBeCloseTo(4 * 86_400, -2)
  })

  test('a visit does not bring back what expired meanwhile, nor undo a change by the owner', async ({ service }) => {
    const id = await upload(service, [
      ['expires_in', '7d'],
      ['sliding', 'true'],
    ])
    service.clock.advance({ seconds: 6 * 86_400 })
    await change(service, id, { expires_in: '1h', sliding: false })
    await visit(service, `/gif/${id}`)
    expect(await lifetimeOf(service, id)).toBeCloseTo(3_600, -2)
    service.clock.advance({ seconds: 3_601 })
    await visit(service, `/gif/${id}`)
    expect((await service.get(`/gif/${id}`)).status).toBe(410)
  })
})

describe('lifetime and visibility', () => {
  test('are accepted by tus and import, and replays of a key do not change them', async ({ service }) => {
    const headers = { 'idempotency-key': 'lifetime' }
    const fields: FormFields = [
      ['visibility', 'unlisted'],
      ['expires_in', '2h'],
    ]
    const first = await service.ready(await clip('plain.gif'), fields, headers)
    service.clock.advance({ seconds: 60 })
    const again = await service.ready(await clip('plain.gif'), fields, headers)
    expect([again.headers.get('idempotency-replayed'), idIn(again)]).toEqual(['true', idIn(first)])
    const other = await service.ready(await clip('plain.gif'), [['visibility', 'public']], headers)
    expect(other.body.error.code).toBe('idempotency_conflict')
  })

  test('two changes at once both hold, each of its own', async ({ service }) => {
    const id = await upload(service, [])
    const changes = [{ visibility: 'private' }, { expires_in: '7d' }, { title: 'New' }, { sliding: false }]
    for (const { status } of await Promise.all(changes.map((each) => change(service, id, each))))
      expect(status).toBe(200)
    const found = await detailsOf(service, id)
    expect(found).toMatchObject({ visibility: 'private', title: 'New' })
    expect(await lifetimeOf(service, id)).toBeCloseTo(7 * 86_400, -2)
  })

  test('change by PATCH, and null takes them back', async ({ service }) => {
    const id = await upload(service, [])
    const changed = await change(service, id, { visibility: 'unlisted', expires_in: '1d', sliding: true })
    expect(changed.body.success).toMatchObject({ visibility: 'unlisted', sliding: true })
    const back = await change(service, id, { visibility: 'public', expires_at: null, sliding: null })
    expect(back.body.success).toMatchObject({ visibility: 'public', expires_at: null, sliding: false })
    expect((await change(service, id, { visibility: null })).status).toBe(422)
  })

  test.for([
    [{ visibility: 'secret' }, 'visibility'],
    [{ expires_in: '5s' }, 'expires_in'],
    [{ expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
    [{ sliding: true }, 'sliding'],
  ] as const)('%o is refused by upload, import and PATCH alike', async ([wish, param], { service }) => {
    const fields = Object.entries(wish).map(([name, value]): [string, string] => [name, String(value)])
    const id = await upload(service, [])
    for (const answer of [
      await service.ready(await clip('plain.gif'), fields),
      await service.importFrom({ source: 'https://example.com/clip.mp4', ...wish }),
      await change(service, id, wish),
    ]) {
      expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([422, 'invalid_field', param])
    }
  })

  test('without a token a clip expires when the operator says, or earlier, and is never private', async () => {
    const service = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional', MEDIA_ANONYMOUS_LIFETIME: '24h' })
    const anonymous = async (fields: FormFields) => {
      const body = new FormData()
      for (const [name, value] of fields) body.append(name, value)
      body.append('file', new Blob([new Uint8Array(gif(20, 10, [{ delay: 10 }]))]), 'clip.gif')
      return service.call('POST', '/media/upload', { body })
    }
    const lasts = async (fields: FormFields) =>
      (Date.parse((await anonymous(fields)).headers.get('x-expires-at') ?? '') - service.clock.now().getTime()) / 1000
    expect(await lasts([])).toBeCloseTo(86_400, -2)
    expect(await lasts([['expires_in', '1h']])).toBeCloseTo(3_600, -2)
    for (const field of [
      ['expires_in', '25h'],
      ['expires_in', 'never'],
      ['visibility', 'private'],
    ] as [string, string][]) {
      expect((await anonymous([field])).body.error.param).toBe(field[0])
    }
    await service.close()
  })
})
