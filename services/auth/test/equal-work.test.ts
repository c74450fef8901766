// A stranger's request for an address costs the same whether or not it has an account: the same statements, a message
// and its rendering. bench/parity.ts and bench/telling.ts measure its time.
import { statementsOf, statementsWithJobs } from '@services/common/testing/database/statements'
import { expect, onTestFinished, vi } from 'vitest'
import { createMailer } from '../src/adapters/mail/smtp.ts'
import { TABLES } from '../src/db/tables.ts'
import { startProviderSignIns } from './provider-sign-in.ts'
import { type TestService, test } from './service.ts'
import { startReceiver, startSendingService } from './upstreams/hook-receiver.ts'

/** Statements of the queue and its notifications, limits, checks and timers. */
const ELSEWHERE = /auth_queue|pgboss|pg_notify|transaction_read_only|rate_limits|from "webhooks/i

const verbOf = (text: string) => /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() as string
const isWrite = (text: string) => /^(insert|update|delete|with)$/.test(verbOf(text))

test.for<[string, object, 'confirmed' | 'pending']>([
  ['/recover', {}, 'confirmed'],
  ['/otp', { create_user: false }, 'confirmed'],
  ['/resend', { type: 'signup' }, 'pending'],
])(
  'POST %s costs as many statements and writes, and one message, for an account and for nobody',
  async ([path, body, gets], { service }) => {
    const emailOf = (who: string) => `${who}-${path.slice(1)}@example.com`
    await service.signedIn(emailOf('confirmed'))
    await service.post('/signup', { email: emailOf('pending'), password: 'correct horse' })
    await service.mailbox.waitFor(emailOf('pending'))
    service.clock.advance({ seconds: 901 })
    await service.settled()
    const cost = async (email: string) => {
      service.clock.advance({ seconds: 1 })
      const since = service.clock.now().toISOString()
      const texts = await statementsWithJobs(
        service,
        async () => {
          expect((await service.post(path, { email, ...body })).status).toBe(200)
        },
        ELSEWHERE,
      )
      const { rows } = await service.deps.pool.query('select state from messages where created_at >= $1', [since])
      return { states: rows.map(({ state }) => state), total: texts.length, writes: texts.filter(isWrite).length }
    }
    const known = await cost(emailOf(gets))
    const unknown = await cost(emailOf('unknown'))
    expect([known.states, unknown.states]).toEqual([['sent'], ['dropped']])
    expect(unknown).toEqual({ ...known, states: ['dropped'] })
    if (gets === 'pending') expect(await cost(emailOf('confirmed'))).toEqual(unknown)
    expect(service.mailbox.messages({ to: emailOf('unknown') })).toEqual([])
    const users = await service.deps.db.selectFrom('users').select('email').execute()
    expect(users.map(({ email }) => email)).not.toContain(emailOf('unknown'))
  },
)

test('a sign-up, and a first sign-in at a provider, send as many statements, whether or not an account has the address', async () => {
  const all = await startProviderSignIns()
  const { service } = all
  const requests: [name: string, send: (email: string) => Promise<unknown>][] = [
    ['a sign-up', (email) => service.post('/signup', { email, password: 'correct horse' })],
    ['a sign-in at a provider', (email) => all.signIn('spotify', { id: email, email })],
  ]
  for (const [name, send] of requests) {
    const cost = async (who: 'known' | 'unknown') => {
      const email = `${who}-${name.length}@example.com`
      if (who === 'known') await service.signedIn(email)
      await service.settled()
      // Only the request counts, not its worker's half.
      const queue = vi.spyOn(service.deps.queue, 'send').mockResolvedValue()
      const texts = await statementsOf(() => send(email))
      const sent = queue.mock.calls.length
      queue.mockRestore()
      return { sent, statements: texts.length }
    }
    const unknown = await cost('unknown')
    expect(unknown.sent).toBe(1)
    expect(unknown.statements).toBeGreaterThan(0)
    expect({ name, ...(await cost('known')) }).toEqual({ name, ...unknown })
  }
  await all.close()
})

