import { readFile } from 'node:fs/promises'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { startReceiver } from '@services/common/testing/http/receiver'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { idIn, startTestService, type TestService } from './service.ts'
import { tusOf } from './tus.ts'

let service: TestService
let admin: { token: string; id: string }
let id: string
let widths = 20
/** Bytes that no other test has. */
let bytes: Uint8Array

beforeAll(async () => {
  service = await startTestService({
    MEDIA_RATE_LIMIT_HEADER: 'x-client',
    MEDIA_RATE_LIMIT_READ: '100000/1m',
    MEDIA_TOMBSTONES_KEEP: '48h',
  })
  admin = await service.newToken({ scopes: ['admin'] })
})
afterAll(async () => {
  // Both records of a decision are written by one transaction, so neither lacks the other.
  const { rows } = await service.deps.pool.query(`
    select clip_id, action from moderations decided where origin in ('admin', 'cli') and not exists (
      select from audit_entries entry where entry.action = 'clip_moderated' and details ->> 'decision' = decided.action
        and entry.created_at = decided.created_at and entry.origin = decided.origin
        and (entry.token_id, entry.operator) is not distinct from (decided.token_id, decided.operator))`)
  await service.close()
  expect(rows).toEqual([])
})
beforeEach(async () => {
  await service.deps.pool.query('delete from reports')
  bytes = gif(widths++, 12, [{ delay: 10 }])
  id = idIn(await service.readyAlike(bytes))
})

const post = (path: string, body: object, token = admin.token) =>
  service.call('POST', path, {
    body: JSON.stringify(body),
    headers: { token, 'content-type': 'application/json' },
  })

const moderate = (decision: object, clipId = id, token = admin.token) =>
  post(`/media/${clipId}/moderation`, decision, token)
const decide = (reportId: string, decision: object, token = admin.token) =>
  post(`/reports/${reportId}`, decision, token)

let addresses = 0
async function report(clipId = id, reason = 'copyright') {
  const { status } = await service.call('POST', `/gif/${clipId}/report`, {
    body: new URLSearchParams({ reason }),
    headers: { 'x-client': `198.51.100.${addresses++ % 250}` },
  })
  expect(status).toBe(202)
  return (await reports('?state=open')).find((found: { clip: { id: string } }) => found.clip.id === clipId).id as string
}

const reports = async (query = '') => (await service.get(`/reports${query}`, { token: admin.token })).body.success.items
const decisionsAbout = async (clipId: string): Promise<string[]> => {
  const { body } = await service.get(`/media/${clipId}/moderation`, { token: admin.token })
  return body.success.items.map(({ action }: { action: string }) => action)
}
const statusOf = async (path: string) => (await service.get(path)).status
const detailsOf = async (clipId = id, token = service.token) =>
  (await service.get(`/media/${clipId}`, { token })).body.success

