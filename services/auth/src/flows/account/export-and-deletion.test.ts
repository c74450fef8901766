// GET /user/export and DELETE /user. Their demands of a proof: ../../core/freshness/ways-in.test.ts.
import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { statementsOf } from '@services/common/testing/database/statements'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freshEmail } from '../../../test/admin.ts'
import { signInAgain, withTotp } from '../../../test/second-factors.ts'
import { type Answer, type SignedIn, startTestService, type TestService } from '../../../test/service.ts'
import { addPausedReceiver } from '../../../test/upstreams/paused-receiver.ts'
import { PASSKEYS, register } from '../../../test/webauthn/passkeys.ts'
import { columnsOf, IN_USER, LISTS, type ListName, OTHER_TABLES } from '../../core/user-export/exported-tables.ts'
import { TABLES } from '../../db/tables.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    ...PASSKEYS,
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    AUTH_SELF_DELETION_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ENABLED: 'true',
  })
})
afterAll(() => service.close())

const exported = ({ auth }: Pick<SignedIn, 'auth'>) => service.get('/user/export', auth)
const deleted = ({ auth }: Pick<SignedIn, 'auth'>) => service.delete('/user', auth)
const lists = Object.keys(LISTS) as ListName[]
const placedTables = { ...LISTS, ...IN_USER }
const rowsOf = async (table: string, userId: string): Promise<Record<string, unknown>[]> =>
  (await service.deps.pool.query(`select * from ${table} where user_id = $1 order by created_at desc`, [userId])).rows

/** A user with a row in each list, in a session of aal2. */
async function withEverything(email = freshEmail()) {
  const user = await withTotp(service, email)
  await register(service, user)
  await service.post('/factors/trusted-devices', { name: 'Laptop' }, user.auth)
  await service.get('/reauthenticate', user.auth)
  await agree(user.userId)
  return user
}

/** Stores the consent of a user to a new application. */
async function agree(userId: string) {
  const client = { client_type: 'public', redirect_uris: ['https://app.example/callback'] }
  const { body } = await service.post('/admin/oauth/clients', client, service.admin)
  await service.deps.pool.query(`insert into oauth_consents select $1, $2, '["email"]', '[]', now(), now()`, [
    userId,
    body.client_id,
  ])
}

/** Names tables with a row that contains the text. */
async function tablesWith(text: string): Promise<string[]> {
  const found: string[] = []
  for (const table of TABLES) {
    const { rows } = await service.deps.pool.query(`select row_to_json(t)::text as row from ${table} t`)
    if (rows.some(({ row }) => row.includes(text))) found.push(table)
  }
  return found.toSorted()
}

/** Stores a failure of a hook that was asked about the address. */
async function signUpWithFailingHook(email: string) {
  const { pool } = service.deps
  await pool.query(`create schema app; create function app.quotes(event jsonb) returns json language sql
    as $$ select to_json((event #>> '{user,email}')::integer) $$`)
  const own = await service.with({
    AUTH_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_BEFORE_USER_CREATED_URI: 'pg-functions://postgres/app/quotes',
  })
  expect((await own.post('/signup', { email, password: 'correct horse' })).status).toBe(500)
  await own.deps.hookFailures.written()
  await own.deps.hooks.close()
  await own.close()
  expect((await pool.query('select reason from hook_failures')).rows).toEqual([{ reason: '22P02' }])
}

