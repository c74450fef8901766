import pg from 'pg'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { remove } from '../../../test/admin.ts'
import { expectKnownMembers } from '../../../test/audit-members.ts'
import { authHere } from '../../../test/command-line.ts'
import { enrollTotp } from '../../../test/second-factors.ts'
import { linkPath, startTestService, type TestService } from '../../../test/service.ts'
import { deleteExpired } from '../../housekeeping.ts'
import { type AuditAction, LOG_TYPES } from './actions.ts'
import { audit, recordOrigin } from './audit.ts'
import { KEPT_TRAITS } from './personal-data.ts'

const DAY = 86_400
const RETENTION = 30 * DAY
const password = 'correct horse'
const ADMIN = { 'user-agent': 'Admin/1.0', 'x-forwarded-for': '198.51.100.7' }
/** All that entries say of the user who is deleted has this word or address. */
const WORD = 'zoe'
const IP = '203.0.113.99'
const CLIENT = { 'user-agent': `${WORD}/1.0`, 'x-forwarded-for': IP }

interface Entry {
  id: string
  created_at: Date
  ip_address: string
  payload: Record<string, unknown> & { action: AuditAction; traits?: Record<string, unknown> }
}

const entriesOf = async ({ deps: { pool } }: TestService): Promise<Entry[]> =>
  (await pool.query('select * from audit_log_entries order by created_at, id desc')).rows

const isPersonal = ({ payload, ip_address }: Entry) => JSON.stringify(payload).includes(WORD) || ip_address === IP

async function open(settings: Record<string, string> = { AUTH_AUDIT_PII_RETENTION: '720h' }) {
  const service = await startTestService(settings)
  onTestFinished(() => service.close())
  const log = { info: vi.fn(), warn: vi.fn() }
  /** One round of a process. */
  const round = async (of = service, stopping?: AbortSignal) => {
    await deleteExpired(of.deps, log as unknown as typeof of.deps.log, {}, stopping)
    expect(log.warn).not.toHaveBeenCalled()
  }
  /** The same on another day. */
  const keepHouse = async (of = service) => {
    await service.deps.db.deleteFrom('shared_runs').execute()
    await round(of)
  }
  /** Entries that the log says were erased. */
  const reported = () =>
    log.info.mock.calls
      .filter(([, message]) => message === 'personal data erased from audit entries')
      .reduce((sum, [{ entries }]) => sum + entries, 0)
  const later = (seconds: number) => service.clock.advance({ seconds })
  return { service, log, round, keepHouse, reported, later, admin: { ...ADMIN, ...service.admin } }
}

/** The life of a user in whose entries each personal member occurs: names, clients, old, new and typed addresses. */
async function live({ service, later, admin }: Awaited<ReturnType<typeof open>>): Promise<string> {
  const [email, next] = [`${WORD}@example.com`, `${WORD}-later@example.com`]
  const data = { full_name: `${WORD} Example` }
  await service.post('/signup', { email, password, data }, CLIENT)
  await service.get(linkPath((await service.mailbox.waitFor(email)).text), CLIENT)
  await service.post('/token?grant_type=password', { email, password: 'wrong' }, CLIENT)
  const { body } = await service.post('/token?grant_type=password', { email, password }, CLIENT)
  const auth = { ...CLIENT, authorization: `Bearer ${body.access_token}` }
  await service.post('/token?grant_type=refresh_token', { refresh_token: body.refresh_token }, CLIENT)
  await enrollTotp(service, { auth })
  await service.put('/user', { data: { a: 1 } }, auth)
  later(61)
  await service.put(`/admin/users/${body.user.id}`, { email: next, phone: '4915100000123' }, admin)
  await service.post('/admin/generate_link', { type: 'magiclink', email: next }, admin)
  await service.post('/recover', { email: next }, CLIENT)
  await service.settled()
  await service.post('/logout', {}, auth)
  later(DAY)
  return body.user.id
}

