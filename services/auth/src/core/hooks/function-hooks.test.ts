import { statementsOf } from '@services/common/testing/database/statements'
import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, onTestFinished } from 'vitest'
import { test as base, createDatabase, startTestService, type TestService } from '../../../test/service.ts'
import type { AuditLog } from '../audit/audit.ts'

const POINT = 'AUTH_HOOK_MFA_VERIFICATION_ATTEMPT'

/** Bodies of functions by name, in PL/pgSQL; each takes `event` and returns json. */
const FUNCTIONS: Record<string, string> = {
  answers: `return json_build_object('decision', 'reject', 'message', event #>> '{metadata,name}')`,
  answers_null: 'return null',
  answers_json_null: `return 'null'::json`,
  answers_array: `return '[1]'::json`,
  refuses: `return '{"error":{"http_code":409,"message":"not you"}}'::json`,
  refuses_quietly: `return '{"error":{"http_code":409,"message":""}}'::json`,
  raises: `raise exception 'secret of row 5'`,
  raises_status: `raise exception 'not today' using errcode = 'PT423'`,
  raises_success: `raise exception 'not today' using errcode = 'PT200'`,
  quotes_user: `return (event ->> 'user_id')::integer`,
  raises_away: `raise exception 'no %', event #>> '{user,email}' using errcode = '57P01'`,
  quotes: `return (event #>> '{sms,otp}' || ' is your code')::integer`,
  records: 'insert into app.facts values (3); return null',
  violates: 'insert into app.facts values (1), (1); return null',
  sleeps: 'perform pg_sleep(60); return null',
}

const createFunctions = async ({ pool }: TestService['deps']) => {
  const bodies = Object.entries(FUNCTIONS).map(
    ([name, body]) =>
      `create function app.${name}(event jsonb) returns json language plpgsql as $$ begin ${body}; end $$;`,
  )
  await pool.query(`create schema app; create table app.facts (id integer primary key); ${bodies.join('\n')}
    create function app.as_json(event json) returns jsonb language sql as $$ select event::jsonb -> 'nothing' $$;
    create function app.as_text(event json) returns text language sql as $$ select '{"decision":"reject"}' $$;
    create function app.as_words(event json) returns text language sql as $$ select 'reject' $$`)
}

const test = base.extend<object & { functions: undefined }>({
  functions: [
    async ({ service }, use) => {
      await createFunctions(service.deps)
      await use(undefined)
    },
    { scope: 'file', auto: true },
  ],
})

const log = { info() {}, warn() {} } as unknown as AuditLog
const payload = { user_id: 'u', factor_id: 'f', factor_type: 'totp', valid: true }

async function hooksOf(service: TestService, name: string, settings: Record<string, string> = {}) {
  const own = await service.with({
    [`${POINT}_ENABLED`]: 'true',
    [`${POINT}_URI`]: `pg-functions://postgres/app/${name}`,
    ...settings,
  })
  onTestFinished(() => own.close())
  onTestFinished(() => own.deps.hooks.close())
  return own.deps.hooks
}

const outcomeOf = (asked: Promise<unknown>) =>
  asked.then(
    (answer) => ({ answer }),
    ({ status, code, message }) => ({ status, code, message }),
  )

const failed = { status: 500, code: 'unexpected_failure', message: 'Error running hook' }
const unfit = { ...failed, message: 'Error unmarshaling JSON output.' }
const refused = (status: number, message: string) => ({ status, code: 'hook_rejected', message })

