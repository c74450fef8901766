// Events of all clips of a token: no change is missed, none of others is reported, and an ended right ends the stream.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openEvents } from '../../../../test/clients/event-stream.ts'
import { gif } from '../../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { createApp } from '../../../app.ts'
import { cleanUp } from '../../../housekeeping.ts'
import { createLiveStreams, MOST_CLIPS } from './live-streams.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '10000/1m' })
})
afterAll(() => service.close())

let sizes = 20
const nextFile = () => gif(sizes++, 10, [{ delay: 10 }])
const newClip = async (token = service.token) =>
  idIn(await service.upload(nextFile(), [], { prefer: 'respond-async', token }))
const readyClip = async (token = service.token, fields: [string, string][] = []) =>
  idIn(await service.readyAlike(nextFile(), fields, { token }))
const query = (text: string, values: unknown[]) => service.deps.pool.query(text, values)
const change = (id: string, what: string) => query(`update clips set ${what} where id = $1`, [id])
const changeSource = (id: string, what: string) =>
  query(`update sources set ${what} where id = (select source_id from clips where id = $1)`, [id])

/** The stream of a token after its first position. */
async function follow(headers: Record<string, string> = {}, search = '', url = service.url) {
  const stream = await openEvents(`${url}/media/events${search}`, { token: service.token, ...headers })
  onTestFinished(() => void stream.abort())
  if (stream.status === 200) await expect.poll(stream.lastId).not.toBe('')
  /** Names and clips of the events. */
  const reported = () => stream.events().map(([name, { id }]) => [name, id])
  return Object.assign(stream, { reported })
}

test('a clip is reported from its upload to its deletion, with the members of the list', async () => {
  const owner = await service.newToken()
  const stream = await follow({ token: owner.token })
  expect([stream.headers['content-type'], stream.headers['cache-control']]).toEqual([
    'text/event-stream; charset=utf-8',
    'no-store',
  ])
  const listed = async () => (await service.get('/media', { token: owner.token })).body.success.items[0]
  const next = async (name: string) => {
    await expect.poll(() => stream.events().at(-1)?.[0]).toBe(name)
    return stream.events().at(-1)?.[1]
  }
  const id = await newClip(owner.token)
  expect(await next('created')).toEqual(await listed())
  await changeSource(id, 'progress = 0.5')
  expect(await next('processing')).toMatchObject({ id, state: 'processing', progress: 0.5 })
  await changeSource(id, `state = 'ready', progress = 1, finished_at = now()`)
  expect(await next('ready')).toEqual(await listed())
  const headers = { token: owner.token, 'content-type': 'application/json' }
  const body = JSON.stringify({ title: 'Other', tags: ['x'] })
  await service.call('PATCH', `/media/${id}`, { headers, body })
  expect(await next('updated')).toMatchObject({ id, title: 'Other', tags: ['x'] })
  await change(id, `hidden_at = now(), hidden_reason = 'spam'`)
  await expect.poll(() => stream.events().at(-1)?.[1]).toMatchObject({ state: 'hidden', hidden_reason: 'spam' })
  await service.call('DELETE', `/media/${id}`, { headers: { token: owner.token } })
  expect(await next('deleted')).toEqual({ id, state: 'deleted' })
  const failing = await newClip(owner.token)
  await expect.poll(() => stream.reported().at(-1)).toEqual(['created', failing])
  await changeSource(failing, `state = 'failed', error_code = 'corrupt_media', finished_at = now()`)
  expect(await next('failed')).toMatchObject({ id: failing, failure: { code: 'corrupt_media' } })
  expect(stream.reported().filter(([, reported]) => reported === id)).toHaveLength(6)
})

test('a visit that extends a lifetime is no change', async () => {
  const owner = await service.newToken()
  const sliding = await readyClip(owner.token, [
    ['expires_in', '7d'],
    ['sliding', 'true'],
  ])
  const stream = await follow({ token: owner.token })
  await change(sliding, `expires_at = expires_at + interval '1 day'`)
  const later = await readyClip(owner.token)
  await expect.poll(stream.reported).toEqual([['created', later]])
})

