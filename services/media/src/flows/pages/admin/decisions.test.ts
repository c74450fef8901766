// Pages of administrators: their visitors, and decisions about reports and clips.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from '../../../../test/gif-bytes.ts'
import { BASE_URL, idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { type Administrator, asAdministrator, PAGES } from './testing/administrator.ts'

let service: TestService
let admin: Administrator
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  admin = await asAdministrator(service)
})
afterAll(() => service.close())

let width = 20
const newClip = async (title = 'A cat') =>
  idIn(await service.readyAlike(gif(width++, 12, [{ delay: 10 }]), [['title', title]]))
const query = async (text: string, values: unknown[] = []) => (await service.deps.pool.query(text, values)).rows

async function reported(title?: string): Promise<{ clip: string; report: string }> {
  const clip = await newClip(title)
  const body = new URLSearchParams({ reason: 'spam', text: 'Buy <b>this</b>', email: 'eve@example.com' })
  expect((await service.call('POST', `/gif/${clip}/report`, { body })).status).toBe(202)
  return { clip, report: (await query('select id from reports where clip_id = $1', [clip]))[0].id }
}

const stateOf = async (clip: string) =>
  (await query('select hidden_reason, nsfw, deleted_at is not null as deleted from clips where id = $1', [clip]))[0]
const actsOn = (clip: string) =>
  query('select token_id, address, details from audit_entries where target = $1 order by created_at, id', [clip])

describe('the pages', () => {
  test.for(PAGES)('%s is for administrators alone, under a strict policy', async (path) => {
    const { status, text, headers } = await admin.get(path)
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    expect(headers.get('content-security-policy')).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'; ",
    )
    expect(text).not.toMatch(/ style=| on\w+=|<style|<script(?! type="(module" src="|application\/json"))/)
    expect(text).not.toMatch(/undefined|\[object /)
    const usual = await asAdministrator(service, {})
    const refused = await usual.get(path)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('needs: admin')])
    const answer = await service.get(path)
    const next = `/session?${new URLSearchParams({ next: path })}`
    expect([answer.status, answer.headers.get('location')]).toEqual([303, BASE_URL + next])
    const other = await admin.get(path, { 'sec-fetch-site': 'cross-site' })
    expect(other.text).not.toContain('class="sections"')
    expect((await admin.get(path, { 'accept-language': 'de' })).text).toContain('Seiten der Verwaltung')
  })

  test('do not exist without MEDIA_LIBRARY, and the endpoints do', async () => {
    const without = await startTestService({ MEDIA_LIBRARY: 'off', MEDIA_WORKERS_ENABLED: 'false' })
    const { token } = await without.newToken({ scopes: ['admin'] })
    for (const path of PAGES) expect((await without.get(path, { token })).status).toBe(404)
    for (const path of ['/queue', '/audit', '/storage', '/settings']) {
      expect((await without.get(path, { token })).status).toBe(200)
    }
    await without.close()
  })
})

const FORMS = [
  '/admin/decide',
  '/admin/tokens',
  '/admin/tokens/ID',
  '/admin/tokens/ID/sessions',
  '/admin/tokens/ID/revoke',
  '/admin/queue/ID',
  '/admin/storage/check',
]

