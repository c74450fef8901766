// Views: counted where a browser of a person gets a page, a player or the beginning of a file, and nothing else.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { isBrowser } from '../src/core/views/robots.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const DAY = 86_400

let service: TestService
let token: string
let admin: string
let id: string
beforeAll(async () => {
  service = await startTestService({ MEDIA_RATE_LIMIT_HEADER: 'x-real-ip' })
  token = service.token
  admin = (await service.newToken({ scopes: ['admin'] })).token
  id = idIn(await service.ready(await clip('plain.gif')))
})
afterAll(() => service.close())
beforeEach(async () => {
  await service.deps.viewCounter.write()
  await service.deps.pool.query('truncate clip_views, clip_view_sums')
  // Noon of the next day: no test crosses midnight, and visitors of the tests before may count again.
  const second = (service.clock.now().getTime() / 1000) % DAY
  service.clock.advance({ seconds: 1.5 * DAY - second })
})

let visitor = 0
/** Headers of a visitor who was never here. */
const someone = (headers: Record<string, string> = {}) => ({
  ...{ 'user-agent': FIREFOX, 'x-real-ip': `203.0.${visitor >> 8}.${visitor++ & 255}` },
  ...headers,
})

async function total(of = id): Promise<{ page: number; embed: number; file: number }> {
  await service.deps.viewCounter.write()
  const { status, body } = await service.get(`/media/${of}/views`, { token })
  expect(status).toBe(200)
  return body.success.total
}
const none = { page: 0, embed: 0, file: 0 }

describe('a view', () => {
  test('is a page, a player, and a whole file or its first range', async () => {
    await service.get(`/gif/${id}`, someone())
    await service.get(`/embed/${id}`, someone())
    await service.get(`/f/${id}.mp4`, someone())
    await service.get(`/f/${id}.webm`, someone({ range: 'bytes=0-' }))
    await service.get(`/f/${id}.gif`, someone({ range: 'bytes=0-9' }))
    expect(await total()).toEqual({ page: 1, embed: 1, file: 3 })
  })

  test.for([
    ['a later range', '/f/ID.mp4', { range: 'bytes=10-' }],
    ['a prefetch', '/gif/ID', { 'sec-purpose': 'prefetch;prerender' }],
    ['a prefetch of Safari', '/gif/ID', { purpose: 'prefetch' }],
    [
      'a robot',
      '/gif/ID',
      { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)' },
    ],
    ['a program', '/f/ID.mp4', { 'user-agent': 'curl/8.5.0' }],
    ['a program without a name', '/f/ID.mp4', { 'user-agent': '' }],
    ['an owner at work', '/f/ID.mp4', { cookie: '__Host-media=x' }],
    ['an unknown clip', '/gif/00000000', {}],
    ['a poster', '/f/ID.jpg', {}],
    ['another size', '/v/ID/w320.jpg', {}],
  ] as const)('is not %s', async ([, path, headers]) => {
    await service.get(path.replace('ID', id), someone(headers))
    expect(await total()).toEqual(none)
  })

  test('is neither a HEAD nor a copy that the browser has', async () => {
    const { headers } = await service.get(`/f/${id}.mp4`)
    const etag = headers.get('etag') ?? ''
    expect((await service.get(`/f/${id}.mp4`, someone({ 'if-none-match': etag }))).status).toBe(304)
    await service.call('HEAD', `/f/${id}.mp4`, { headers: someone() })
    await service.call('HEAD', `/gif/${id}`, { headers: someone() })
    expect(await total()).toEqual(none)
  })

  test('counts once in half an hour for each way, clip and visitor', async () => {
    const one = someone()
    const look = () => Promise.all(['gif', 'embed'].map((path) => service.get(`/${path}/${id}`, one)))
    for (let n = 0; n < 3; n++) await look()
    await service.get(`/gif/${id}`, someone())
    await service.get(`/gif/${id}`, { ...one, 'user-agent': `${FIREFOX} other` })
    service.clock.advance({ seconds: 1799 })
    await look()
    expect(await total()).toEqual({ page: 3, embed: 1, file: 0 })
    service.clock.advance({ seconds: 1 })
    await look()
    expect(await total()).toEqual({ page: 4, embed: 2, file: 0 })
  })

  test('leaves nothing of the visitor in the database', async () => {
    const headers = someone()
    await service.get(`/gif/${id}`, headers)
    await total()
    const { rows } = await service.deps.pool.query('select * from clip_views')
    expect(rows).toEqual([{ clip_id: id, day: expect.anything(), page: 1, embed: 0, file: 0 }])
  })

  test('of many is written by one statement, in whatever order, by several processes at once', async () => {
    const other = idIn(await service.readyAlike(Buffer.from('another clip')))
    const twin = await startTestService({ MEDIA_DATABASE_URL: service.deps.config.database.url })
    const client = (n: number) => ({ client: String(n) })
    for (let n = 0; n < 200; n++) {
      for (const [counter, clipId] of [
        [service.deps.viewCounter, n % 2 ? id : other],
        [twin.deps.viewCounter, n % 2 ? other : id],
      ] as const) {
        counter.record({ clipId, kind: 'file', ...client(n) })
      }
    }
    await Promise.all([service.deps.viewCounter.write(), twin.deps.viewCounter.write()])
    expect([await total(), await total(other)]).toEqual([
      { ...none, file: 200 },
      { ...none, file: 200 },
    ])
    await twin.close()
  })

  test('neither waits for a clip that is being deleted in a circle, nor adds to it', async () => {
    const gone = idIn(await service.readyAlike(Buffer.from('a clip that goes')))
    const { pool, viewCounter } = service.deps
    for (const clipId of [gone, id]) viewCounter.record({ clipId, kind: 'page', client: 'x' })
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select from clips where id = $1 for update', [gone])
    const written = viewCounter.write()
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await expect.poll(async () => (await pool.query(waiting)).rows.length).toBeGreaterThan(0)
    await client.query('update clips set deleted_at = now(), source_id = null where id = $1', [gone])
    await client.query('commit')
    client.release()
    await written
    expect([await total(), (await pool.query('select clip_id from clip_views')).rows]).toEqual([
      { ...none, page: 1 },
      [{ clip_id: id }],
    ])
  })

  test('that cannot be written is kept for the next attempt', async () => {
    await service.get(`/gif/${id}`, someone())
    await service.deps.pool.query('alter table clip_views rename to away')
    await service.deps.viewCounter.write()
    await service.deps.pool.query('alter table away rename to clip_views')
    expect(await total()).toEqual({ ...none, page: 1 })
  })
})