test.for(['by HTTP', 'a function'])(
  'a sign-up sends as many statements, whether or not an account has the address, with hooks of users: %s',
  async (kind, { service }) => {
    const receiver = await startReceiver()
    onTestFinished(() => receiver.close())
    await service.deps.pool.query(`create or replace function public.admit(event jsonb) returns jsonb language sql
      as 'select null::jsonb'`)
    const uri = kind === 'a function' ? 'pg-functions://postgres/public/admit' : receiver.url
    const hook = (point: string) => ({
      [`AUTH_HOOK_${point}_USER_CREATED_ENABLED`]: 'true',
      [`AUTH_HOOK_${point}_USER_CREATED_URI`]: uri,
      [`AUTH_HOOK_${point}_USER_CREATED_UNSIGNED`]: String(kind === 'by HTTP'),
    })
    const hooked = await service.with({ ...hook('BEFORE'), ...(kind === 'by HTTP' && hook('AFTER')) })
    onTestFinished(() => hooked.close())
    const cost = async (who: string) => {
      const email = `${who}-${kind.length}@hooked.example.com`
      if (who === 'known') await service.signedIn(email)
      await service.settled()
      const texts = await statementsOf(async () => {
        expect((await hooked.post('/signup', { email, password: 'correct horse' })).status).toBe(200)
      })
      await service.settled()
      return texts.length
    }
    const unknown = await cost('unknown')
    expect(await cost('known')).toBe(unknown)
  },
)

test.for(['with a sign-up that waits', 'without one'])(
  'a refused sign-in hashes as often and sends as many statements for any account and for nobody, %s',
  async (state, { service }) => {
    const emailOf = (who: string) => `${who}-${state.length}@example.com`
    await service.signedIn(emailOf('confirmed'))
    await service.post('/admin/users', { email: emailOf('passwordless'), email_confirm: true }, service.admin)
    const password = 'a stranger chose this'
    const cost = async (who: string) => {
      const email = emailOf(who)
      service.clock.advance({ seconds: 61 })
      if (state === 'with a sign-up that waits') await service.post('/signup', { email, password })
      await service.settled()
      const hash = vi.spyOn(service.deps.passwords, 'hash')
      const verify = vi.spyOn(service.deps.passwords, 'verify')
      const texts = await statementsOf(async () => {
        expect((await service.post('/token?grant_type=password', { email, password })).status).toBe(400)
      })
      const hashes = [hash, verify].map(({ mock }) => mock.calls.length)
      hash.mockRestore()
      verify.mockRestore()
      return { hashes, statements: texts.length }
    }
    const unknown = await cost('unknown')
    expect(unknown.statements).toBeGreaterThan(0)
    expect(unknown.hashes).toEqual(state === 'without one' ? [0, 1] : [1, 1])
    for (const who of ['confirmed', 'passwordless']) expect(await cost(who)).toEqual(unknown)
  },
)

/** Rows that were inserted, updated and deleted for a request, in all tables but the queue's and the limits'. */
async function rowsWritten({ deps: { pool } }: TestService, ask: () => Promise<unknown>): Promise<number> {
  const tables = TABLES.filter((table) => table !== 'rate_limits')
  await pool.query(`create sequence writes;
    create function count_write() returns trigger language plpgsql as $$begin perform nextval('writes'); return null; end$$;
    ${tables.map((table) => `create trigger writes after insert or update or delete on ${table} for each row execute function count_write()`).join(';')}`)
  await ask()
  const { rows } = await pool.query(`select nextval('writes')::int - 1 as written`)
  await pool.query('drop function count_write cascade; drop sequence writes')
  return rows[0].written
}

test.for<[string, object]>([
  ['/recover', {}],
  ['/otp', { create_user: false }],
])('POST %s writes as many rows for an account that waits for its proof', async ([path, body], { service }) => {
  const emailOf = (who: string) => `waits-${who}-${path.slice(1)}@example.com`
  await service.signedIn(emailOf('confirmed'))
  await service.post('/signup', { email: emailOf('pending'), password: 'correct horse' })
  await service.mailbox.waitFor(emailOf('pending'))
  await service.settled()
  const asker = await service.with({})
  // Only the request counts, not its worker's half.
  const send = vi.spyOn(asker.deps.queue, 'send').mockResolvedValue()
  try {
    const written = (who: string) =>
      rowsWritten(service, async () => {
        expect((await asker.post(path, { email: emailOf(who), ...body })).status).toBe(200)
      })
    const [pending, confirmed, unknown] = [
      await written('pending'),
      await written('confirmed'),
      await written('nobody'),
    ]
    expect([confirmed, unknown]).toEqual([pending, pending])
    expect(send).toHaveBeenCalledTimes(3)
  } finally {
    send.mockRestore()
    await asker.close()
  }
})