describe('a decision about a report', () => {
  test.for<[string, number, object | undefined]>([
    ['dismiss', 200, { state: 'ready', nsfw: false }],
    ['nsfw', 200, { state: 'ready', nsfw: true }],
    ['hide', 451, { state: 'hidden', hidden_reason: 'copyright' }],
    ['delete', 410, undefined],
    ['block', 410, undefined],
  ])('%s', async ([action, status, details]) => {
    const reportId = await report()
    const { body } = await decide(reportId, { action, note: 'By letter' })
    expect(body.success).toMatchObject({
      id: reportId,
      state: 'closed',
      decision: { action, note: 'By letter', token_id: admin.id, created_at: service.clock.now().toISOString() },
    })
    for (const path of [`/f/${id}.mp4`, `/f/${id}.gif`, `/gif/${id}`, `/embed/${id}`, `/oembed/${id}`]) {
      expect([path, await statusOf(path)]).toEqual([path, status])
    }
    if (details) expect(await detailsOf()).toMatchObject(details)
    expect(await reports('?state=open')).toEqual([])
    expect(await reports('?state=closed')).toHaveLength(1)
  })

  test('answers the other reports of the clip, unless it dismisses this one', async () => {
    const first = await report()
    await report()
    await decide(first, { action: 'dismiss' })
    expect(await reports('?state=open')).toHaveLength(1)
    const [left] = await reports('?state=open')
    await report()
    await decide(left.id, { action: 'nsfw' })
    expect(await reports('?state=open')).toEqual([])
  })

  test('is made by one of two moderators at the same time', async () => {
    const reportId = await report()
    const other = await service.newToken({ scopes: ['admin'] })
    const answers = await Promise.all([
      decide(reportId, { action: 'hide' }),
      decide(reportId, { action: 'delete' }, other.token),
      decide(reportId, { action: 'dismiss' }),
      decide(reportId, { action: 'block' }, other.token),
    ])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status, body } of answers.filter(({ status }) => status !== 200)) {
      expect(['already_decided', 'gone']).toContain(body.error.code)
      expect([409, 410]).toContain(status)
    }
    const { rows } = await service.deps.pool.query('select from moderations where clip_id = $1', [id])
    expect(rows).toHaveLength(1)
  })

  test('needs the scope admin, a known report, an action and a note of at most 1000 characters', async () => {
    const reportId = await report()
    const unknown = '11111111-1111-4111-8111-111111111111'
    const tries = [
      [await decide(reportId, { action: 'hide' }, service.token), 403],
      [await decide(unknown, { action: 'hide' }), 404],
      [await decide('x', { action: 'hide' }), 404],
      [await decide(reportId, {}), 422],
      [await decide(reportId, { action: 'unhide' }), 422],
      [await decide(reportId, { action: 'hide', note: 'x'.repeat(1001) }), 422],
      [await service.get('/reports', { token: service.token }), 403],
      [await service.get('/reports'), 401],
      [await service.get('/reports?state=all', { token: admin.token }), 422],
      [await moderate({ action: 'hide' }, id, service.token), 403],
      [await moderate({ action: 'hide' }, 'zzzzzzzz'), 404],
      [await moderate({ action: 'dismiss' }), 422],
      [await moderate({ action: 'hide', reason: 'dislike' }), 422],
    ] as const
    expect(tries.map(([{ status }]) => status)).toEqual(tries.map(([, status]) => status))
    expect(await statusOf(`/f/${id}.mp4`)).toBe(200)
  })
})

test('reports are listed in pages, newest first, without those of deleted clips among the open ones', async () => {
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    service.clock.advance({ seconds: 1 })
    ids.unshift(await report())
  }
  const pages: string[] = []
  for (let path = '/reports?state=open&limit=2'; path; ) {
    const { body, headers } = await service.get(path, { token: admin.token })
    pages.push(...body.success.items.map(({ id }: { id: string }) => id))
    path = /<([^>]*)>/.exec(headers.get('link') ?? '')?.[1] ?? ''
  }
  expect(pages).toEqual(ids)
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect(await reports('?state=open')).toEqual([])
  expect((await reports())[0].clip.state).toBe('deleted')
})

describe('a decision without a report', () => {
  test('hides with a reason that the owner sees, and shows again', async () => {
    await moderate({ action: 'hide', reason: 'illegal', note: 'Court order 12' })
    expect(await detailsOf()).toMatchObject({ state: 'hidden', hidden_reason: 'illegal' })
    expect(JSON.stringify(await detailsOf())).not.toContain('Court order')
    service.clock.advance({ seconds: 1 })
    const { body } = await moderate({ action: 'unhide' })
    expect(body.success.items).toMatchObject([
      { action: 'unhide', origin: 'admin', reason: null, note: null, token_id: admin.id },
      { action: 'hide', origin: 'admin', reason: 'illegal', note: 'Court order 12', token_id: admin.id },
    ])
    expect(await statusOf(`/f/${id}.mp4`)).toBe(200)
    expect((await detailsOf()).state).toBe('ready')
    expect((await service.get(`/media/${id}/moderation`, { token: admin.token })).body).toEqual(body)
  })

  test('nsfw cannot be undone by the owner, but by a moderator', async () => {
    const patch = () =>
      service.call('PATCH', `/media/${id}`, {
        body: JSON.stringify({ nsfw: false, title: 'Mine' }),
        headers: { token: service.token, 'content-type': 'application/json' },
      })
    await moderate({ action: 'nsfw' })
    expect((await patch()).body.success).toMatchObject({ nsfw: true, title: 'Mine' })
    await moderate({ action: 'safe' })
    expect((await detailsOf()).nsfw).toBe(false)
  })

  test('of a deleted clip is 410, unless it is about the bytes', async () => {
    await moderate({ action: 'delete' })
    for (const action of ['hide', 'unhide', 'nsfw', 'delete']) {
      expect((await moderate({ action })).status).toBe(410)
    }
  })

  test('hiding one clip leaves another of the same bytes', async () => {
    const other = idIn(await service.upload(bytes))
    await moderate({ action: 'hide' })
    expect([await statusOf(`/f/${id}.mp4`), await statusOf(`/f/${other}.mp4`)]).toEqual([451, 200])
  })
})

