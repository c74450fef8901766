import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
let admin: string
let id: string
let addresses = 0

beforeAll(async () => {
  service = await startTestService({ MEDIA_RATE_LIMIT_HEADER: 'x-client', MEDIA_REPORT_HIDE_AT: '3' })
  admin = (await service.newToken({ scopes: ['admin'] })).token
})
afterAll(() => service.close())
beforeEach(async () => {
  await service.deps.pool.query('delete from reports')
  id = idIn(await service.readyAlike(gif(16, 16, [{ delay: 10 }])))
})

const newAddress = () => `198.51.${Math.floor(addresses / 250)}.${addresses++ % 250}`

interface Way {
  clip?: string
  from?: string
  accept?: string
  at?: TestService
}

/** Sends the form like a browser. */
const report = (fields: FormFields, { clip = id, from = newAddress(), accept = 'text/html', at = service }: Way = {}) =>
  at.call('POST', `/gif/${clip}/report`, { body: new URLSearchParams(fields), headers: { accept, 'x-client': from } })

const listed = async (query = '?state=open', at = service, token = admin) =>
  (await at.get(`/reports${query}`, { token })).body.success.items

test('a report of a browser reaches the moderators, and a program may report in JSON', async () => {
  const answer = await report([
    ['reason', 'copyright'],
    ['text', 'I made this.\r\n\r\nIn 2024.'],
    ['email', 'me@example.com'],
  ])
  expect(answer.status).toBe(202)
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(answer.text).toContain('Thank you')
  const { status, body } = await service.call('POST', `/gif/${id}/report`, {
    body: JSON.stringify({ reason: 'spam' }),
    headers: { 'content-type': 'application/json', 'x-client': newAddress() },
  })
  expect([status, body]).toEqual([202, { success: { received: true } }])
  expect(await listed()).toEqual(
    expect.arrayContaining([
      {
        id: expect.any(String),
        clip: {
          id,
          page: `https://media.example/gif/${id}`,
          title: null,
          state: 'ready',
          nsfw: false,
          visibility: 'public',
          token_id: expect.any(String),
        },
        reason: 'copyright',
        text: 'I made this.\n\nIn 2024.',
        email: 'me@example.com',
        state: 'open',
        created_at: service.clock.now().toISOString(),
        decision: null,
      },
      expect.objectContaining({ reason: 'spam', text: null, email: null }),
    ]),
  )
})

test('page and player lead to a form that may be sent to its own address and nowhere else', async () => {
  const page = await service.get(`/gif/${id}`, { accept: 'text/html' })
  const player = await service.get(`/embed/${id}`, { accept: 'text/html' })
  const address = `https://media.example/gif/${id}/report`
  for (const { text, headers } of [page, player]) {
    expect(text).toContain(`href="${address}"`)
    expect(headers.get('content-security-policy')).toContain("form-action 'none'")
  }
  const form = await service.get(address, { accept: 'text/html' })
  expect(form.text).toContain(`<form method="post" action="${address}">`)
  expect(form.text).not.toContain('<script')
  expect(form.headers.get('content-security-policy')).toContain(`form-action ${address};`)
  expect(form.headers.get('x-robots-tag')).toBe('noindex')
})

test.for<[string, FormFields, string]>([
  ['no reason', [], 'reason'],
  ['an unknown reason', [['reason', 'boring']], 'reason'],
  [
    'a text of 1001 characters',
    [
      ['reason', 'other'],
      ['text', 'x'.repeat(1001)],
    ],
    'text',
  ],
  [
    'a text that is far too long',
    [
      ['reason', 'other'],
      ['text', ' '.repeat(9_000)],
    ],
    'text',
  ],
  [
    'an e-mail that is none',
    [
      ['reason', 'other'],
      ['email', 'me at home'],
    ],
    'email',
  ],
  [
    'an e-mail of 255 characters',
    [
      ['reason', 'other'],
      ['email', `${'x'.repeat(243)}@example.com`],
    ],
    'email',
  ],
])('%s is refused, and names the field', async ([, fields, param]) => {
  const { status, body } = await report(fields, { accept: '*/*' })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'invalid_field', param])
  const page = await report(fields)
  expect([page.status, page.headers.get('content-type')]).toEqual([422, 'text/html; charset=utf-8'])
  expect(await listed()).toEqual([])
})

test('a text of 1000 characters and as many line breaks as a browser sends is accepted', async () => {
  expect(
    (
      await report([
        ['reason', 'other'],
        ['text', `${'é'.repeat(500)}\r\n${'x'.repeat(499)}`],
      ])
    ).status,
  ).toBe(202)
  expect((await listed())[0].text).toHaveLength(1000)
})

test('a form that is too large is not read', async () => {
  expect(
    (
      await report([
        ['reason', 'other'],
        ['text', 'x'.repeat(40_000)],
      ])
    ).status,
  ).toBe(413)
})

test('an address reports a clip once, also in two requests at the same time', async () => {
  const from = newAddress()
  const answers = await Promise.all([1, 2, 3, 4].map(() => report([['reason', 'spam']], { from })))
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  expect(await listed()).toHaveLength(1)
})

test('an address may report five times a day, whichever clips', async () => {
  const from = newAddress()
  const ways = [id, 'zzzzzzzz', id, 'yyyyyyyy', 'no clip at all'].map((clip) => ({ clip, from }))
  for (const way of ways) expect((await report([['reason', 'spam']], way)).status).toBe(202)
  const refused = await report([['reason', 'spam']], { from })
  expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await report([['reason', 'spam']])).status).toBe(202)
})