test.for<[string, object]>([
  ['answers', { answer: { decision: 'reject', message: 'mfa-verification' } }],
  ['answers_null', { answer: {} }],
  ['answers_json_null', { answer: {} }],
  ['as_json', { answer: {} }],
  ['as_text', { answer: { decision: 'reject' } }],
  ['as_words', unfit],
  ['answers_array', unfit],
  ['refuses', refused(409, 'not you')],
  ['refuses_quietly', { answer: {} }],
  ['raises', failed],
  ['raises_status', refused(423, 'not today')],
  ['raises_success', refused(500, 'not today')],
  ['violates', failed],
  ['is_missing', failed],
])(
  'a function that %s is understood, in a transaction too, whose other statements keep their time',
  async ([name, outcome], { service }) => {
    const hooks = await hooksOf(service, name)
    expect(await outcomeOf(hooks.ask('mfa-verification', log, payload))).toEqual(outcome)
    const limitIn = async (db: typeof service.deps.db) =>
      (await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(db)).rows
    const within = service.deps.db.transaction().execute(async (trx) => {
      let answer: object | undefined
      const statements = await statementsOf(async () => {
        answer = await hooks.ask('mfa-verification', log, payload, { trx })
      })
      expect(statements).toHaveLength(2)
      expect(await limitIn(trx)).toEqual(await limitIn(service.deps.db))
      return answer
    })
    expect(await outcomeOf(within)).toEqual(outcome)
  },
)

const LATE = {
  ...{ status: 422, code: 'hook_timeout' },
  message: 'Failed to reach hook within maximum time of 0.050000 seconds',
}

test('a function that sleeps is stopped, in a transaction too', async ({ service }) => {
  const hooks = await hooksOf(service, 'sleeps', { [`${POINT}_TIMEOUT`]: '50ms' })
  expect(await outcomeOf(hooks.ask('mfa-verification', log, payload))).toEqual(LATE)
  const within = service.deps.db.transaction().execute((trx) => hooks.ask('mfa-verification', log, payload, { trx }))
  expect(await outcomeOf(within)).toEqual(LATE)
})

test.for<[string, object]>([
  ['records', { answer: undefined }],
  ['raises_status', { answer: undefined }],
  ['raises', failed],
  ['sleeps', LATE],
])(
  'a function that %s leaves no trace of a hidden account, and the transaction and its other statements their own time',
  async ([name, outcome], { service }) => {
    const own = await service.with({
      AUTH_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
      AUTH_HOOK_BEFORE_USER_CREATED_URI: `pg-functions://postgres/app/${name}`,
      AUTH_HOOK_BEFORE_USER_CREATED_TIMEOUT: name === 'sleeps' ? '50ms' : '15s',
    })
    onTestFinished(() => own.close())
    const { hooks, db } = own.deps
    const hide = (trx?: typeof db) => outcomeOf(hooks.hide('before-user-created', log, { user: {} } as never, trx))
    expect(await hide()).toEqual(outcome)
    await db.transaction().execute(async (trx) => {
      expect(await hide(trx)).toEqual(outcome)
      const { rows } = await sql<{ facts: number }>`
        select count(*)::int as facts, pg_sleep(0.1) from app.facts`.execute(trx)
      expect(rows).toMatchObject([{ facts: 0 }])
    })
  },
)

test('functions that hang outside of a transaction take half of the pool, and more than its queue are refused', async () => {
  const service = await startTestService({
    [`${POINT}_ENABLED`]: 'true',
    [`${POINT}_URI`]: 'pg-functions://postgres/app/hangs',
    [`${POINT}_TIMEOUT`]: '15s',
    AUTH_DB_MAX_POOL_SIZE: '2',
    AUTH_WORKERS_ENABLED: 'false',
  })
  onTestFinished(() => service.close())
  const { pool, hooks } = service.deps
  await pool.query(`create schema app; create function app.hangs(event jsonb) returns jsonb language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(2); return null; end $$`)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(2)')
  const asked = Array.from({ length: 21 }, () => hooks.ask('mfa-verification', log, payload))
  await expect(hooks.ask('mfa-verification', log, payload)).rejects.toMatchObject({
    ...{ status: 503, code: 'over_capacity', retryAfterSeconds: 2 },
  })
  await holder.query('select pg_advisory_unlock(2)')
  holder.release()
  expect(await Promise.all(asked)).toEqual(asked.map(() => ({})))
  expect(pool.totalCount).toBe(2)
})