describe("a deleted user's entries", () => {
  test.for(['hard', 'soft'] as const)(
    'lose all personal data after the retention, and nothing else: %s',
    async (way) => {
      const house = await open()
      const { service, keepHouse, later, admin, reported } = house
      const id = await live(house)
      later(RETENTION)
      await keepHouse()
      const ofUser = async () =>
        (await entriesOf(service)).filter(({ payload }) => JSON.stringify(payload).includes(id))
      // A living user keeps all, at any age.
      expect((await ofUser()).every((entry) => entry.payload.erased === undefined)).toBe(true)
      expect((await remove(service, `/admin/users/${id}`, admin, { should_soft_delete: way === 'soft' })).status).toBe(
        200,
      )
      const before = await ofUser()
      expect(before.filter(isPersonal).length).toBeGreaterThan(8)
      expectKnownMembers(before.map(({ payload }) => payload))
      later(RETENTION)
      await keepHouse()
      expect(await ofUser()).toEqual(before)
      later(1)
      await keepHouse()
      const after = await ofUser()
      expect((await entriesOf(service)).filter(isPersonal)).toEqual([])
      expect(JSON.stringify(after)).not.toContain('4915100000123')
      const left = ({ id, created_at, payload: { action, actor_id, log_type } }: Entry) => ({
        id,
        created_at,
        action,
        actor_id,
        log_type,
      })
      expect(after.map(left)).toEqual(before.map(left))
      for (const { payload, ip_address } of after) {
        if (payload.actor_id === id) {
          expect([payload.actor_username, ip_address, payload.erased]).toEqual(['', '', ['actor']])
          expect(payload).not.toHaveProperty('user_agent')
          continue
        }
        // The admin who acted on the user stays, with the client.
        expect(payload).toMatchObject({ actor_username: 'service_role', user_agent: 'Admin/1.0', erased: ['target'] })
        expect(payload.traits).toMatchObject({ user_id: id, user_email: '', user_phone: '' })
        expect(ip_address).toBe('198.51.100.7')
      }
      const erased = reported()
      await keepHouse()
      expect([await ofUser(), reported()]).toEqual([after, erased])
    },
  )

  test('are found by no address or name any more, and exported as they are', async () => {
    const house = await open()
    const { service, keepHouse, later, admin } = house
    const id = await live(house)
    const found = async (query: string) =>
      (await service.get(`/admin/audit?query=${encodeURIComponent(query)}`, admin)).body
    expect(await found(`author:${WORD}`)).not.toEqual([])
    await remove(service, `/admin/users/${id}`, admin)
    later(RETENTION + 1)
    await keepHouse()
    for (const text of [WORD, `${WORD}@example.com`, `${WORD} Example`])
      expect(await found(`author:${text}`)).toEqual([])
    const [deletion] = await found('action:user_deleted')
    expect(deletion.payload.traits).toEqual({ user_id: id, user_email: '', user_phone: '' })
    await service.deps.pool.query(`update audit_log_entries set created_at = created_at - interval '20 years'`)
    const { stdout } = await authHere(['audit', 'export'], { AUTH_DATABASE_URL: service.deps.config.database.url })
    const exported = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(exported.map((entry) => entry.id)).toContain(deletion.id)
    expect(exported.find((entry) => entry.id === deletion.id).payload).toEqual(deletion.payload)
    expect(stdout).not.toContain(WORD)
  })

  test('are erased however the row was deleted: a person who acted stays a kind, and a target that lives stays whole', async () => {
    const { service, keepHouse, later } = await open()
    const { userId } = await service.signedIn('acting@example.com', password)
    await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
    const { body } = await service.post('/token?grant_type=password', { email: 'acting@example.com', password })
    const auth = { ...CLIENT, authorization: `Bearer ${body.access_token}` }
    const target = (await service.post('/admin/users', { email: 'lives@example.com' }, auth)).body.id
    await service.deps.pool.query('delete from users where id = $1', [userId])
    later(RETENTION + 1)
    await keepHouse()
    const [act] = (await entriesOf(service)).filter(({ payload }) => payload.traits?.user_id === target)
    expect(act).toMatchObject({ ip_address: '', payload: { actor_id: userId, actor_username: 'service_role' } })
    expect(act?.payload).toEqual({
      ...{ action: 'user_signedup', log_type: 'team', actor_id: userId, actor_via_sso: false },
      ...{ actor_username: 'service_role', erased: ['actor'] },
      traits: { user_id: target, user_email: 'lives@example.com', user_phone: '', provider: 'email' },
    })
    await service.deps.pool.query('delete from users where id = $1', [target])
    await keepHouse()
    const [both] = (await entriesOf(service)).filter(({ payload }) => payload.traits?.user_id === target)
    expect(both?.payload).toMatchObject({ erased: ['actor', 'target'], traits: { user_email: '' } })
  })

  test('are erased in batches by two replicas at once, each entry once, beside other users', async () => {
    const { service, keepHouse, later, reported } = await open()
    const other = await service.with({})
    const { userId } = await service.signedIn('stays@example.com')
    const gone = [crypto.randomUUID(), crypto.randomUUID()]
    const insert = (id: string, count: number) =>
      service.deps.pool.query(
        `insert into audit_log_entries (id, payload, ip_address, created_at)
          select gen_random_uuid(), jsonb_build_object('action', 'login', 'actor_id', $1::text, 'actor_username', 'a@b.c'),
            '192.0.2.1', $2::timestamptz + n / 10 * interval '1 second' from generate_series(1, $3::int) n`,
        [id, service.clock.now(), count],
      )
    for (const id of gone) await insert(id, 2_500)
    await insert(userId, 20)
    later(RETENTION + DAY)
    await Promise.all([keepHouse(), keepHouse(other)])
    await keepHouse()
    const entries = await entriesOf(service)
    const of = (id: string) => entries.filter(({ payload }) => payload.actor_id === id)
    for (const { payload, ip_address } of gone.flatMap(of)) {
      expect([payload.actor_username, ip_address, payload.erased]).toEqual(['', '', ['actor']])
    }
    expect(of(userId).filter(({ payload }) => payload.erased)).toEqual([])
    expect(reported()).toBe(5_000)
  })

  test('are searched for once a day by one of two replicas, and by the other one if it stops in its midst', async () => {
    const { service, log, round, later, reported } = await open()
    const other = await service.with({})
    const searches = async (...rounds: (() => Promise<void>)[]) => {
      const query = vi.spyOn(pg.Client.prototype, 'query')
      await Promise.all(rounds.map((each) => each()))
      const texts = (query.mock.calls as unknown[][]).map(([asked]) => (asked as { text?: string }).text ?? '')
      query.mockRestore()
      return texts.filter((text) => text.includes('with recursive "ids"')).length
    }
    // One for actors, one for targets.
    expect(
      await searches(
        () => round(),
        () => round(other),
      ),
    ).toBe(2)
    later(DAY - 1)
    expect(
      await searches(
        () => round(),
        () => round(other),
      ),
    ).toBe(0)
    later(1)
    expect(await searches(() => round(other))).toBe(2)

    await service.deps.pool.query(
      `insert into audit_log_entries (id, payload, ip_address, created_at)
        select gen_random_uuid(), jsonb_build_object('action', 'login', 'actor_id', $1::text, 'actor_username', 'a@b.c'),
          '192.0.2.1', $2 from generate_series(1, 1500)`,
      [crypto.randomUUID(), service.clock.now()],
    )
    later(RETENTION + DAY)
    const stopping = new AbortController()
    log.info.mockImplementationOnce(() => stopping.abort())
    await round(service, stopping.signal)
    expect(reported()).toBe(1_000)
    later(3_599)
    await round(other)
    expect(reported()).toBe(1_000)
    later(1)
    await round(other)
    expect(reported()).toBe(1_500)
  })

  test('stay as they are without the setting', async () => {
    const house = await open({})
    const id = await live(house)
    await remove(house.service, `/admin/users/${id}`, house.admin)
    const before = (await entriesOf(house.service)).filter(({ payload }) => payload.action !== 'login_failed')
    house.later(3_650 * DAY)
    await house.keepHouse()
    expect(await entriesOf(house.service)).toEqual(before)
    expect(house.reported()).toBe(0)
  })
})

