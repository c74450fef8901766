// The pages of tokens and of the service itself: each act once, by a form.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BASE_URL, startTestService, type TestService } from '../../../../test/service.ts'
import { type Administrator, asAdministrator } from './testing/administrator.ts'

let service: TestService
let admin: Administrator
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  admin = await asAdministrator(service)
})
afterAll(() => service.close())

const query = async (text: string, values: unknown[] = []) => (await service.deps.pool.query(text, values)).rows
const actsOn = (target: string) =>
  query('select action, token_id, address from audit_entries where target = $1 order by created_at, id', [target])
/** The state of a token that a page of it shows, as its form sends it. */
const shownIn = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/name="(shown_\w+)" value="([^"]*)"/g)].map(([, name, value = '']) => [
      name,
      value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    ]),
  )
const byAdmin = (action: string) => ({ action, token_id: admin.id, address: '127.0.0.1' })

test('a token is made with its limits, and shown once', async () => {
  const fields = { name: 'for ci', scope_read: 'yes', scope_write: 'yes', limit_upload: '50', expires_in: '30d' }
  const made = await admin.post('/admin/tokens', fields)
  const [, token = ''] = /id="secret">(mh_\w+)</.exec(made.text) ?? []
  expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'private, no-store'])
  expect((await service.get('/media', { token })).status).toBe(200)
  const [row] = await query(
    "select id, scopes, limits, expires_at - created_at as life from api_tokens where name = 'for ci'",
  )
  expect(row).toMatchObject({ scopes: ['write', 'read'], limits: { upload: 50 }, life: { days: 30 } })
  expect(await actsOn(row.id)).toEqual([byAdmin('token_created')])
  const { text } = await admin.get('/admin/tokens')
  expect(text).toContain('for ci')
  expect(text).not.toContain(token)
})

test.for([
  [{ name: ' ', scope_read: 'yes' }, 'name must be'],
  [{ name: 'x' }, 'scopes must be'],
  [{ name: 'x', scope_read: 'yes', limit_read: 'many' }, 'read must be'],
  [{ name: 'x', scope_read: 'yes', expires_in: 'soon' }, 'expires_in must be'],
] as const)('a token is not made of %j', async ([fields, problem]) => {
  const before = (await query('select count(*)::int as n from api_tokens'))[0].n
  const { status, text } = await admin.post('/admin/tokens', fields)
  expect([status, text]).toEqual([422, expect.stringContaining(problem)])
  expect(await query('select count(*)::int as n from api_tokens')).toEqual([{ n: before }])
})

test('a form that is sent again by a reload makes no second token, and its secret is stored nowhere', async () => {
  const [, form_id = ''] = /name="form_id" value="([^"]+)"/.exec((await admin.get('/admin/tokens')).text) ?? []
  const fields = { form_id, name: 'made once', scope_read: 'yes' }
  const made = await admin.post('/admin/tokens', fields)
  const again = await admin.post('/admin/tokens', fields)
  const [, secret = ''] = /id="secret">(mh_\w+)</.exec(made.text) ?? []
  expect(secret).not.toBe('')
  expect([again.status, again.text]).toEqual([200, expect.stringContaining('has made its token already')])
  expect(again.text).not.toContain('id="secret"')
  expect(await query("select name from api_tokens where name = 'made once'")).toHaveLength(1)
  expect(JSON.stringify(await query('select * from idempotency_keys'))).not.toContain(secret)
  expect((await admin.post('/admin/tokens', { ...fields, name: 'made once, too' })).status).toBe(201)
})

test('a form that is refused keeps what was typed', async () => {
  const typed = { name: 'kept', scope_admin: 'yes', expires_in: 'soon', limit_read: '77' }
  const { status, text } = await admin.post('/admin/tokens', typed)
  expect(status).toBe(422)
  for (const part of ['value="kept"', 'name="scope_admin" value="yes" checked', 'value="soon"', 'value="77"'])
    expect(text).toContain(part)
  expect(text).not.toContain('name="scope_write" value="yes" checked')
})