test('functions, and transactions that ask them, run at once where the pool has no limit', async ({ service }) => {
  const hooks = await hooksOf(service, 'answers', {
    AUTH_DB_MAX_POOL_SIZE: '0',
    AUTH_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED: 'true',
    AUTH_HOOK_CUSTOM_ACCESS_TOKEN_URI: 'pg-functions://postgres/app/answers',
  })
  const ask = () => hooks.ask('mfa-verification', log, payload)
  const asked = Array.from({ length: 30 }, (_, index) => (index % 2 ? ask() : hooks.runAsking(async () => ({}))))
  expect(await Promise.all(asked)).toHaveLength(30)
})

test('a function that sends leaves no code of its question in the log', async ({ service }) => {
  const own = await service.with({
    AUTH_HOOK_SEND_SMS_ENABLED: 'true',
    AUTH_HOOK_SEND_SMS_URI: 'pg-functions://postgres/app/quotes',
  })
  onTestFinished(() => own.close())
  onTestFinished(() => own.deps.hooks.close())
  const lines: unknown[] = []
  const keeping = { info() {}, warn: (facts: unknown) => void lines.push(facts) } as unknown as AuditLog
  const question = { user: {}, sms: { otp: '862578' } } as never
  await outcomeOf(own.deps.hooks.ask('send-sms', keeping, question))
  expect(lines).toMatchObject([{ hook: 'send-sms', reason: '22P02' }])
})

test('the error of a function is in the log, and only its SQLSTATE is stored: the text may quote the user', async ({
  service,
}) => {
  const own = await service.with({
    [`${POINT}_ENABLED`]: 'true',
    [`${POINT}_URI`]: 'pg-functions://postgres/app/quotes_user',
    AUTH_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_BEFORE_USER_CREATED_URI: 'pg-functions://postgres/app/raises_away',
  })
  onTestFinished(() => own.close())
  onTestFinished(() => own.deps.hooks.close())
  const lines: unknown[] = []
  const keeping = { info() {}, warn: (facts: unknown) => void lines.push(facts) } as unknown as AuditLog
  const user = { email: 'ada.private@example.com' }
  const ask = own.deps.hooks.ask
  await outcomeOf(ask('mfa-verification', keeping, { ...payload, user_id: user.email }, { id: 'quotes' }))
  await outcomeOf(ask('before-user-created', keeping, { user } as never, { id: 'is away' }))
  await own.deps.hookFailures.written()
  expect(lines.map((line) => JSON.stringify(line).includes('ada.private'))).toEqual([true, true])
  const { body, text } = await own.get('/admin/hooks', own.admin)
  const stored = body.hooks.flatMap(({ failures }: { failures: object[] }) => failures)
  expect(stored).toContainEqual(expect.objectContaining({ question_id: 'quotes', reason: '22P02' }))
  expect(stored).toContainEqual(expect.objectContaining({ question_id: 'is away', reason: '57P01' }))
  expect(text).not.toContain('ada.private')
})

describe('a function of another database', () => {
  test('is asked there, outside of any transaction', async ({ service }) => {
    const other = await createDatabase()
    onTestFinished(other.drop)
    const client = new pg.Client(other.url)
    await client.connect()
    await client.query(`create schema app; create function app.answers(event jsonb) returns json language sql
      as $$ select json_build_object('message', current_database()) $$`)
    await client.end()
    const hooks = await hooksOf(service, 'answers', { [`${POINT}_DATABASE_URL`]: other.url })
    expect(hooks.isWithin('mfa-verification')).toBe(false)
    const name = new URL(other.url).pathname.slice(1)
    await service.deps.db.transaction().execute(async (trx) => {
      expect(await hooks.ask('mfa-verification', log, payload, { trx })).toEqual({ message: name })
    })
  })

  test('that is away is a failure of the database', async ({ service }) => {
    const away = 'postgres://nobody@127.0.0.1:1/nothing'
    const hooks = await hooksOf(service, 'answers', { [`${POINT}_DATABASE_URL`]: away })
    await expect(hooks.ask('mfa-verification', log, payload)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