test('an address in a trait goes, whatever it is, and the side of a change stays', async () => {
  const { service, keepHouse, later } = await open()
  const insert = (address: string) =>
    service.deps.pool.query(
      `insert into audit_log_entries (id, payload, created_at) values (gen_random_uuid(), $1, $2)`,
      [{ action: 'login', actor_id: crypto.randomUUID(), traits: { side: 'new', address } }, service.clock.now()],
    )
  for (const address of ['new', 'current', `${WORD}-0x1`]) await insert(address)
  later(RETENTION + 1)
  await keepHouse()
  const left = (await entriesOf(service)).map(({ payload }) => payload.traits)
  expect(left).toEqual(Array(3).fill({ side: 'new' }))
})

test('refused sign-ins lose the typed address and the client at that age: they name no account that could be deleted', async () => {
  const { service, keepHouse, later } = await open()
  const refuse = (email: string) => service.post('/token?grant_type=password', { email, password }, CLIENT)
  await refuse(`${WORD}@example.com`)
  later(DAY)
  await refuse(`${WORD}-2@example.com`)
  later(RETENTION - DAY + 1)
  await keepHouse()
  const [first, second] = await entriesOf(service)
  expect(first).toMatchObject({
    ip_address: '',
    payload: { action: 'login_failed', actor_username: '', traits: { provider: 'password' }, erased: ['actor'] },
  })
  expect(second).toMatchObject({ ip_address: IP, payload: { actor_username: `${WORD}-2@example.com` } })
})

