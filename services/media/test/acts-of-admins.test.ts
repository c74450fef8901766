// Every command, and every route by which an admin changes tokens or clips of others, leaves an entry under the name of
// its actor. A new one without a row here fails.
import { rm } from 'node:fs/promises'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../src/commands.ts'
import type { AuditAction } from '../src/db/tables.ts'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, idIn, settingsOf, startTestService, type TestService } from './service.ts'

let service: TestService
let admin: { token: string; id: string }
beforeAll(async () => {
  service = await startTestService({ MEDIA_RATE_LIMIT_UPLOAD: '1000/1h' })
  admin = await service.newToken({ scopes: ['admin'] })
})
afterAll(() => service.close())

let widths = 20
/** A clip of another token. */
const newClip = async () => idIn(await service.readyAlike(gif(widths++, 12, [{ delay: 10 }])))

interface Entry {
  id: string
  action: AuditAction
  target: string | null
  origin: string
  token_id: string | null
  operator: string | null
  address: string | null
  details: object
}

const entries = async (): Promise<Entry[]> => (await service.deps.pool.query('select * from audit_entries')).rows

/** Result of `work`, and the entries that it leaves. */
async function audited<Result>(work: () => Promise<Result>) {
  const before = new Set((await entries()).map(({ id }) => id))
  const result = await work()
  return { result, left: (await entries()).filter(({ id }) => !before.has(id)) }
}