describe('no change is missed', () => {
  test('of a transaction that began before others and commits after them', async () => {
    const owner = await service.newToken()
    const [early, late] = [await readyClip(owner.token), await readyClip(owner.token)]
    const stream = await follow({ token: owner.token })
    const slow = await service.deps.pool.connect()
    await slow.query('begin')
    await slow.query(`update clips set title = 'slow' where id = $1`, [early])
    await change(late, `title = 'fast'`)
    await expect.poll(stream.reported).toEqual([['updated', late]])
    await expect.poll(() => stream.text.trimEnd().split('\n').at(-1)).toMatch(/^id: /)
    const id = stream.lastId()
    await slow.query('commit')
    slow.release()
    await expect.poll(stream.reported).toEqual([
      ['updated', late],
      ['updated', early],
    ])
    const resumed = await follow({ token: owner.token, 'last-event-id': id })
    await expect.poll(() => resumed.reported().map(([, reported]) => reported)).toContain(early)
  })

  test('by a client that returns within ten minutes, to another process', async () => {
    const owner = await service.newToken()
    const stream = await follow({ token: owner.token })
    const seen = await readyClip(owner.token)
    await expect.poll(stream.reported).toEqual([['created', seen]])
    await expect.poll(() => stream.text.trimEnd().split('\n').at(-1)).toMatch(/^id: /)
    const id = stream.lastId()
    stream.abort()
    const missed = await readyClip(owner.token)
    await service.call('DELETE', `/media/${seen}`, { headers: { token: owner.token } })
    const app = await createApp(service.deps)
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    onTestFinished(() => app.close())
    for (const [headers, search] of [
      [{ 'last-event-id': id }, ''],
      [{}, `?after=${id}`],
    ] as const) {
      const resumed = await follow({ token: owner.token, ...headers }, search, url)
      await expect.poll(resumed.reported).toEqual([
        ['created', missed],
        ['deleted', seen],
      ])
      resumed.abort()
    }
  })

  test('without one event reset: an id that is too old, unknown, or of a later database; too many changes', async () => {
    const owner = await service.newToken()
    const first = await follow({ token: owner.token })
    const [time, oldest] = first.lastId().split('.')
    const old = `${Number(time) - 600_001}.${oldest}`
    for (const id of [
      old,
      'ready',
      '',
      `${time}.0`,
      `${time}.999999999999`,
      `${time}.99999999999999999999`,
      'x'.repeat(4_000),
    ]) {
      const stream = await follow({ token: owner.token, 'last-event-id': id })
      expect([id, stream.events()]).toEqual([id, [['reset', {}]]])
      stream.abort()
    }
    await query(
      `insert into clip_changes (token_id, clip_id, kind) select $1, 'x' || n, 'deleted' from generate_series(0, $2) n`,
      [owner.id, MOST_CLIPS],
    )
    await expect.poll(first.events).toEqual([['reset', {}]])
    const later = await readyClip(owner.token)
    await expect.poll(first.reported).toContainEqual(['created', later])
  })
})