describe('every action', () => {
  const person = (name: string) => ({
    ...{ id: crypto.randomUUID(), email: `${WORD}-${name}@example.com`, phone: null },
    user_metadata: { full_name: `${WORD} ${name}` },
  })
  let house: Awaited<ReturnType<typeof startTestService>>
  beforeAll(async () => {
    house = await startTestService({ AUTH_AUDIT_PII_RETENTION: '720h', AUTH_WORKERS_ENABLED: 'false' })
    return () => house.close()
  })

  test('loses each member that is not known to be without personal data, also one that is new', async () => {
    const { deps, clock } = house
    const log = { ...deps.log, info: () => {} }
    recordOrigin(log, () => ({ ip: IP, userAgent: `${WORD}/1.0` }))
    const kept = Object.fromEntries(KEPT_TRAITS.filter((name) => name !== 'user_id').map((name) => [name, 'kept']))
    const traits = { ...kept, provider: 'kept', forgotten: `${WORD} Street 1` }
    const [actor, target] = [person('actor'), person('target')]
    for (const action of Object.keys(LOG_TYPES) as AuditAction[]) {
      // @ts-expect-error: the type refuses the unknown trait, which a statement of SQL could still write.
      await audit(deps, deps.db, log, { action, actor, target, traits })
    }
    await deps.pool.query(`update audit_log_entries set payload = payload || '{"new_member": "${WORD}"}'`)
    clock.advance({ seconds: RETENTION + 1 })
    await deleteExpired(deps, deps.log)
    const entries = await entriesOf(house)
    expect(entries.map(({ payload }) => payload.action).toSorted()).toEqual(Object.keys(LOG_TYPES).toSorted())
    expect(entries.filter(isPersonal)).toEqual([])
    for (const { payload } of entries) {
      expect(payload.traits).toEqual({ ...kept, user_id: target.id, user_email: '', user_phone: '' })
    }
  })
})