describe('files for moderators', () => {
  const review = (kind: string, headers: Record<string, string> = {}, clipId = id) =>
    service.get(`/media/${clipId}/moderation/${kind}`, { token: admin.token, ...headers })

  test('of a hidden, private or expired clip are those that visitors saw, and no cache keeps them', async () => {
    const kinds = ['gif', 'jpg', 'mp4', 'webm']
    const shown = await Promise.all(kinds.map(async (kind) => (await service.get(`/f/${id}.${kind}`)).bytes))
    await service.call('PATCH', `/media/${id}`, {
      body: JSON.stringify({ visibility: 'private', expires_in: '1m' }),
      headers: { token: service.token, 'content-type': 'application/json' },
    })
    await moderate({ action: 'hide' })
    service.clock.advance({ seconds: 120 })
    for (const [index, kind] of kinds.entries()) {
      const { status, bytes, headers } = await review(kind)
      expect([kind, status, bytes]).toEqual([kind, 200, shown[index]])
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'.*sandbox/)
    }
    const head = await service.call('HEAD', `/media/${id}/moderation/mp4`, { headers: { token: admin.token } })
    expect([head.status, Number(head.headers.get('content-length'))]).toEqual([200, shown[2]?.length])
    const part = await review('mp4', { range: 'bytes=4-7' })
    expect([part.status, Buffer.from(part.bytes).toString()]).toEqual([206, 'ftyp'])
    const etag = (await review('mp4')).headers.get('etag') ?? ''
    expect((await review('mp4', { 'if-none-match': etag })).status).toBe(304)
  })

  test('are never a redirect to the CDN', async () => {
    const behind = await startTestService({
      MEDIA_DATABASE_URL: service.deps.config.database.url,
      MEDIA_BLOBS_DIR: service.blobsDir,
      MEDIA_WORKERS_ENABLED: 'false',
      MEDIA_FILES_REDIRECT_URL: 'https://cdn.example',
    })
    expect((await behind.get(`/f/${id}.mp4`)).status).toBe(302)
    expect((await behind.get(`/media/${id}/moderation/mp4`, { token: admin.token })).status).toBe(200)
    await behind.close()
  })

  test('need the scope admin, and a clip that has them', async () => {
    const path = `/media/${id}/moderation/mp4`
    expect((await service.get(path)).status).toBe(401)
    expect((await service.get(path, { token: service.token })).status).toBe(403)
    expect((await review('exe')).status).toBe(422)
    expect((await review('mp4', {}, 'zzzzzzzz')).status).toBe(404)
    await moderate({ action: 'delete' })
    const { status, headers } = await review('mp4')
    expect([status, headers.get('cache-control')]).toEqual([410, 'no-store'])
  })
})

async function inPieces(video: Uint8Array) {
  const { begin, send } = tusOf(service)
  return send(await begin(video.length), 0, video)
}