describe('an export', () => {
  test('places each column of the database, and each table', async () => {
    const { rows } = await service.deps.pool.query(
      `select table_name, column_name from information_schema.columns
       where table_schema = current_schema() and table_name = any ($1)`,
      [Object.keys(placedTables)],
    )
    const columns = rows.map(({ table_name, column_name }) => `${table_name}.${column_name}`)
    const placed = Object.entries(placedTables).flatMap(([table, places]) =>
      Object.keys(places).map((column) => `${table}.${column}`),
    )
    expect(placed.toSorted()).toEqual(columns.toSorted())
    expect([...Object.keys(placedTables), ...Object.keys(OTHER_TABLES)].toSorted()).toEqual(TABLES.toSorted())
  })

  test('has every row of the user and no secret', async () => {
    const user = await withEverything()
    const change = { email: freshEmail(), phone: '+491700000001', data: { full_name: 'Ada' } }
    await service.put('/user', change, user.auth)
    // Rows of messages change until they have left.
    await service.settled()
    const { status, body, text, headers } = await exported(user)
    expect(status).toBe(200)
    expect(headers['content-disposition']).toBe('attachment; filename="account.json"')
    expect(body.user).toEqual((await service.get('/user', user.auth)).body)
    expect(body.truncated).toEqual([])
    const factors = await rowsOf('factors', user.userId)
    const { rows: users } = await service.deps.pool.query('select * from users where id = $1', [user.userId])
    const secrets = [users[0].password_hash, factors[0]?.sealed_secret]
    for (const [table, places] of Object.entries<Record<string, true | string>>(IN_USER)) {
      const rows = table === 'users' ? users : await rowsOf(table, user.userId)
      const values = rows.flatMap((row) =>
        Object.entries(row).filter(([column, value]) => places[column] === true && isTextOrTime(value)),
      )
      expect(values.length).toBeGreaterThan(5)
      for (const [column, value] of values) {
        expect([table, column, text.includes(JSON.stringify(value).slice(1, -1))]).toEqual([table, column, true])
      }
    }
    for (const list of lists) {
      const rows = await rowsOf(list, user.userId)
      expect([list, rows.length]).not.toEqual([list, 0])
      const shown = rows.map((row) => Object.fromEntries(columnsOf(list).map((column) => [column, row[column]])))
      // Rows of one time have no order.
      expect(body[list].map(textOf).toSorted()).toEqual(shown.map(textOf).toSorted())
      const left = Object.keys(LISTS[list]).filter((column) => !columnsOf(list).includes(column))
      secrets.push(...rows.flatMap((row) => left.filter((column) => column !== 'user_id').map((column) => row[column])))
    }
    const forms = secrets.flatMap(formsOf)
    expect(forms.length).toBeGreaterThan(10)
    expect(forms.filter((form) => text.includes(form))).toEqual([])
  })

  test('has what others did to the user and the user did to others, without the data of those', async () => {
    const adminEmail = freshEmail()
    const { userId: adminId } = await service.signedIn(adminEmail)
    await service.put(`/admin/users/${adminId}`, { role: 'service_role' }, service.admin)
    const admin = await signInAgain(service, adminEmail)
    const email = freshEmail()
    const user = await service.signedIn(email)
    const from = { ...admin.auth, 'user-agent': 'Browser of the admin', 'x-forwarded-for': '203.0.113.77' }
    await service.put(`/admin/users/${user.userId}`, { user_metadata: { name: 'Ada' } }, from)
    const change = ({ body }: Answer) =>
      body.audit_log.find(
        ({ payload }: { payload: { action: string; traits?: { user_id?: string } } }) =>
          payload.action === 'user_modified' && payload.traits?.user_id === user.userId,
      )
    const ofUser = await exported(user)
    expect(change(ofUser)).toMatchObject({
      ip_address: '',
      payload: {
        ...{ actor_id: adminId, actor_username: 'service_role', erased: ['actor'] },
        traits: { user_id: user.userId, user_email: email },
      },
    })
    for (const foreign of [adminEmail, 'Browser of the admin', '203.0.113.77']) {
      expect(ofUser.text).not.toContain(foreign)
    }
    const ofAdmin = await exported(admin)
    expect(change(ofAdmin)).toMatchObject({
      ip_address: '203.0.113.77',
      payload: { user_agent: 'Browser of the admin', erased: ['target'], traits: { user_email: '' } },
    })
    expect(ofAdmin.text).not.toContain(email)
  })

  test('has the newest rows of a list that is too long, and says so', async () => {
    const user = await service.signedIn()
    const { pool } = service.deps
    await pool.query(
      `insert into messages (id, user_id, channel, kind, created_at, updated_at)
       select gen_random_uuid(), $1, 'mail', 'recovery', now() - i * interval '1 s', now()
       from generate_series(1, 1001) i`,
      [user.userId],
    )
    await pool.query(
      `insert into audit_log_entries (id, payload, created_at)
       select gen_random_uuid(), jsonb_build_object('actor_id', $1::text, 'action', 'token_refreshed', 'i', i),
         '2020-01-01'::timestamptz - i / 700 * interval '1 s'
       from generate_series(1, 10001) i`,
      [user.userId],
    )
    const { body } = await exported(user)
    expect(body.truncated).toEqual(['messages', 'audit_log'])
    expect(body.messages).toHaveLength(1000)
    const ids = body.audit_log.map(({ id }: { id: string }) => id)
    expect(new Set(ids).size).toBe(10_000)
    const times = body.audit_log.map(({ created_at }: { created_at: string }) => created_at)
    expect(times).toEqual(times.toSorted().toReversed())
  })

  // A log that few users fill: a plan for any user would walk all of it for one with few entries.
  test('is planned for its user', async () => {
    const user = await service.signedIn()
    const statements = await statementsOf(async () => expect((await exported(user)).status).toBe(200))
    const planned = statements.filter((text) => text.includes(PLANNED_EACH_TIME))
    const listed = planned.map((text) => /from "(\w+)"/.exec(text)?.[1])
    expect(new Set(listed)).toEqual(new Set([...lists, 'audit_log_entries']))
    const reused = statements.filter((text) =>
      /^(?!.*planned).*from "(audit_log_entries|messages|sessions)".*order by/is.test(text),
    )
    expect(reused).toEqual([])
  })

  test('is audited, and made five times an hour at most', async () => {
    const user = await service.signedIn()
    for (let count = 0; count < 5; count++) expect((await exported(user)).status).toBe(200)
    expect(await exported(user)).toMatchObject({ status: 429, body: { error_code: 'over_request_rate_limit' } })
    const { body } = await service.get('/admin/audit?query=action:account_exported&per_page=1000', service.admin)
    const own = body.filter(({ payload }: { payload: { actor_id: string } }) => payload.actor_id === user.userId)
    expect(own).toHaveLength(5)
  })
})