test('a token is changed, its browsers are signed out, and it is revoked', async () => {
  const { id, token } = await service.newToken({ limits: { upload: 5 } })
  await service.call('POST', '/session', { headers: { 'sec-fetch-site': 'same-origin', token } })
  await query('insert into token_days values ($1, $2, 1234, 2, 5000000)', [
    id,
    service.clock.now().toISOString().slice(0, 10),
  ])
  const path = `/admin/tokens/${id}`
  const { text } = await admin.get(path)
  expect(text).toContain('<polyline points=')
  expect(text).toContain('1,234')
  expect(text).toContain('name="limit_upload" type="text" value="5"')
  const shown = shownIn(text)
  const changed = await admin.post(path, { ...shown, name: 'renamed', scope_read: 'yes', expires_in: '1h' })
  expect([changed.status, changed.headers.get('location')]).toEqual([303, `${BASE_URL}${path}?done=token_changed`])
  expect((await query('select name, scopes, limits from api_tokens where id = $1', [id]))[0]).toEqual({
    ...{ name: 'renamed', scopes: ['read'], limits: {} },
  })
  const refused = await admin.post(path, { ...shown, name: '', scope_read: 'yes', limit_read: '77', expires_in: '9d' })
  expect([refused.status, refused.text]).toEqual([422, expect.stringMatching(/value="77"/)])
  expect(refused.text).toMatch(/name="expires_in" type="text" value="9d"/)
  const ended = await admin.post(`${path}/sessions`)
  expect(ended.headers.get('location')).toBe(`${BASE_URL}${path}?done=sessions_ended&ended=1`)
  expect((await admin.get(`${path}?done=sessions_ended&ended=1`)).text).toContain('signed out: 1')
  expect((await admin.post(`${path}/revoke`)).status).toBe(303)
  expect((await service.get('/media', { token })).status).toBe(401)
  expect((await admin.post(`${path}/revoke`)).status).toBe(404)
  expect((await admin.get(path)).text).not.toContain('action="https://media.example/admin/tokens/')
  expect((await actsOn(id)).map(({ action }) => action).sort()).toEqual([
    ...['sessions_ended', 'token_changed', 'token_revoked'],
  ])
  for (const unknown of ['x', crypto.randomUUID()])
    expect((await admin.get(`/admin/tokens/${unknown}`)).status).toBe(404)
})

test('a form that shows an earlier state of a token changes nothing, names what changed, and keeps what is typed', async () => {
  const { id } = await service.newToken({ scopes: ['read', 'write'], limits: { upload: 5 } })
  const path = `/admin/tokens/${id}`
  const old = shownIn((await admin.get(path)).text)
  const body = JSON.stringify({ name: 'by <a program>\n', scopes: ['read'] })
  const headers = { token: admin.token, 'content-type': 'application/json' }
  expect((await service.call('PATCH', `/tokens/${id}`, { headers, body })).status).toBe(200)
  const typed = { name: 'by hand', scope_read: 'yes', scope_write: 'yes', limit_read: '77', expires_in: '9d' }
  for (const shown of [old, {}]) {
    const { status, text } = await admin.post(path, { ...shown, ...typed })
    expect(status).toBe(412)
    expect(text).toMatch(/role="alert"[^<]*changed elsewhere[^<]*Name: by &lt;a program&gt;/)
    expect(text).toMatch(/role="alert"[^<]*Scopes: read[.;<]/)
    expect(/role="alert"[^<]*Limits:/.test(text)).toBe(shown !== old)
    for (const part of ['value="by hand"', 'name="scope_write" value="yes" checked', 'value="77"', 'value="9d"'])
      expect(text).toContain(part)
  }
  const now = () => query('select name, scopes, limits from api_tokens where id = $1', [id])
  expect(await now()).toMatchObject([{ name: 'by <a program>', scopes: ['read'], limits: { upload: 5 } }])
  const { text } = await admin.post(path, { ...old, ...typed })
  expect((await admin.post(path, { ...shownIn(text), ...typed })).status).toBe(303)
  expect(await now()).toEqual([{ name: 'by hand', scopes: ['write', 'read'], limits: { read: 77 } }])
})