test.for<[string, object, 'confirmed' | 'pending']>([
  ['/recover', {}, 'confirmed'],
  ['/otp', { create_user: false }, 'confirmed'],
  ['/resend', { type: 'signup' }, 'pending'],
])(
  'POST %s and its worker write as many rows for an account and for nobody, with whatever code challenges',
  async ([path, body, gets], { service }) => {
    const emailOf = (who: string) => `rows-${who}-${path.slice(1)}@example.com`
    if (gets === 'confirmed') await service.signedIn(emailOf(gets))
    else await service.post('/signup', { email: emailOf(gets), password: 'correct horse' })
    await service.settled()
    const challenges = ['a', 'b', 'b', undefined, undefined, 'c']
    const written: Record<string, number[]> = { [gets]: [], nobody: [] }
    for (const letter of challenges) {
      service.clock.advance({ seconds: 901 })
      for (const [who, rows] of Object.entries(written)) {
        const pkce = letter && { code_challenge: letter.repeat(43), code_challenge_method: 's256' }
        const ask = async () => {
          expect((await service.post(path, { email: emailOf(who), ...body, ...pkce })).status).toBe(200)
          await service.settled()
        }
        rows.push(await rowsWritten(service, ask))
      }
    }
    expect(written.nobody).toEqual(written[gets])
  },
)

test('a mail that a hook sends costs as many statements without an account, and its question is made and signed, too', async () => {
  const receiver = await startReceiver()
  const service = await startSendingService(receiver)
  const { auth } = await service.signedIn('known@example.com')
  // More to read about the account, in as many statements.
  await service.put('/user', { email: 'changes@example.com' }, auth)
  await service.settled()
  receiver.forget()
  const asked = vi.spyOn(service.deps.hooks, 'ask')
  const cost = async (email: string) => {
    asked.mockClear()
    const texts = await statementsWithJobs(
      service,
      async () => {
        expect((await service.post('/recover', { email })).status).toBe(200)
      },
      ELSEWHERE,
    )
    const questions = asked.mock.calls.map(([point, , , how]) => [point, how?.isPretended])
    return { statements: texts.length, writes: texts.filter(isWrite).length, questions }
  }
  const known = await cost('known@example.com')
  expect(known.questions).toEqual([['send-email', false]])
  expect(await cost('nobody@example.com')).toEqual({ ...known, questions: [['send-email', true]] })
  expect(receiver.questions().map(({ user }) => user.email)).toEqual(['known@example.com'])
  await service.close()
  await receiver.close()
})

test('a pretended mail is composed and handed to no server', async ({ service }) => {
  const { smtp } = service.deps.config
  const mailer = createMailer({ ...smtp, port: 1 })
  const mail = { kind: 'recovery', to: 'pretended@example.com', subject: 's', html: '<p>h</p>', text: 't\n.\nend' }
  const sent = await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => mailer.send({ id, ...mail, isPretended: true })),
  )
  expect(sent).toHaveLength(6)
  // Composing refuses to read a file, and nothing before it does.
  const broken = { ...mail, html: { path: '/dev/null' } as unknown as string }
  await expect(mailer.send({ id: 'h', ...broken, isPretended: true })).rejects.toThrow()
  await expect(mailer.send({ id: 'g', ...mail })).rejects.toThrow('mail server')
  mailer.close()
})

test('a job begins at a random moment of half a second, its message all the same', async ({ service }) => {
  const moments: number[] = []
  const delayed = await service.with({})
  delayed.deps.delayMs = () => moments.push(30) && 30
  expect((await delayed.post('/otp', { email: 'delayed@example.com' })).status).toBe(200)
  await service.mailbox.waitFor('delayed@example.com')
  expect(moments).toEqual([30])
})

test('a message that only a known user can ask for does not wait', async ({ service }) => {
  const moments: number[] = []
  const prompt = await service.with({ AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true' })
  prompt.deps.delayMs = () => moments.push(30) && 30
  const email = 'prompt@example.com'
  const { auth } = await prompt.signedIn(email)
  expect((await prompt.get('/reauthenticate', auth)).status).toBe(200)
  const nonce = await service.mailbox.waitFor(email)
  expect((await prompt.put('/user', { password: 'a new horse' }, auth)).status).toBe(200)
  await service.mailbox.waitFor(email, { after: nonce })
  expect(moments).toEqual([])
})