const as = (token: string, method: string, path: string, body?: object) =>
  service.call(method, path, {
    headers: { token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

/** Time in the form of the API. */
const A_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

/** Details use the names of the API. */
const expectNames = (details: object = {}) => {
  for (const name of Object.keys(details)) expect(name).toMatch(/^[a-z_]+$/)
}

interface Act {
  action: AuditAction
  details?: object
  /** Calls the route; the target comes with the answer if it is new. */
  walk: (token: string) => Promise<{ answer: Answer; target: string | null }>
}

const onClip =
  (method: string, suffix: string, body?: object): Act['walk'] =>
  async (token) => {
    const target = await newClip()
    return { answer: await as(token, method, `/media/${target}${suffix}`, body), target }
  }

const onClips =
  (act: object): Act['walk'] =>
  async (token) => {
    const target = await newClip()
    return { answer: await as(token, 'POST', '/media/bulk', { ids: [target], ...act }), target }
  }

/** Acts on an album of another token, which has one of two clips. */
const onAlbum =
  (method: string, suffix: string, bodyOf: (clips: string[]) => object | undefined = () => undefined): Act['walk'] =>
  async (token) => {
    const made = await as(service.token, 'POST', '/albums', { title: 'Secret words' })
    const { id: target } = made.body.success
    const clips = [await newClip(), await newClip()]
    await as(service.token, 'PUT', `/albums/${target}/items`, { ids: clips.slice(1) })
    const path = `/albums/${target}${suffix.replace('{clip}', clips[1] ?? '')}`
    return { answer: await as(token, method, path, bodyOf(clips)), target }
  }

async function reported(): Promise<{ report: string; target: string }> {
  const target = await newClip()
  const body = new URLSearchParams({ reason: 'spam' })
  expect((await service.call('POST', `/gif/${target}/report`, { body })).status).toBe(202)
  const { items } = (await as(admin.token, 'GET', '/reports?state=open')).body.success
  return { report: items[0].id, target }
}

/** A job that was given up, as pg-boss writes it. */
const deadLetter = async (): Promise<string> => {
  const insert = `insert into media_queue.job (name, source_name, data, source_retry_count)
    values ('extras.dead', 'extras', '{}', 0) returning id`
  return (await service.deps.pool.query(insert)).rows[0].id
}

const moderation = (action: string): Act => ({
  action: 'clip_moderated',
  details: { decision: action, clips: 1 },
  walk: async (token) => {
    const target = await newClip()
    const before = { unhide: 'hide', safe: 'nsfw', unblock: 'block' }[action]
    if (before) await as(token, 'POST', `/media/${target}/moderation`, { action: before })
    return { answer: await as(token, 'POST', `/media/${target}/moderation`, { action }), target }
  },
})

const ROUTES: Record<string, Act[]> = {
  'PATCH /media/{id}': [
    { action: 'clip_changed', details: { fields: ['title'] }, walk: onClip('PATCH', '', { title: 'Secret words' }) },
    {
      action: 'clip_changed',
      details: { fields: ['tags', 'visibility'] },
      walk: onClip('PATCH', '', { visibility: 'private', tags: ['a'] }),
    },
  ],
  'POST /media/bulk': [
    {
      action: 'clip_changed',
      details: { fields: ['tags'] },
      walk: onClips({ action: 'tag', tags: ['Secret words'] }),
    },
    { action: 'clip_deleted', walk: onClips({ action: 'delete' }) },
  ],
  'DELETE /media/{id}': [{ action: 'clip_deleted', walk: onClip('DELETE', '') }],
  'POST /media/{id}/links': [{ action: 'links_created', walk: onClip('POST', '/links', { expires_in: '1h' }) }],
  'DELETE /media/{id}/links': [{ action: 'links_ended', walk: onClip('DELETE', '/links') }],
  'POST /albums/{id}/links': [
    {
      action: 'album_links_created',
      details: { expires_at: A_TIME },
      walk: onAlbum('POST', '/links', () => ({ expires_in: '1h' })),
    },
  ],
  'DELETE /albums/{id}/links': [{ action: 'album_links_ended', walk: onAlbum('DELETE', '/links') }],
  'POST /media/{id}/moderation': ['nsfw', 'safe', 'hide', 'unhide', 'delete', 'block', 'unblock'].map(moderation),
  'POST /reports/{id}': ['dismiss', 'nsfw', 'hide', 'delete', 'block'].map((decision) => ({
    action: 'clip_moderated',
    details: { decision, clips: 1, reason: 'spam' },
    walk: async (token) => {
      const { report, target } = await reported()
      return { answer: await as(token, 'POST', `/reports/${report}`, { action: decision }), target }
    },
  })),
  'PATCH /albums/{id}': [
    {
      action: 'album_changed',
      details: { fields: ['title'] },
      walk: onAlbum('PATCH', '', () => ({ title: 'Secret words' })),
    },
  ],
  'DELETE /albums/{id}': [{ action: 'album_deleted', walk: onAlbum('DELETE', '') }],
  'PUT /albums/{id}/items': [
    { action: 'album_changed', details: { fields: ['items'] }, walk: onAlbum('PUT', '/items', (ids) => ({ ids })) },
  ],
  'POST /albums/{id}/items': [
    { action: 'album_changed', details: { fields: ['items'] }, walk: onAlbum('POST', '/items', (ids) => ({ ids })) },
  ],
  'DELETE /albums/{id}/items/{clip}': [
    { action: 'album_changed', details: { fields: ['items'] }, walk: onAlbum('DELETE', '/items/{clip}') },
  ],
  'POST /tokens': [
    {
      action: 'token_created',
      details: { name: 'for an audit', scopes: ['read'], limits: { quota_bytes: 9 }, expires_at: A_TIME },
      walk: async (token) => {
        const body = { name: 'for an audit', scopes: ['read'], limits: { quota_bytes: 9 }, expires_in: '1h' }
        const answer = await as(token, 'POST', '/tokens', body)
        return { answer, target: answer.body.success.id }
      },
    },
  ],
  'POST /storage/check': [
    {
      action: 'storage_check_begun',
      walk: async (token) => ({ answer: await as(token, 'POST', '/storage/check'), target: null }),
    },
  ],
  'POST /queue/dead/{id}/retry': [
    {
      action: 'dead_letter_retried',
      details: { kind: 'job', name: 'extras' },
      walk: async (token) => {
        const target = await deadLetter()
        return { answer: await as(token, 'POST', `/queue/dead/${target}/retry`), target }
      },
    },
  ],
  'DELETE /queue/dead/{id}': [
    {
      action: 'dead_letter_deleted',
      details: { kind: 'job', name: 'extras' },
      walk: async (token) => {
        const target = await deadLetter()
        return { answer: await as(token, 'DELETE', `/queue/dead/${target}`), target }
      },
    },
  ],
  'PATCH /tokens/{id}': [
    {
      action: 'token_changed',
      details: { name: 'changed', limits: { read: 9 } },
      walk: async (token) => {
        const { id: target } = await service.newToken()
        return {
          answer: await as(token, 'PATCH', `/tokens/${target}`, { name: 'changed', limits: { read: 9 } }),
          target,
        }
      },
    },
  ],
  'DELETE /tokens/{id}/sessions': [
    {
      action: 'sessions_ended',
      details: { sessions_ended: 0 },
      walk: async (token) => {
        const { id: target } = await service.newToken()
        return { answer: await as(token, 'DELETE', `/tokens/${target}/sessions`), target }
      },
    },
  ],
  'DELETE /tokens/{id}': [
    {
      action: 'token_revoked',
      walk: async (token) => {
        const { id: target } = await service.newToken()
        return { answer: await as(token, 'DELETE', `/tokens/${target}`), target }
      },
    },
  ],
}

/** Routes about things of the token itself, and for anyone. */
const OWN = [
  ...[
    'POST /media/upload',
    'POST /media/import',
    'POST /media/{id}/copies',
    'POST /tus',
    'PATCH /tus/{id}',
    'DELETE /tus/{id}',
  ],
  'POST /albums',
  ...['POST /webhooks', 'DELETE /webhooks/{id}', 'POST /webhooks/{id}/deliveries/{delivery}/replay'],
  ...['POST /gif/{id}/report', 'POST /session', 'DELETE /session'],
  // Numbers of a CDN, every few minutes.
  'POST /views',
]

test('every route that changes something is an act below, or is about what its caller owns', async () => {
  const { paths } = (await service.get('/openapi.json')).body
  const routes = Object.entries<object>(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const changing = routes.filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route))
  expect(changing.toSorted()).toEqual([...Object.keys(ROUTES), ...OWN].toSorted())
})

const acts = Object.entries(ROUTES).flatMap(([route, all]) => all.map((act, n) => [`${route} ${n}`, act] as const))

test.for(acts)('the admin is the actor of %s', async ([, { action, details, walk }]) => {
  const { result, left } = await audited(() => walk(admin.token))
  expect([200, 201, 202, 204]).toContain(result.answer.status)
  const last = left.at(-1)
  expect(last).toMatchObject({ action, target: result.target, origin: 'admin', token_id: admin.id, operator: null })
  expect(last?.address).toBe('127.0.0.1')
  expect(last?.details).toMatchObject(details ?? {})
  expectNames(last?.details)
  // Neither secrets nor texts, which a deletion would leave here.
  const { token = 'no token' } = result.answer.body?.success ?? {}
  expect(JSON.stringify(left)).not.toMatch(new RegExp(`Secret words|${token}`))
})

test("a token's acts on its own clips leave none, nor do those that are refused", async () => {
  const own = await newClip()
  const { token } = service
  const calls = [
    () => as(token, 'PATCH', `/media/${own}`, { title: 'mine' }),
    () => as(token, 'POST', `/media/${own}/links`, {}),
    () => as(token, 'DELETE', `/media/${own}/links`),
    () => as(token, 'DELETE', `/media/${own}`),
    () => as(admin.token, 'DELETE', `/media/${own}`),
    () => as(admin.token, 'PATCH', `/media/${own}`, { title: 'late' }),
    () => as(admin.token, 'POST', `/media/${own}/moderation`, { action: 'hide' }),
    () => as(admin.token, 'DELETE', `/tokens/${crypto.randomUUID()}`),
  ]
  for (const call of calls) expect((await audited(call)).left).toEqual([])
})

/** A command line that acts; `{clip}` and `{token}` stand for ids. */
type Line = [AuditAction, string, object?]

const TOKEN_OPTIONS = '--name cli-made --scopes read --limits quota_bytes=9 --expires 1h'
const TOKEN_DETAILS = { name: 'cli-made', scopes: ['read'], limits: { quota_bytes: 9 }, expires_at: A_TIME }

const COMMANDS: Record<string, Line[]> = {
  'tokens create': [['token_created', `tokens create ${TOKEN_OPTIONS}`, TOKEN_DETAILS]],
  'tokens update': [
    ['token_changed', `tokens update {token} ${TOKEN_OPTIONS}`, TOKEN_DETAILS],
    ['token_changed', 'tokens update {token} --expires never', { expires_at: null }],
  ],
  'tokens revoke': [['token_revoked', 'tokens revoke {token}']],
  'clips hide': [['clip_moderated', 'clips hide {clip} --reason spam', { decision: 'hide', reason: 'spam' }]],
  'clips unhide': [['clip_moderated', 'clips unhide {clip}', { decision: 'unhide' }]],
  'clips delete': [['clip_moderated', 'clips delete {clip} --yes', { decision: 'delete', clips: 1 }]],
  'blobs scan': [['scans_queued', 'blobs scan', { queued: expect.any(Number) }]],
  'blobs check': [['files_repaired', 'blobs check --fix', { deep: false, fixed: {} }]],
}

/** Commands that change nothing, with the reason where that is not plain. */
const NO_ACTS = {
  serve: 'the token of its settings is in `tokens list`',
  worker: '',
  migrate: 'the list of migrations has the time of each',
  'migrate status': '',
  'config check': '',
  'config table': '',
  version: '',
  'tokens list': 'reads like GET /tokens',
  'tokens usage': '',
  'clips list': 'reads like GET /media of an admin',
  'clips show': 'reads like GET /media/{id} of an admin',
  'variants sign': 'needs no database, and its address opens only clips that may be shown',
  'audit list': '',
}

test('every command is an act below, or none', () => {
  const names = commands.map(({ name }) => name)
  expect(names.toSorted()).toEqual([...Object.keys(COMMANDS), ...Object.keys(NO_ACTS)].toSorted())
})

/** That `blobs scan` queues for; no process of this test asks it. */
const SCANNER = {
  MEDIA_SCAN_URL: 'https://8.8.8.8/scan',
  MEDIA_SCAN_SECRET: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
}

describe('the command line', () => {
  const run = async (line: string) => {
    const settings = {
      ...settingsOf(service.deps.config.database.url, service.blobsDir),
      ...SCANNER,
      MEDIA_LOG_LEVEL: 'error',
    }
    const { code, stdout } = await mediaHere(line.split(' '), settings)
    expect(code).toBe(0)
    return stdout
  }
  const operator = `${userInfo().username}@${hostname()}`

  test.for(Object.values(COMMANDS).flat())('is the actor of %s %s', async ([action, line, details = {}]) => {
    const ids = {
      '{clip}': line.includes('{clip}') ? await newClip() : '',
      '{token}': line.includes('{token}') ? (await service.newToken()).id : '',
    }
    const typed = Object.entries(ids).reduce((text, [name, id]) => text.replace(name, id), line)
    const { result, left } = await audited(() => run(typed))
    expect(left).toMatchObject([{ action, origin: 'cli', token_id: null, operator, details }])
    expectNames(left[0]?.details)
    const target = ids['{clip}'] || ids['{token}']
    if (target) expect(left[0]?.target).toBe(target)
    const shown: Entry[] = JSON.parse(await run('audit list --limit 1000 --json'))
    expect(shown.find(({ id }) => id === left[0]?.id)).toMatchObject({ action, operator })
    expect(await run('audit list --limit 1000')).toContain(
      `${action}  ${left[0]?.target ?? 'all files'}  cli  ${operator}`,
    )
    if (action === 'token_created') expect(JSON.stringify(shown)).not.toContain(result.trim())
  })

  test('counts what a repair changed, and leaves none for a check', async () => {
    await newClip()
    expect((await audited(() => run('blobs check'))).left).toEqual([])
    const [file = ''] = (await service.listFiles()).filter((path) => !path.startsWith('work/'))
    await rm(join(service.blobsDir, file))
    const { left } = await audited(() => run('blobs check --fix'))
    expect(left).toMatchObject([
      { action: 'files_repaired', target: null, details: { fixed: { row_without_blob: 1 } } },
    ])
  })
})