test.for(FORMS)('%s acts by a form of this session alone', async (path) => {
  const { id } = await service.newToken()
  const clip = await newClip()
  const fields = { clip, action: 'hide', act: 'retry', name: 'x', scope_admin: 'yes' }
  const to = path.replace('ID', id)
  const usual = await asAdministrator(service, {})
  const before = (await query('select count(*)::int as n from audit_entries'))[0].n
  expect((await admin.post(to, fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(303)
  expect((await admin.post(to, { ...fields, form_token: 'wrong' })).status).toBe(403)
  expect((await admin.post(to, { ...fields, form_token: '' })).status).toBe(403)
  expect((await usual.post(to, fields)).status).toBe(403)
  expect((await service.call('POST', to, { body: new URLSearchParams(fields) })).status).toBe(303)
  expect(await query('select count(*)::int as n from audit_entries')).toEqual([{ n: before }])
  expect(await query('select revoked_at, name from api_tokens where id = $1', [id])).toEqual([
    { revoked_at: null, name: 'test' },
  ])
})

describe('reports', () => {
  test('are shown with still, title, reason, text, reporter, owner and earlier decisions', async () => {
    const { clip } = await reported('<i>A dog</i>')
    await service.call('POST', `/media/${clip}/moderation`, {
      headers: { token: admin.token, 'content-type': 'application/json' },
      body: JSON.stringify({ action: 'safe', note: 'By <letter>' }),
    })
    await query("update reports set state = 'open', moderation_id = null where clip_id = $1", [clip])
    const { text } = await admin.get('/admin')
    for (const part of [
      `src="${BASE_URL}/media/${clip}/moderation/jpg"`,
      ...['&lt;i&gt;A dog&lt;/i&gt;', 'Buy &lt;b&gt;this&lt;/b&gt;', 'eve@example.com', 'By &lt;letter&gt;'],
    ]) {
      expect(text).toContain(part)
    }
    const still = await service.get(`/media/${clip}/moderation/jpg`, {
      cookie: admin.cookie,
      'sec-fetch-site': 'same-origin',
    })
    expect([still.status, still.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
  })

  test.for([
    ['dismiss', undefined, {}],
    ['nsfw', 'safe', { nsfw: true }],
    ['hide', 'unhide', { hidden_reason: 'spam' }],
    ['delete', undefined, { deleted: true }],
    ['block', 'unblock', { deleted: true }],
  ] as const)('are decided by %s, and undone in the same view', async ([action, undo, state]) => {
    const { clip, report } = await reported()
    const decided = await admin.post('/admin/decide', { action, clip, report, back: '/admin' })
    expect([decided.status, decided.headers.get('location')]).toEqual([
      303,
      `${BASE_URL}/admin?done=${action}&clip=${clip}`,
    ])
    expect(await stateOf(clip)).toMatchObject(state)
    expect(await query('select state from reports where id = $1', [report])).toEqual([{ state: 'closed' }])
    const { text } = await admin.get(`/admin?done=${action}&clip=${clip}`)
    expect(text).not.toContain(report)
    expect(text.includes('Undo (u)')).toBe(undo !== undefined)
    expect(await actsOn(clip)).toMatchObject([
      { token_id: admin.id, address: '127.0.0.1', details: { decision: action, report } },
    ])
    expect((await admin.get('/admin?state=closed')).text).toContain(report)
    if (!undo) return
    expect(text).toContain(`name="action" value="${undo}"`)
    expect((await admin.post('/admin/decide', { action: undo, clip, back: '/admin' })).status).toBe(303)
    expect((await actsOn(clip)).length).toBe(2)
    if (undo !== 'unblock') expect(await stateOf(clip)).toEqual({ hidden_reason: null, nsfw: false, deleted: false })
  })

  test('have no sentence and no reverse at an address alone: only just after the decision, for its token', async () => {
    const clip = await newClip()
    const other = await asAdministrator(service)
    const claims = async (done: string, by = admin) => {
      const texts = await Promise.all(
        ['/admin', '/admin/clips'].map((path) => by.get(`${path}?done=${done}&clip=${clip}`)),
      )
      return texts.map(({ text }) => /data-act="undo"|class="notice news/.test(text))
    }
    expect(await claims('hide')).toEqual([false, false])
    await admin.post('/admin/decide', { action: 'hide', clip })
    expect(await claims('hide')).toEqual([true, true])
    expect(await claims('nsfw')).toEqual([false, false])
    expect(await claims('hide', other)).toEqual([false, false])
    service.clock.advance({ seconds: 1 })
    await other.post('/admin/decide', { action: 'unhide', clip })
    expect(await claims('hide')).toEqual([false, false])
    service.clock.advance({ seconds: 1 })
    await admin.post('/admin/decide', { action: 'hide', clip })
    service.clock.advance({ seconds: 600 })
    expect(await claims('hide')).toEqual([false, false])
    expect((await admin.get('/admin?done=dismiss&clip=x')).text).not.toContain('The report is dismissed')
  })

  test('of another clip, or that were decided meanwhile, decide nothing', async () => {
    const [one, two] = [await reported(), await reported()]
    const decide = (clip: string, report: string) => admin.post('/admin/decide', { action: 'hide', clip, report })
    expect((await decide(one.clip, two.report)).status).toBe(404)
    expect((await decide(one.clip, 'x')).status).toBe(404)
    expect((await decide(one.clip, one.report)).status).toBe(303)
    expect((await decide(one.clip, one.report)).status).toBe(409)
    expect((await admin.post('/admin/decide', { action: 'dismiss', clip: two.clip })).status).toBe(404)
    expect(await stateOf(two.clip)).toMatchObject({ hidden_reason: null })
  })

  test('lead back to pages of the administration alone', async () => {
    for (const back of ['https://evil.example', '//evil.example', '/library', '/administration', '/admin\\evil']) {
      const clip = await newClip()
      const { headers } = await admin.post('/admin/decide', { action: 'hide', clip, back })
      expect(headers.get('location')).toBe(`${BASE_URL}/admin?done=hide&clip=${clip}`)
    }
  })
})

describe('clips of any token', () => {
  test('are found by id, hash, words and token, in every state', async () => {
    const other = await service.newToken()
    const file = gif(width++, 12, [{ delay: 10 }])
    const clip = idIn(await service.readyAlike(file, [['title', 'Zebra crossing']], { token: other.token }))
    const details = (await service.get(`/media/${clip}`, { token: other.token })).body.success
    const found = async (asked: Record<string, string>) =>
      (await admin.get(`/admin/clips?${new URLSearchParams(asked)}`)).text.includes(`id="${clip}"`)
    for (const q of [clip, details.source.sha256, details.sizes.mp4?.sha256 ?? details.source.sha256, 'zebra cross']) {
      expect([q, await found({ q })]).toEqual([q, true])
    }
    expect(await found({ token: other.id })).toBe(true)
    expect(await found({ token: other.id, q: 'horse' })).toBe(false)
    expect(await found({ q: 'a'.repeat(64) })).toBe(false)
    await admin.post('/admin/decide', { action: 'hide', clip })
    expect(await found({ q: clip })).toBe(true)
    expect((await admin.get(`/admin/clips?q=${clip}`)).text).toContain('Show again')
    await admin.post('/admin/decide', { action: 'delete', clip })
    const { text } = await admin.get(`/admin/clips?q=${clip}`)
    expect(text).toContain('Allow these bytes')
    expect(text).not.toContain(`/media/${clip}/moderation/jpg`)
  })

  test('are decided on a further page of a search, which stays', async () => {
    for (let count = 0; count < 21; count++) await newClip('One of many')
    const first = (await admin.get('/admin/clips?q=many&state=ready')).text
    expect(first).toContain('<input type="hidden" name="state" value="ready">')
    const [, next = ''] = /href="([^"]+)" rel="next"/.exec(first) ?? []
    const path = next.replaceAll('&amp;', '&').slice(BASE_URL.length)
    const { text } = await admin.get(path)
    const [, clip = ''] = /id="(\w+)" aria-label="One of many"/.exec(text) ?? []
    const [, back = ''] = /name="back" value="([^"]+)"/.exec(text) ?? []
    const { headers } = await admin.post('/admin/decide', { action: 'nsfw', clip, back: back.replaceAll('&amp;', '&') })
    expect(path).toMatch(/q=many&state=ready&cursor=/)
    expect(headers.get('location')).toBe(`${BASE_URL}${path}&done=nsfw&clip=${clip}`)
  })

  test('that cannot be searched for leave the page with its words', async () => {
    const { status, text } = await admin.get(`/admin/clips?token=x&q=${'a+'.repeat(20)}`)
    expect(status).toBe(200)
    expect(text).toContain('cannot be searched for')
    expect(text).toContain('name="token" type="text" value="x"')
  })
})