describe('a deletion', () => {
  test('removes all rows of the user but the audit log, and the address gets a mail', async () => {
    const receiver = await addPausedReceiver(service)
    onTestFinished(async () => void (await service.delete(`/admin/webhooks/${receiver}`, service.admin)))
    const email = freshEmail()
    await signUpWithFailingHook(email)
    const user = await withEverything(email)
    await service.settled()
    expect(await tablesWith(user.userId)).toEqual(
      expect.arrayContaining([...lists, 'webhook_deliveries', 'event_users']),
    )
    expect((await deleted(user)).status).toBe(204)
    const mail = await service.mailbox.waitFor(email, { subject: 'Your account was deleted' })
    expect(mail.text).toContain(email)
    await service.settled()
    expect(await tablesWith(email)).toEqual(['audit_log_entries'])
    // Counters of requests by id stay for an hour, and events without personal data until they are sent.
    expect(await tablesWith(user.userId)).toEqual(['audit_log_entries', 'rate_limits', 'webhook_deliveries'])
    const { body } = await service.get('/admin/audit?query=action:user_deleted', service.admin)
    expect(body[0].payload).toMatchObject({ actor_id: user.userId, actor_username: email })
  })

  test('ends every session and frees the address', async () => {
    const email = freshEmail()
    const user = await service.signedIn(email)
    const other = await service.post('/token?grant_type=password', { email, password: 'correct horse' })
    expect((await deleted(user)).status).toBe(204)
    expect(await deleted(user)).toMatchObject({ status: 403, body: { error_code: 'user_not_found' } })
    const refreshed = await service.post('/token?grant_type=refresh_token', other.body)
    expect(refreshed).toMatchObject({ status: 400, body: { error_code: 'refresh_token_not_found' } })
    expect((await service.signedIn(email)).userId).not.toBe(user.userId)
  })

  test('is refused with a token whose session has ended', async () => {
    const user = await service.signedIn()
    await service.post('/logout', {}, user.auth)
    expect(await deleted(user)).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
    expect(await exported(user)).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
  })

  test('is disabled unless a setting enables it, and an anonymous user then needs no proof', async () => {
    const usual = await service.with({
      AUTH_SELF_DELETION_ENABLED: 'false',
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    })
    const { body } = await usual.post('/signup')
    const auth = { authorization: `Bearer ${body.access_token}` }
    service.clock.advance({ seconds: 16 * 60 })
    expect(await usual.delete('/user', auth)).toMatchObject({ status: 404, body: { error_code: 'feature_disabled' } })
    expect(await usual.delete('/user')).toMatchObject({ status: 401 })
    expect((await usual.get('/user', auth)).status).toBe(200)
    expect((await deleted({ auth })).status).toBe(204)
    await usual.close()
  })
})

const isTextOrTime = (value: unknown) => typeof value === 'string' || value instanceof Date

const textOf = (row: unknown) => JSON.stringify(row)

/** Forms in which a text could contain a secret; short values occur by chance. */
function formsOf(secret: unknown): string[] {
  const forms = Buffer.isBuffer(secret)
    ? (['hex', 'base64', 'base64url'] as const).map((encoding) => secret.toString(encoding))
    : [String(secret)]
  return forms.filter((form) => form.length >= 16)
}
