// Late repeats of a refresh token: an answer was lost, or a page could not store it (core/sessions/refresh-reuse.ts).
import { statementsOf } from '@services/common/testing/database/statements'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { type SignedIn, startTestService, type TestService, test } from '../../../test/service.ts'

/** Null sends no such header. */
interface From {
  address?: string | null
  agent?: string | null
}

const HEADER = 'x-real-address'
const OWNER: From = { address: '192.0.2.1', agent: 'Site/1.0' }
const OTHER_AGENT: From = { agent: 'Thief/1.0' }
const REUSED = { status: 400, body: { error_code: 'refresh_token_already_used' } }
const GONE = { status: 400, body: { error_code: 'refresh_token_not_found' } }

function refresh(service: TestService, refresh_token: string, from: From = {}) {
  const { address, agent } = { ...OWNER, ...from }
  // app.inject would send a user agent of its own.
  const headers = { 'user-agent': agent ?? '', ...(address ? { [HEADER]: address, 'x-forwarded-for': address } : {}) }
  return service.post('/token?grant_type=refresh_token', { refresh_token }, headers)
}

/** A user whose token was replaced longer ago than the interval. */
async function replaced(service: TestService, from?: From) {
  const signedIn = await service.signedIn()
  const { refreshToken: parent, userId } = signedIn
  const child: string = (await refresh(service, parent, from)).body.refresh_token
  service.clock.advance({ seconds: 11 })
  const row = () => service.deps.db.selectFrom('sessions').selectAll().where('user_id', '=', userId).executeTakeFirst()
  return { ...signedIn, parent, child, row }
}

const auditedOf = async ({ deps: { db } }: TestService, { userId }: SignedIn) => {
  const entries = await db.selectFrom('audit_log_entries').select(['payload', 'ip_address']).execute()
  return entries
    .filter(({ payload }) => payload.actor_id === userId && payload.action === 'token_repeated')
    .map(({ payload: { log_type, traits }, ip_address }) => ({ log_type, traits, ip_address }))
}

let trusting: TestService
let replica: TestService
beforeAll(async () => {
  trusting = await startTestService({ AUTH_RATE_LIMIT_HEADER: HEADER, AUTH_RATE_LIMIT_TOKEN_REFRESH: '100000' })
  replica = await startTestService(
    {
      AUTH_DATABASE_URL: trusting.deps.config.database.url,
      AUTH_WORKERS_ENABLED: 'false',
      AUTH_RATE_LIMIT_HEADER: HEADER,
      AUTH_RATE_LIMIT_TOKEN_REFRESH: '100000',
    },
    trusting.clock,
  )
})
afterAll(async () => {
  await replica.close()
  await trusting.close()
})

describe('after its interval a token is used again', () => {
  test.for<[string, From, From, boolean]>([
    ['by the client that has its successor', OWNER, OWNER, true],
    ['from another address', OWNER, { address: '192.0.2.2' }, false],
    ['by another agent', OWNER, OTHER_AGENT, false],
    ['by another agent from another address', OWNER, { address: '192.0.2.2', ...OTHER_AGENT }, false],
    ['without an agent', OWNER, { agent: null }, false],
    ['without an agent, as before', { agent: null }, { agent: null }, true],
    ['from another address of the same network', { address: '2001:db8::1' }, { address: '2001:db8::2:1' }, true],
    ['from another network', { address: '2001:db8::1' }, { address: '2001:db8:0:1::1' }, false],
    ['from IPv4 instead of IPv6', { address: '2001:db8::1' }, OWNER, false],
    ['from IPv6 instead of IPv4', OWNER, { address: '2001:db8::1' }, false],
    ['from an address in another spelling', OWNER, { address: '[::ffff:192.0.2.1]:443' }, true],
    ['past the proxy that knows its address', OWNER, { address: null }, false],
    ['with a header that holds no address', OWNER, { address: 'unknown' }, false],
  ])('%s', async ([, first, second, isSame]) => {
    const { parent, child, row } = await replaced(trusting, first)
    const again = await refresh(trusting, parent, second)
    if (!isSame) {
      expect(again).toMatchObject(REUSED)
      expect(await refresh(trusting, child, first)).toMatchObject(GONE)
      return
    }
    expect([again.status, again.body.refresh_token]).toEqual([200, child])
    expect(await row()).toMatchObject({ refresh_counter: 1, repeats: 1 })
    expect((await refresh(trusting, child, second)).status).toBe(200)
  })

  test.for<[string, From, boolean]>([
    ['another address, which may be that of a proxy or made up', { address: '192.0.2.2' }, true],
    ['another agent', OTHER_AGENT, false],
  ])('without a trusted header, from %s', async ([, second, isSame], { service }) => {
    const { parent, child } = await replaced(service)
    const again = await refresh(service, parent, second)
    if (!isSame) return expect(again).toMatchObject(REUSED)
    expect([again.status, again.body.refresh_token]).toEqual([200, child])
  })

  test('with the header of forwarded clients, from there', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SECURITY_SB_FORWARDED_FOR_ENABLED: 'true' })
    const from = (refresh_token: string, address: string) =>
      service.post('/token?grant_type=refresh_token', { refresh_token }, { 'sb-forwarded-for': address })
    const { refreshToken } = await service.signedIn()
    const { refresh_token: child } = (await from(refreshToken, '192.0.2.1')).body
    service.clock.advance({ seconds: 86_400 })
    expect((await from(refreshToken, '192.0.2.1')).body.refresh_token).toBe(child)
    expect(await from(refreshToken, '192.0.2.2')).toMatchObject(REUSED)
    await service.close()
  })
})