test('dead letters are tried again and deleted, and both are recorded', async () => {
  const dead = async () =>
    (
      await query(
        `insert into media_queue.job (name, source_name, data, source_output, source_retry_count)
          values ('extras.dead', 'extras', '{}', '{"message": "no <disk>"}', 2) returning id`,
      )
    )[0].id as string
  const [one, two] = [await dead(), await dead()]
  expect((await admin.get('/admin/queue')).text).toContain('no &lt;disk&gt;')
  expect((await admin.post(`/admin/queue/${one}`, { act: 'retry' })).headers.get('location')).toContain('done=retried')
  expect((await admin.post(`/admin/queue/${two}`, { act: 'delete' })).headers.get('location')).toContain('done=deleted')
  expect((await admin.post(`/admin/queue/${two}`, { act: 'delete' })).status).toBe(404)
  expect(await actsOn(one)).toEqual([byAdmin('dead_letter_retried')])
  expect(await actsOn(two)).toEqual([byAdmin('dead_letter_deleted')])
  expect((await admin.get('/admin/queue')).text).toContain('There is no dead letter.')
})

test('webhooks of all tokens are listed with their failures, and without the paths of their addresses', async () => {
  const { id } = await service.newToken()
  await query(
    `insert into webhooks (id, token_id, url, events, secret, created_at, failures, failing_since)
      values (gen_random_uuid(), $1, 'https://good.example/secret-path', '{media.ready}', 'plain', now() - interval '1 hour', 0, null),
        (gen_random_uuid(), $1, 'https://bad.example/secret-path', '{media.ready}', 'plain', now(), 3, now())`,
    [id],
  )
  const { text } = await admin.get('/admin/webhooks')
  expect(text).toMatch(/https:\/\/bad\.example<[\s\S]*https:\/\/good\.example</)
  expect(text).not.toContain('secret-path')
  const failing = (await admin.get('/admin/webhooks?failing=1')).text
  expect([failing.includes('bad.example'), failing.includes('good.example')]).toEqual([true, false])
})

test('a check of the files begins by its button, and the page shows that it runs', async () => {
  const begun = await admin.post('/admin/storage/check')
  expect(begun.headers.get('location')).toBe(`${BASE_URL}/admin/storage?done=check`)
  const { text } = await admin.get('/admin/storage?done=check')
  expect(text).toContain('The check has begun.')
  expect(text).toContain('<dd>runs</dd>')
  const [act] = await query("select token_id from audit_entries where action = 'storage_check_begun'")
  expect(act).toEqual({ token_id: admin.id })
})

test('settings are shown without secrets, and the audit log by its filters', async () => {
  const settings = await admin.get('/admin/settings')
  expect(settings.text).toContain('MEDIA_DATABASE_URL')
  expect(settings.text).toContain('imports may reach private networks')
  expect(settings.text).not.toMatch(/postgres(ql)?:\/\//)
  const { id } = await service.newToken()
  await admin.post(`/admin/tokens/${id}/revoke`)
  const log = (asked: string) => admin.get(`/admin/audit?${asked}`)
  expect((await log(`subject=${id}&token=&action=&from=&to=`)).text).toContain(
    '<td role="cell" data-column="Action">token_revoked</td>',
  )
  expect((await log(`subject=${id}&action=token_created`)).text).toContain('No act was found.')
  const bad = await log('token=x&from=yesterday')
  expect([bad.status, bad.text]).toEqual([200, expect.stringContaining('token must be the id of a token')])
})