test('views of the process are written when it stops', async () => {
  const stopping = await startTestService({ MEDIA_DATABASE_URL: service.deps.config.database.url })
  stopping.deps.viewCounter.record({ clipId: id, kind: 'page', client: 'x' })
  await stopping.close()
  expect(await total()).toEqual({ ...none, page: 1 })
})

describe('GET /media/{id}/views', () => {
  const views = (query = '', headers: Record<string, string> = { token }) =>
    service.get(`/media/${id}/views${query}`, headers)
  const dayOf = (daysAgo: number) =>
    new Date(service.clock.now().getTime() - daysAgo * DAY * 1000).toISOString().slice(0, 10)

  test('has the days with views, of a month unless others are asked for, and the sum of all', async () => {
    const days = [0, 29, 30, 300].map((ago) => ({ id, kind: 'file', day: dayOf(ago), count: ago + 1 }))
    await service.call('POST', '/views', jsonOf(days))
    const { body } = await views()
    expect(body.success).toEqual({
      days: [29, 0].map((ago) => ({ day: dayOf(ago), page: 0, embed: 0, file: ago + 1 })),
      total: { page: 0, embed: 0, file: 363 },
    })
    expect((await views(`?from=${dayOf(300)}&to=${dayOf(30)}`)).body.success.days).toHaveLength(2)
    const { month, total: all } = (await service.get(`/media/${id}`, { token })).body.success.views
    expect([month, all]).toEqual([31, 363])
    const listed = (await service.get('/media', { token })).body.success.items
    expect(listed.find((each: { id: string }) => each.id === id).views).toEqual({ month: 31, total: 363 })
  })

  test.for([
    ['?from=2026-02-30', 'from'],
    ['?from=yesterday', 'from'],
    ['?to=0001-01-10', 'to'],
    ['?to=2026-1-1', 'to'],
    ['?from=2020-01-01&to=2026-01-01', 'from'],
    ['?from=2026-01-02&to=2026-01-01', 'from'],
  ] as const)('refuses %s', async ([query, param]) => {
    const { status, body } = await views(query)
    expect([status, body.error.code, body.error.param]).toEqual([422, 'invalid_field', param])
  })

  test('is for the owner and admins', async () => {
    const stranger = await service.newToken()
    expect((await views('', { token: stranger.token })).status).toBe(404)
    expect((await views('', {})).status).toBe(401)
    expect((await views('', { token: admin })).status).toBe(200)
  })

  test('days end after MEDIA_VIEWS_KEEP, and the sum keeps them', async () => {
    await service.call('POST', '/views', jsonOf([{ id, kind: 'page', day: dayOf(399), count: 7 }]))
    service.clock.advance({ seconds: 3 * DAY })
    await cleanUp(service.deps)
    const { days, total: all } = (await views(`?from=${dayOf(399)}`)).body.success
    expect([days, all.page]).toEqual([[], 7])
    expect((await service.deps.pool.query('select * from clip_views')).rows).toEqual([])
  })
})