test('a repeat is audited, changes no time, and gives an access token that works', async () => {
  const owner = await replaced(trusting)
  const before = await owner.row()
  trusting.clock.advance({ seconds: 2 * 86_400 })
  const { body } = await refresh(trusting, owner.parent)
  expect(await owner.row()).toEqual({ ...before, repeats: 1 })
  expect(await auditedOf(trusting, owner)).toEqual([
    { log_type: 'token', traits: { session_id: before?.id }, ip_address: OWNER.address },
  ])
  expect((await trusting.get('/user', { authorization: `Bearer ${body.access_token}` })).body.id).toBe(owner.userId)
})

test('a repeat within the interval is none of these, and makes its client no owner', async () => {
  const owner = await trusting.signedIn()
  await refresh(trusting, owner.refreshToken)
  trusting.clock.advance({ seconds: 5 })
  expect((await refresh(trusting, owner.refreshToken, OTHER_AGENT)).status).toBe(200)
  expect(await auditedOf(trusting, owner)).toEqual([])
  trusting.clock.advance({ seconds: 6 })
  expect((await refresh(trusting, owner.refreshToken)).status).toBe(200)
  expect(await refresh(trusting, owner.refreshToken, OTHER_AGENT)).toMatchObject(REUSED)
})

test('once the successor is refreshed, its parent is refused to its own client too', async () => {
  const { parent, child } = await replaced(trusting)
  expect((await refresh(trusting, parent)).status).toBe(200)
  const { refresh_token: next } = (await refresh(trusting, child)).body
  expect(await refresh(trusting, parent)).toMatchObject(REUSED)
  expect(await refresh(trusting, next)).toMatchObject(GONE)
})

test('a token is repeated a hundred times at most, and its successor as often', async () => {
  const { parent, child, userId, row } = await replaced(trusting)
  const left = (repeats: number) =>
    trusting.deps.db.updateTable('sessions').set({ repeats }).where('user_id', '=', userId).execute()
  await left(99)
  expect((await refresh(trusting, parent)).status).toBe(200)
  expect((await refresh(trusting, child)).status).toBe(200)
  expect(await row()).toMatchObject({ refresh_counter: 2, repeats: 0 })
  trusting.clock.advance({ seconds: 11 })
  await left(95)
  const services = [trusting, replica]
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) => refresh(services[index % 2] as TestService, child)),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(5).fill(200), ...Array(5).fill(400)])
  expect(await row()).toBeUndefined()
})