describe('blocked bytes', () => {
  test('are refused by form, pieces and import, also with an edit, until they are allowed again', async () => {
    const video = await readFile(await clip('small.mp4'))
    const blocked = idIn(await service.ready(video))
    const far = await startReceiver()
    far.answer = (response) => response.writeHead(200, { 'content-type': 'video/mp4' }).end(video)
    expect((await moderate({ action: 'block' }, blocked)).status).toBe(200)
    const attempts = async () => [
      await service.upload(video),
      await service.upload(video, [['start', '0.2']]),
      await service.upload(video, [['mute', 'true']], { token: (await service.newToken()).token }),
      await inPieces(video),
      await service.importFrom({ source: `${far.url}/a.mp4` }),
    ]
    for (const { status, body } of await attempts()) {
      expect([status, body.error.code]).toEqual([422, 'blocked_content'])
    }
    expect((await moderate({ action: 'unblock' }, blocked)).status).toBe(200)
    for (const { status } of await attempts()) expect(status).toBeLessThan(300)
    expect(await statusOf(`/f/${blocked}.mp4`)).toBe(410)
    far.close()
  })

  test('include the files that we made of them, and what was made of these', async () => {
    const file = async (kind: string, of = id) => (await service.get(`/f/${of}.${kind}`)).bytes
    const made = { mp4: await file('mp4'), webm: await file('webm'), gif: await file('gif') }
    const copy = idIn(await service.upload(made.mp4, [['speed', '2']]))
    const copyOfCopy = await file('webm', copy)
    const last = idIn(await service.upload(copyOfCopy))
    await moderate({ action: 'block' })
    for (const again of [bytes, ...Object.values(made), copyOfCopy]) {
      expect((await service.upload(again)).body.error.code).toBe('blocked_content')
    }
    for (const ended of [id, copy, last]) expect(await statusOf(`/f/${ended}.mp4`)).toBe(410)
  })

  test('end the clips of all tokens, edited ones too, and answer their reports', async () => {
    const video = gif(widths++, 16, [{ delay: 50 }, { delay: 50 }, { delay: 50 }])
    const { token } = await service.newToken()
    const [own, theirs, edited] = [
      idIn(await service.upload(video)),
      idIn(await service.upload(video, [], { token })),
      idIn(await service.upload(video, [['start', '0.5']], { token })),
    ]
    const reportId = await report(theirs)
    await report(edited)
    await decide(reportId, { action: 'block', note: 'Known material' })
    for (const ended of [own, theirs, edited]) {
      expect(await statusOf(`/f/${ended}.mp4`)).toBe(410)
      const { body } = await service.get(`/media/${ended}/moderation`, { token: admin.token })
      expect(body.success.items).toMatchObject([{ action: 'block', note: 'Known material' }])
    }
    expect(await reports('?state=open')).toEqual([])
    const { rows } = await service.deps.pool.query(
      'select clips::int, bytes::int from token_storage where token_id = (select token_id from clips where id = $1)',
      [theirs],
    )
    expect(rows).toEqual([{ clips: 0, bytes: 0 }])
  })

  test('are refused if their clip failed, and its reports are answered', async () => {
    const reportId = await report()
    await service.deps.pool.query(
      `update sources set state = 'failed', error_code = 'corrupt_media', finished_at = $1
       where id = (select source_id from clips where id = $2)`,
      [service.clock.now(), id],
    )
    const { status, body } = await decide(reportId, { action: 'block' })
    expect([status, body.success]).toMatchObject([200, { state: 'closed', decision: { action: 'block' } }])
    expect(await decisionsAbout(id)).toEqual(['block'])
    expect((await service.upload(bytes)).body.error.code).toBe('blocked_content')
  })

  async function expire(also = '') {
    await service.deps.pool.query(`update clips set ${also} expires_at = $1 where id = $2`, [service.clock.now(), id])
    service.clock.advance({ seconds: 1 })
    await cleanUp(service.deps)
  }

  test.for<[string, () => Promise<unknown>]>([
    ['its owner', () => service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })],
    ['a moderator', () => moderate({ action: 'delete' })],
    ['the end of its lifetime', () => expire()],
    ['the end of its lifetime without a token', () => expire('token_id = null,')],
  ])('are refused although their clip was deleted before, by %s', async ([, end]) => {
    await end()
    // The source goes with its files.
    service.clock.advance({ seconds: 601 })
    await cleanUp(service.deps)
    expect(await statusOf(`/gif/${id}`)).toBe(410)
    expect((await moderate({ action: 'block' })).status).toBe(200)
    expect((await service.upload(bytes)).body.error.code).toBe('blocked_content')
    expect((await moderate({ action: 'unblock' })).status).toBe(200)
    expect((await service.upload(bytes)).status).toBe(201)
  })

  test('are refused by a report whose clip was deleted, which cannot be dismissed', async () => {
    const reportId = await report()
    await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    expect((await decide(reportId, { action: 'dismiss' })).status).toBe(410)
    const { body } = await decide(reportId, { action: 'block' })
    expect(body.success).toMatchObject({ state: 'closed', clip: { state: 'deleted' }, decision: { action: 'block' } })
    expect(await decisionsAbout(id)).toEqual(['block'])
    expect((await service.upload(bytes)).body.error.code).toBe('blocked_content')
  })

  test('are allowed again by each clip of them, with all that were blocked together', async () => {
    const other = idIn(await service.upload(bytes))
    const made = (await service.get(`/f/${id}.mp4`)).bytes
    const copy = idIn(await service.upload(made))
    for (const named of [other, copy]) {
      await moderate({ action: 'block' })
      expect((await moderate({ action: 'unblock' }, named)).status).toBe(200)
      for (const file of [bytes, made]) expect((await service.upload(file)).status).toBe(201)
      expect((await moderate({ action: 'unblock' }, named)).status).toBe(404)
      expect(await decisionsAbout(named)).toEqual(expect.arrayContaining(['unblock', 'block']))
    }
  })

  test('are allowed again by the clip that was blocked, however long ago', async () => {
    const other = idIn(await service.upload(bytes))
    await moderate({ action: 'block' })
    const forget = async () => {
      service.clock.advance({ seconds: 2 * 86_400 + 1 })
      await cleanUp(service.deps)
    }
    await forget()
    expect([await statusOf(`/gif/${id}`), await statusOf(`/gif/${other}`)]).toEqual([410, 404])
    expect((await service.upload(bytes)).body.error.code).toBe('blocked_content')
    const { body } = await moderate({ action: 'unblock' })
    expect(body.success.items).toMatchObject([{ action: 'unblock' }, { action: 'block' }])
    expect((await service.upload(bytes)).status).toBe(201)
    await forget()
    expect(await statusOf(`/gif/${id}`)).toBe(404)
  })

  test('wait for an upload that is being accepted, and end its clip', async () => {
    const { pool } = service.deps
    const client = await pool.connect()
    await client.query('begin')
    await client.query('lock table sources in share mode')
    const upload = service.upload(bytes, [['speed', '2']])
    await expect.poll(() => countLockWaits(pool)).toBe(1)
    const decision = moderate({ action: 'block' })
    await expect.poll(() => countLockWaits(pool)).toBe(2)
    await client.query('commit')
    client.release()
    expect((await decision).status).toBe(200)
    // Its files may have been made before the decision.
    const { status, body } = await upload
    if (status === 201) expect(await statusOf(`/f/${idIn(await upload)}.mp4`)).toBe(410)
    else expect([status, body.error.code]).toEqual([422, 'blocked_content'])
  })

  test('get many decisions at once, by each of their clips, without a deadlock', async () => {
    const clips = [id]
    while (clips.length < 6) clips.push(idIn(await service.upload(bytes)))
    const actions = ['block', 'unblock', 'hide', 'unhide', 'nsfw', 'unblock', 'delete', 'block']
    const answers = await Promise.all(
      clips.flatMap((clipId, n) => actions.map((_, at) => moderate({ action: actions[(at + n) % 8] }, clipId))),
    )
    expect(new Set(answers.map(({ status }) => (status < 500 ? 'answered' : status)))).toEqual(new Set(['answered']))
    const deadlocks = 'select deadlocks::int from pg_stat_database where datname = current_database()'
    expect((await service.deps.pool.query(deadlocks)).rows).toEqual([{ deadlocks: 0 }])
  })

  test('that are being uploaded while they are blocked are refused or ended, whichever is first', async () => {
    const { token } = await service.newToken()
    const uploads = Array.from({ length: 6 }, (_, n) =>
      service.upload(bytes, n % 2 ? [['speed', '2']] : [], n % 3 ? { token } : {}),
    )
    const [decision, ...answers] = await Promise.all([moderate({ action: 'block' }), ...uploads])
    expect(decision.status).toBe(200)
    for (const { status, body } of answers) {
      if (status !== 201) expect(body.error.code).toMatch(/^(blocked_content|gone)$/)
    }
    const { rows } = await service.deps.pool.query(
      `select clips.id from clips join sources on sources.id = source_id
       where coalesce(file_sha256, sha256) in (select sha256 from blocked_hashes) and state <> 'failed'`,
    )
    expect(rows).toEqual([])
    expect((await service.upload(bytes)).body.error.code).toBe('blocked_content')
  })
})