const jsonOf = (body: unknown, headers: Record<string, string> = {}) => ({
  headers: { token: admin, 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

describe('POST /views', () => {
  const today = () => service.clock.now().toISOString().slice(0, 10)

  test('adds what a CDN counted, of clips that there are', async () => {
    const entries = [
      { id, kind: 'file', day: today(), count: 2 },
      { id, kind: 'file', day: today(), count: 3 },
      { id: '00000000', kind: 'file', day: today(), count: 9 },
    ]
    const { status, body } = await service.call('POST', '/views', jsonOf(entries))
    expect([status, body.success]).toEqual([200, { added: 5 }])
    expect(await total()).toEqual({ ...none, file: 5 })
  })

  test('adds billions', async () => {
    const entries = Array.from({ length: 3 }, () => ({ id, kind: 'file', day: today(), count: 1_000_000_000 }))
    const { body } = await service.call('POST', '/views', jsonOf(entries))
    expect(body.success).toEqual({ added: 3_000_000_000 })
  })

  test('with an Idempotency-Key adds once, for many at once too', async () => {
    const entries = [{ id, kind: 'embed', day: today(), count: 4 }]
    const send = (body: unknown = entries) =>
      service.call('POST', '/views', jsonOf(body, { 'idempotency-key': today() }))
    const answers = await Promise.all(Array.from({ length: 5 }, () => send()))
    expect(answers.map(({ status, body }) => [status, body.success])).toEqual(answers.map(() => [200, { added: 4 }]))
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(4)
    expect(await total()).toEqual({ ...none, embed: 4 })
    const other = await send([{ ...entries[0], count: 5 }])
    expect([other.status, other.body.error.code]).toEqual([409, 'idempotency_conflict'])
  })

  test.for([
    [{ day: '2100-01-01' }, 'day'],
    [{ day: '2001-13-01' }, 'day'],
    [{ day: 'today' }, 'day'],
  ] as const)('refuses %j', async ([wrong, param]) => {
    const entries = [{ id, kind: 'file', count: 1, ...wrong }]
    const { status, body } = await service.call('POST', '/views', jsonOf(entries))
    expect([status, body.error.param]).toEqual([422, param])
    expect(await total()).toEqual(none)
  })

  test('is for admins', async () => {
    const { status, body } = await service.call('POST', '/views', jsonOf([], { token }))
    expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
  })
})

test('a list is sorted by views, and keeps its order when a title changes', async () => {
  const owner = await service.newToken()
  const ids = await Promise.all(
    [1, 2, 3].map(async (n) => idIn(await service.readyAlike(Buffer.from(`sorted ${n}`), [], { token: owner.token }))),
  )
  const day = service.clock.now().toISOString().slice(0, 10)
  const counts = ids.map((each, at) => ({ id: each, kind: 'page', day, count: [5, 9, 1][at] }))
  await service.call('POST', '/views', jsonOf(counts))
  const headers = { token: owner.token, 'content-type': 'application/json' }
  await service.call('PATCH', `/media/${ids[1]}`, { headers, body: JSON.stringify({ title: 'Renamed' }) })
  const sorted = async (query: string) =>
    (await service.get(`/media?sort=views${query}`, headers)).body.success.items.map((each: { id: string }) => each.id)
  expect(await sorted('')).toEqual([ids[1], ids[0], ids[2]])
  expect(await sorted('&order=asc')).toEqual([ids[2], ids[0], ids[1]])
  expect(await sorted('&limit=1')).toEqual([ids[1]])
})

test('MEDIA_VIEWS=off counts nothing and shows nothing', async () => {
  const off = await startTestService({ MEDIA_VIEWS: 'off', MEDIA_DATABASE_URL: service.deps.config.database.url })
  await off.get(`/gif/${id}`, someone())
  await off.deps.viewCounter.write()
  expect((await off.get(`/media/${id}/views`, { token })).status).toBe(404)
  expect((await off.get(`/media/${id}`, { token })).body.success).not.toHaveProperty('views')
  await off.close()
  expect(await total()).toEqual(none)
})

test.for([
  [FIREFOX, true],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile Safari/604.1',
    true,
  ],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0', true],
  ['Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile Safari/537.36 DuckDuckGo/5', true],
  ['Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile Safari/537.36', true],
  ['Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)', false],
  ['Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)', false],
  ['Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)', false],
  ['Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)', false],
  ['facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)', false],
  ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/142.0.0.0 Safari/537.36', false],
  ['WhatsApp/2.23.20.0', false],
  ['python-requests/2.32', false],
  [undefined, false],
] as const)('%s is a browser: %s', ([userAgent, expected]) => {
  expect(isBrowser(userAgent)).toBe(expected)
})