test('without rotation a repeat from elsewhere is refused, and the session lives', async () => {
  const service = await trusting.with({ AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' })
  const { parent, child } = await replaced(service)
  expect(await refresh(service, parent, OTHER_AGENT)).toMatchObject(REUSED)
  expect((await refresh(service, parent)).body.refresh_token).toBe(child)
  await service.close()
})

describe('a late repeat gets no more than the successor would: its session', () => {
  const bannedUntil = () => new Date(trusting.clock.now().getTime() + 60_000)
  test.for<[string, Record<string, string>, (service: TestService, owner: SignedIn) => Promise<unknown>, string]>([
    ['was signed out', {}, (service, { auth }) => service.post('/logout', {}, auth), 'refresh_token_not_found'],
    [
      'is that of a banned user',
      {},
      ({ deps: { db } }, { userId }) =>
        db.updateTable('users').set({ banned_until: bannedUntil() }).where('id', '=', userId).execute(),
      'user_banned',
    ],
    [
      'is past its time box',
      { AUTH_SESSIONS_TIMEBOX: '1h' },
      async ({ clock }) => clock.advance({ seconds: 3_600 }),
      'session_expired',
    ],
    [
      'was not refreshed for too long, however often it was repeated',
      { AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' },
      async (service, { refreshToken }) => {
        service.clock.advance({ seconds: 3_500 })
        expect((await refresh(service, refreshToken)).status).toBe(200)
        service.clock.advance({ seconds: 100 })
      },
      'session_expired',
    ],
    [
      'was replaced by a newer sign-in',
      { AUTH_SESSIONS_SINGLE_PER_USER: 'true' },
      async ({ deps: { db } }, { userId }) => {
        const session = await db
          .selectFrom('sessions')
          .selectAll()
          .where('user_id', '=', userId)
          .executeTakeFirstOrThrow()
        const { id: _, amr, ...row } = session
        const created_at = trusting.clock.now()
        const id = trusting.deps.newRowId()
        await db
          .insertInto('sessions')
          .values({ ...row, id, amr: JSON.stringify(amr), created_at })
          .execute()
      },
      'session_expired',
    ],
  ])('%s', async ([, settings, end, code]) => {
    const service = await trusting.with(settings)
    const owner = await replaced(service)
    await end(service, owner)
    expect((await refresh(service, owner.parent)).body.error_code).toBe(code)
    await service.close()
  })
})

test('a refresh and a late repeat are one statement each', async () => {
  const { parent, child } = await replaced(trusting)
  for (const token of [parent, child]) {
    const texts = await statementsOf(() => refresh(trusting, token))
    expect(texts.filter((text) => /sessions/.test(text))).toHaveLength(1)
    expect(texts.filter((text) => /\b(users|audit_log_entries)\b/.test(text))).toHaveLength(1)
  }
})

describe('at two replicas at once', () => {
  const both = () => [trusting, replica]

  test('late repeats of one token get one successor and are all counted', async () => {
    const owner = await replaced(trusting)
    const services = Array.from({ length: 10 }, both).flat()
    const answers = await Promise.all(services.map((service) => refresh(service, owner.parent)))
    expect(answers.map(({ status, body }) => [status, body.refresh_token])).toEqual(Array(20).fill([200, owner.child]))
    expect(await owner.row()).toMatchObject({ refresh_counter: 1, repeats: 20 })
    expect(await auditedOf(trusting, owner)).toHaveLength(20)
  })

  // Whichever comes first: the repeat finds the successor current, or refreshed and the repeat an attack.
  test('a late repeat and the refresh of the successor give one line of tokens', async () => {
    const { parent, child, row } = await replaced(trusting)
    const [repeated, next] = await Promise.all([refresh(trusting, parent), refresh(replica, child)])
    const session = await row()
    if (repeated.status === 200) {
      expect(repeated.body.refresh_token).toBe(child)
      expect([next.status, session?.refresh_counter, session?.repeats]).toEqual([200, 2, 0])
    } else {
      expect(repeated).toMatchObject(REUSED)
      expect(session).toBeUndefined()
    }
  })

  test('a late repeat and one from elsewhere end the session, and the one from elsewhere gets nothing', async () => {
    const { parent, child, row } = await replaced(trusting)
    const [repeated, stolen] = await Promise.all([refresh(trusting, parent), refresh(replica, parent, OTHER_AGENT)])
    expect(stolen).toMatchObject(REUSED)
    if (repeated.status === 200) expect(repeated.body.refresh_token).toBe(child)
    expect(await row()).toBeUndefined()
  })
})
