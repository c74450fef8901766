import { describe, expect } from 'vitest'
import { addAttempts, encryptionWith, newKey, rowsByKey } from '../../../../test/encryption-keys.ts'
import { challenge, enrollTotp, totpCode } from '../../../../test/second-factors.ts'
import { startTestService, type TestService, test } from '../../../../test/service.ts'
import { SEALED } from '../../../core/keys/sealed-columns.ts'
import { listOutdated, replaceSealed } from '../../../core/keys/sealed-rows.store.ts'
import { rotateSealedRows } from './rotate.ts'

const [OLD, NEW] = [newKey('old'), newKey('new')]
const attempts = (service: TestService) => rowsByKey(service, 'flow_states', 'sealed')

test('fifty users prove their apps on two replicas while the rows are moved, back and forth and by two at once', async () => {
  const one = await startTestService({ AUTH_ENCRYPTION_KEYS: `${OLD},${NEW}`, AUTH_WORKERS_ENABLED: 'false' })
  const two = await startTestService(
    {
      AUTH_ENCRYPTION_KEYS: `${NEW},${OLD}`,
      AUTH_WORKERS_ENABLED: 'false',
      AUTH_DATABASE_URL: one.deps.config.database.url,
    },
    one.clock,
  )
  const replicas = [one, two]
  const users = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const at = replicas[index % 2] as TestService
      const user = await at.signedIn()
      return { ...user, totp: await enrollTotp(at, user) }
    }),
  )
  const proveAll = (round: number) => {
    one.clock.advance({ seconds: 30 })
    return Promise.all(
      users.map(async (user, index) => {
        const at = replicas[(index + round) % 2] as TestService
        const challenge_id = await challenge(at, user, user.totp.id)
        const code = totpCode(user.totp.secret, at.clock.now())
        return (await at.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, user.auth)).status
      }),
    )
  }
  const rotate = (to: string, from: string) =>
    rotateSealedRows({ db: one.deps.db, encryption: encryptionWith(to, from) })
  const directions = [
    () => rotate(NEW, OLD),
    () => rotate(OLD, NEW),
    () => Promise.all([rotate(NEW, OLD), rotate(NEW, OLD)]),
  ]
  for (const [round, direction] of directions.entries()) {
    const [statuses] = await Promise.all([proveAll(round), direction()])
    expect(statuses).toEqual(users.map(() => 200))
  }
  await rotate(NEW, OLD)
  expect(await rowsByKey(one, 'factors', 'sealed_secret')).toEqual({ new: 50 })
  expect(await proveAll(0)).toEqual(users.map(() => 200))
  await two.close()
  await one.close()
})

describe('a rotation', () => {
  test.beforeEach(async ({ service }) => {
    await service.deps.db.deleteFrom('flow_states').execute()
  })

  test('that ends in the middle is continued by the next one, which moves only the rest', async ({ service }) => {
    await addAttempts(service, 1_200, encryptionWith(OLD))
    const deps = { db: service.deps.db, encryption: encryptionWith(NEW, OLD) }
    const killed = rotateSealedRows({
      ...deps,
      onProgress: (resealed) => {
        if (resealed > 0) throw new Error('killed')
      },
    })
    await expect(killed).rejects.toThrow('killed')
    expect(await attempts(service)).toEqual({ new: 500, old: 700 })
    const rotated = await rotateSealedRows(deps)
    expect(rotated.find(({ table }) => table === 'flow_states')).toMatchObject({ resealed: 700, unopened: {} })
    expect(await attempts(service)).toEqual({ new: 1_200 })
    expect((await rotateSealedRows(deps)).every(({ resealed }) => resealed === 0)).toBe(true)
  })

  test('leaves alone what no key opens, counts it by reason, and moves the rows around it', async ({ service }) => {
    const { db } = service.deps
    const gone = newKey('gone')
    await addAttempts(service, 3, encryptionWith(gone))
    await addAttempts(service, 2, encryptionWith(newKey('old')))
    await addAttempts(service, 4, encryptionWith(OLD))
    const dry = await rotateSealedRows({ db, encryption: encryptionWith(NEW, OLD), dryRun: true })
    expect(await attempts(service)).toEqual({ gone: 3, old: 6 })
    const rotated = await rotateSealedRows({ db, encryption: encryptionWith(NEW, OLD) })
    expect(rotated).toEqual(dry)
    expect(rotated.find(({ table }) => table === 'flow_states')).toEqual({
      table: 'flow_states',
      resealed: 4,
      unopened: {
        'sealed under the key gone, which AUTH_ENCRYPTION_KEYS does not have': 3,
        'sealed under another key old': 2,
      },
    })
    expect(await attempts(service)).toEqual({ gone: 3, old: 2, new: 4 })
  })

  test('waits for no locked row, and takes it in a later round', async ({ service }) => {
    const { db, pool } = service.deps
    await addAttempts(service, 3, encryptionWith(OLD))
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from flow_states order by id limit 1 for update')
    const moved: number[] = []
    await rotateSealedRows({
      db,
      encryption: encryptionWith(NEW, OLD),
      onProgress: (resealed) => {
        if (resealed > 0) moved.push(resealed)
        if (moved.length === 1) void holder.query('commit')
      },
    })
    holder.release()
    expect(moved).toEqual([2, 1])
    expect(await attempts(service)).toEqual({ new: 3 })
  })

  test('replaces no text that was written since it was read', async ({ service }) => {
    const { db } = service.deps
    await addAttempts(service, 2, encryptionWith(OLD))
    const batch = { prefix: encryptionWith(NEW).prefix, after: undefined, limit: 10 }
    const rows = await listOutdated(db, SEALED.attempt, batch)
    const resealed = rows.map(({ id = null, sealed = null }) => ({ key: id, before: sealed, after: 'v2.new.AAAA' }))
    const written = encryptionWith(OLD).seal(SEALED.attempt, { id: rows[0]?.id ?? null }, 'newer')
    await db.updateTable('flow_states').set({ sealed: written }).where('id', '=', String(rows[0]?.id)).execute()
    expect(await replaceSealed(db, SEALED.attempt, resealed)).toBe(1)
    const left = await db.selectFrom('flow_states').select('sealed').where('id', '=', String(rows[0]?.id)).execute()
    expect(left).toEqual([{ sealed: written }])
  })
})