test('no table keeps the address of a reporter, also not as a plain hash', async () => {
  const from = '203.0.113.77'
  await report([['reason', 'spam']], { from })
  const { rows } = await service.deps.pool.query(
    `select to_jsonb(r)::text as row from reports r union all select to_jsonb(l)::text from rate_limits l
     union all select to_jsonb(k)::text from report_keys k`,
  )
  const all = rows.map(({ row }) => row).join()
  expect(all).toContain(id)
  for (const text of [from, ...['hex', 'base64', 'base64url'].map((form) => hashed(from, form as 'hex'))]) {
    expect(all).not.toContain(text)
  }
})

const hashed = (text: string, form: 'hex' | 'base64' | 'base64url') => createHash('sha256').update(text).digest(form)

describe('hiding by reports', () => {
  test('three addresses hide a clip, each counted once, until a moderator shows it again', async () => {
    const [first, second] = [newAddress(), newAddress()]
    for (const from of [first, first, second]) await report([['reason', 'illegal']], { from })
    expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
    await report([['reason', 'spam']])
    expect((await service.get(`/f/${id}.mp4`)).status).toBe(451)
    expect((await service.get(`/gif/${id}`)).body.error.code).toBe('hidden')
    const { body } = await service.get(`/media/${id}`, { token: service.token })
    expect(body.success).toMatchObject({ state: 'hidden', hidden_reason: 'reports' })
    expect(await listed()).toHaveLength(3)

    service.clock.advance({ seconds: 1 })
    const decisions = await service.call('POST', `/media/${id}/moderation`, {
      body: JSON.stringify({ action: 'unhide' }),
      headers: { token: admin, 'content-type': 'application/json' },
    })
    expect(decisions.body.success.items.map(({ action, origin }: Record<string, string>) => [action, origin])).toEqual([
      ['unhide', 'admin'],
      ['hide', 'reports'],
    ])
    expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
    expect(await listed()).toEqual([])
    // Those that were answered count no more.
    await report([['reason', 'spam']])
    await report([['reason', 'spam']])
    expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
  })

  test('reports at the same time hide it at exactly the third', async () => {
    await Promise.all([1, 2, 3, 4, 5].map(() => report([['reason', 'nsfw']])))
    const { rows } = await service.deps.pool.query('select action from moderations where clip_id = $1', [id])
    expect(rows).toEqual([{ action: 'hide' }])
    expect(await listed()).toHaveLength(3)
  })
})

test('a clip has a hundred open reports at most', async () => {
  await service.deps.pool.query(
    `insert into reports (id, clip_id, reason, created_at) select gen_random_uuid(), $1, 'spam', now()
     from generate_series(1, 99)`,
    [id],
  )
  await Promise.all([report([['reason', 'spam']]), report([['reason', 'spam']])])
  const { rows } = await service.deps.pool.query('select count(*)::int from reports where clip_id = $1', [id])
  expect(rows[0].count).toBe(100)
})

test('reports are deleted after 180 days, and the key of a month when it has ended', async () => {
  await report([['reason', 'spam']])
  const count = async (table: string) =>
    (await service.deps.pool.query(`select count(*)::int from ${table}`)).rows[0].count
  service.clock.advance({ seconds: 179 * 86_400 })
  await cleanUp(service.deps)
  expect([await count('reports'), await count('report_keys')]).toEqual([1, 0])
  service.clock.advance({ seconds: 2 * 86_400 })
  await cleanUp(service.deps)
  expect(await count('reports')).toBe(0)
})

test('without a header for addresses reports are taken from all, hide nothing, and have one limit', async () => {
  const open = await startTestService({ MEDIA_REPORT_HIDE_AT: '1' })
  const clip = idIn(await open.readyAlike(gif(17, 16, [{ delay: 10 }])))
  for (const from of ['192.0.2.1', '192.0.2.1', '192.0.2.2']) {
    expect((await report([['reason', 'spam']], { clip, from, at: open })).status).toBe(202)
  }
  expect((await open.get(`/f/${clip}.mp4`)).status).toBe(200)
  const token = (await open.newToken({ scopes: ['admin'] })).token
  expect(await listed('', open, token)).toHaveLength(3)
  await open.deps.pool.query(`update rate_limits set points = 500 where key = 'report:all'`)
  expect((await report([['reason', 'spam']], { clip, at: open })).status).toBe(429)
  await open.close()
})

test('with MEDIA_REPORTS=off there is neither link nor form, and reports are refused', async () => {
  const off = await startTestService({ MEDIA_REPORTS: 'off', MEDIA_RATE_LIMIT_HEADER: 'x-client' })
  const clip = idIn(await off.readyAlike(gif(18, 16, [{ delay: 10 }])))
  for (const path of [`/gif/${clip}`, `/embed/${clip}`]) {
    const { status, text } = await off.get(path, { accept: 'text/html' })
    expect(status).toBe(200)
    expect(text).not.toContain('/report"')
  }
  expect((await off.get(`/gif/${clip}/report`)).status).toBe(404)
  expect((await report([['reason', 'spam']], { clip, at: off })).status).toBe(404)
  await off.close()
})