test('a clip that waits for its transcode is answered with blocked_content when its bytes are blocked', async () => {
  const idle = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { token } = await idle.newToken({ scopes: ['admin'] })
  const waiting = idle.upload(bytes)
  await expect.poll(async () => (await idle.countRows()).clips).toBe(1)
  const [item] = (await idle.get('/media', { token: idle.token })).body.success.items
  const decided = await idle.call('POST', `/media/${item.id}/moderation`, {
    body: JSON.stringify({ action: 'block' }),
    headers: { token, 'content-type': 'application/json' },
  })
  expect(decided.status).toBe(200)
  const { status, body } = await waiting
  expect([status, body.error.code]).toEqual([422, 'blocked_content'])
  await idle.startWorker()
  expect((await idle.upload(bytes)).body.error.code).toBe('blocked_content')
  expect((await idle.upload(gif(widths++, 12, [{ delay: 10 }]))).status).toBe(201)
  await idle.close()
})

test('bytes that are blocked while a worker transcodes them never become a clip', async () => {
  const ffmpeg = await heldFfmpeg()
  const busy = await startTestService({}, { tools: ffmpeg.tools })
  const { token } = await busy.newToken({ scopes: ['admin'] })
  const waiting = busy.upload(bytes)
  await ffmpeg.hasBegun()
  const [item] = (await busy.get('/media', { token: busy.token })).body.success.items
  const decided = await busy.call('POST', `/media/${item.id}/moderation`, {
    body: JSON.stringify({ action: 'block' }),
    headers: { token, 'content-type': 'application/json' },
  })
  expect(decided.status).toBe(200)
  await ffmpeg.release()
  const { status, body } = await waiting
  expect([status, body.error.code]).toEqual([422, 'blocked_content'])
  await busy.traces()
  expect((await busy.get(`/f/${item.id}.mp4`)).status).toBe(410)
  await busy.close()
})