describe('a stream is for tokens that may read', () => {
  test('with a token that has the scope, and its own clips; an admin has those of all, or of one token', async () => {
    const [owner, other] = [await service.newToken(), await service.newToken()]
    const writer = await service.newToken({ scopes: ['write'] })
    const admin = await service.newToken({ scopes: ['admin'] })
    const status = async (headers: Record<string, string>, search = '') =>
      (await service.get(`/media/events${search}`, headers)).status
    expect([await status({}), await status({ token: writer.token })]).toEqual([401, 403])
    expect(await status({ token: owner.token }, `?token=${other.id}`)).toBe(403)
    expect(await status({ token: admin.token }, '?token=x')).toBe(422)
    const [own, all, one] = [
      await follow({ token: owner.token }),
      await follow({ token: admin.token }),
      await follow({ token: admin.token }, `?token=${other.id}`),
    ]
    const foreign = await readyClip(other.token, [['visibility', 'private']])
    for (const what of [`title = 'x'`, 'hidden_at = now()', `expires_at = '2000-01-01'`, 'hidden_at = null'])
      await change(foreign, what)
    const mine = await readyClip(owner.token)
    await expect.poll(own.reported).toEqual([['created', mine]])
    await expect.poll(() => all.reported().map(([, id]) => id)).toEqual(expect.arrayContaining([foreign, mine]))
    expect(one.reported().map(([, id]) => id)).not.toContain(mine)
    await expect.poll(() => one.reported().length).toBeGreaterThan(0)
    expect(own.text).not.toContain(foreign)
  })

  test.for([
    ['is revoked', 'revoked_at = now()', ['read', 'write']],
    ['expires', `expires_at = '2000-01-01'`, ['read', 'write']],
    ['loses the scope read', `scopes = '{write}'`, ['read', 'write']],
    ['loses the scope admin', `scopes = '{read,write}'`, ['admin']],
  ] as const)('until the token %s, and reports nothing after it', async ([, what, scopes]) => {
    const token = await service.newToken({ scopes: [...scopes] })
    const stream = await follow({ token: token.token })
    const clip = await readyClip(scopes[0] === 'admin' ? service.token : token.token)
    await expect.poll(() => stream.reported().map(([, id]) => id)).toContain(clip)
    const before = stream.events().length
    await query(
      `with ended as (update api_tokens set ${what} where id = $1) update clips set title = 'after' where id = $2`,
      [token.id, clip],
    )
    await expect.poll(() => stream.isOver).toBe(true)
    expect(stream.events()).toHaveLength(before)
  })

  test('until the session of the browser ends', async () => {
    const own = { 'sec-fetch-site': 'same-origin', 'x-media': '1' }
    const signIn = await service.call('POST', '/session', { headers: { ...own, token: service.token } })
    const cookie = signIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const stream = await openEvents(`${service.url}/media/events`, { cookie, 'sec-fetch-site': 'same-origin' })
    const going = await follow()
    expect([stream.status, stream.headers['cache-control']]).toEqual([200, 'private, no-store'])
    await service.call('DELETE', '/session', { headers: { ...own, cookie } })
    await expect.poll(() => stream.isOver).toBe(true)
    expect(going.isOver).toBe(false)
  })
})

describe('streams cost little', () => {
  test('one reading serves all of a process, and a reader that takes nothing has one batch waiting', async () => {
    const owner = await service.newToken()
    const streams = createLiveStreams(service.deps)
    const open = () =>
      streams.open({ tokenId: owner.id, sessionHash: null, clipsOf: owner.id, onRefusal: () => {} }, undefined)
    const [slow, ...quick] = await Promise.all(Array.from({ length: 20 }, open))
    onTestFinished(() => [slow, ...quick].forEach((stream) => void stream?.close()))
    for (const stream of quick) stream.take()
    const [first, second] = [await readyClip(owner.token), await readyClip(owner.token)]
    const blocks = quick.map((): string[] => [])
    const read = () => {
      for (const [n, stream] of quick.entries()) {
        for (let block = stream.take(); block !== undefined; block = stream.take()) blocks[n]?.push(block)
      }
      return blocks.every((each) => each.some((block) => block.includes(second)) && each.at(-1)?.startsWith('id: '))
    }
    await expect.poll(read).toBe(true)
    expect(new Set(blocks.map((each) => each.join(''))).size).toBe(1)
    expect([slow?.take(), slow?.take()]).toEqual([expect.stringMatching(/^id: /), undefined])
    const late: string[] = []
    await expect.poll(() => late.push(...[slow?.take() ?? []].flat()) && late.join('')).toContain(second)
    expect(late.join('')).toContain(first)
  })

  test('a token has sixteen; a disconnect frees one; a stop of the service ends all', async () => {
    const own = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
    const open = () => openEvents(`${own.url}/media/events`, { token: own.token })
    const streams = await Promise.all(Array.from({ length: 16 }, open))
    const refused = await own.get('/media/events', { token: own.token })
    expect([refused.status, refused.body.error.code]).toEqual([429, 'queue_full'])
    streams[0]?.abort()
    const again = async () => {
      const stream = await open()
      if (stream.status === 200) streams.push(stream)
      return stream.status
    }
    await expect.poll(again).toBe(200)
    await own.close()
    await expect.poll(() => streams.every(({ isOver }) => isOver)).toBe(true)
  })

  test('changes are deleted after half an hour, and not before', async () => {
    const { id } = await service.newToken()
    const add = (age: string) =>
      query(
        `insert into clip_changes (token_id, clip_id, kind, changed_at)
         values ($1, $2, 'updated', clock_timestamp() - $2::text::interval)`,
        [id, age],
      )
    await add('31 minutes')
    await add('29 minutes')
    await cleanUp(service.deps)
    const { rows } = await query('select clip_id from clip_changes where token_id = $1', [id])
    expect(rows).toEqual([{ clip_id: '29 minutes' }])
  })
})
