import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, onTestFinished } from 'vitest'
import { test as base, createDatabase, type TestService } from '../../../test/service.ts'
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
  quotes: `return (event #>> '{sms,otp}' || ' is your code')::integer`,
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
  'a function that %s is understood, in a transaction too, which its failure leaves usable',
  async ([name, outcome], { service }) => {
    const hooks = await hooksOf(service, name)
    expect(await outcomeOf(hooks.ask('mfa-verification', log, payload))).toEqual(outcome)
    await service.deps.db.transaction().execute(async (trx) => {
      expect(await outcomeOf(hooks.ask('mfa-verification', log, payload, { trx }))).toEqual(outcome)
      const after = await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(trx)
      const usual = await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(
        service.deps.db,
      )
      expect(after.rows).toEqual(usual.rows)
    })
  },
)

test('a function that sleeps is stopped, and leaves the transaction and its other statements their own time', async ({
  service,
}) => {
  const hooks = await hooksOf(service, 'sleeps', { [`${POINT}_TIMEOUT`]: '50ms' })
  const late = {
    ...{ status: 422, code: 'hook_timeout' },
    message: 'Failed to reach hook within maximum time of 0.050000 seconds',
  }
  expect(await outcomeOf(hooks.ask('mfa-verification', log, payload))).toEqual(late)
  await service.deps.db.transaction().execute(async (trx) => {
    expect(await outcomeOf(hooks.ask('mfa-verification', log, payload, { trx }))).toEqual(late)
    await sql`select pg_sleep(0.1)`.execute(trx)
  })
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