describe('webhooks of admins', () => {
  test('get reports, and clips that are hidden and shown again, without texts of the reporter', async () => {
    const receiver = await startReceiver()
    await post('/webhooks', { url: receiver.url })
    await report()
    await moderate({ action: 'hide', reason: 'spam' })
    await moderate({ action: 'hide', reason: 'spam' })
    await moderate({ action: 'unhide' })
    await expect.poll(() => receiver.received.length).toBe(3)
    const events = receiver.received.map(({ body }) => JSON.parse(body))
    expect(events.sort((a, b) => a.type.localeCompare(b.type)).map(({ type, data }) => [type, data])).toEqual([
      ['media.hidden', { id, state: 'hidden', reason: 'spam', origin: 'admin' }],
      ['media.reported', { id, report: { id: expect.any(String), reason: 'copyright' }, open_reports: 1 }],
      ['media.unhidden', { id, state: 'unhidden' }],
    ])
    receiver.close()
  })

  test('other tokens cannot ask for them, and get none if they ask for all', async () => {
    const receiver = await startReceiver()
    const refused = await post('/webhooks', { url: receiver.url, events: ['media.reported'] }, service.token)
    expect([refused.status, refused.body.error.param]).toEqual([422, 'events'])
    const { body } = await post('/webhooks', { url: receiver.url }, service.token)
    expect(body.success.events).not.toContainEqual(expect.stringMatching(/reported|hidden/))
    receiver.close()
  })

  test('the owner of a clip that a moderator ended learns why', async () => {
    const receiver = await startReceiver()
    const { token } = await service.newToken()
    await post('/webhooks', { url: receiver.url, events: ['media.deleted'] }, token)
    const [first, second] = [
      idIn(await service.upload(bytes, [], { token })),
      idIn(await service.upload(gif(widths++, 12, [{ delay: 10 }]), [], { token })),
    ]
    await moderate({ action: 'delete' }, first)
    await moderate({ action: 'block' }, second)
    await expect.poll(() => receiver.received.length).toBe(2)
    const reasons = receiver.received.map(({ body }) => JSON.parse(body).data)
    expect(reasons).toEqual(
      expect.arrayContaining([
        { id: first, state: 'deleted', reason: 'removed' },
        { id: second, state: 'deleted', reason: 'blocked' },
      ]),
    )
    receiver.close()
  })
})
