import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '@services/common/database/pool'
import { expect, test } from 'vitest'
import { authHere } from '../../../../test/command-line.ts'
import { addAttempts, encryptionWith, newKey, rowsByKey } from '../../../../test/encryption-keys.ts'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { SEALED, SEALED_COLUMNS } from '../../../core/keys/sealed-columns.ts'
import { watchSealedRows } from '../../../core/keys/sealed-rows.ts'
import { type DB, TABLES as TABLES_OF_DB } from '../../../db/tables.ts'

const [OLD, NEW] = [newKey('old'), newKey('new')]
const TABLES = [...new Set(SEALED_COLUMNS.map(({ table }) => table))]

async function withAttempts(counts: Record<string, number>, work: (service: TestService) => Promise<void>) {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  for (const [key, count] of Object.entries(counts)) await addAttempts(service, count, encryptionWith(key))
  await work(service).finally(() => service.close())
}

const run = (service: TestService, line: string, keys: string[]) =>
  authHere(line.split(' '), {
    AUTH_DATABASE_URL: service.deps.config.database.url,
    AUTH_ENCRYPTION_KEYS: keys.join(),
    AUTH_JWT_SECRET: service.deps.config.jwt.secret,
  })

/** All counts of known keys are 0 but these. */
const counts = (ids: (string | null)[], rows: Record<string, number>) =>
  ids.flatMap((id) =>
    TABLES.map((table) => {
      const count = table === 'flow_states' ? (rows[String(id)] ?? 0) : 0
      return { key_id: id, table, rows: count, known: true }
    }),
  )

test('status counts rows by key and table, and rotate moves them until it says 0', () =>
  withAttempts({ [OLD]: 12 }, async (service) => {
    const before = await run(service, 'keys encryption status --json', [NEW, OLD])
    expect([before.code, before.stderr]).toEqual([0, ''])
    expect(JSON.parse(before.stdout)).toEqual(counts(['new', 'old', null], { old: 12 }))
    const shown = (await run(service, 'keys encryption status', [NEW, OLD])).stdout
    expect(shown).toMatch(/^new +encrypts +flow_states +0$/m)
    expect(shown).toMatch(/^old +flow_states +12$/m)
    expect(shown).toMatch(/^without id +flow_states +0$/m)

    const dry = await run(service, 'keys encryption rotate --dry-run --json', [NEW, OLD])
    expect(dry.code).toBe(0)
    expect(JSON.parse(dry.stdout)).toMatchObject({ key_id: 'new', dry_run: true, left: 0 })
    expect(JSON.parse(dry.stdout).tables).toContainEqual({ table: 'flow_states', resealed: 12, unopened: 0 })
    expect(await rowsByKey(service, 'flow_states', 'sealed')).toEqual({ old: 12 })

    const rotated = await run(service, 'keys encryption rotate', [NEW, OLD])
    expect([rotated.code, rotated.stderr]).toEqual([0, ''])
    expect(rotated.stdout).toContain('flow_states: 12 rows encrypted anew\n')
    const after = await run(service, 'keys encryption status --json', [NEW, OLD])
    expect(JSON.parse(after.stdout)).toEqual(counts(['new', 'old', null], { new: 12 }))
    expect((await run(service, 'keys encryption status', [NEW])).code).toBe(0)
  }))

test('rows of an unknown key are named, and the exit code is 1', () =>
  withAttempts({ [OLD]: 2, [newKey('gone')]: 3 }, async (service) => {
    const named = 'AUTH_ENCRYPTION_KEYS lacks the key gone: 3 rows of flow_states cannot be decrypted\n'
    const status = await run(service, 'keys encryption status --json', [NEW, OLD])
    expect([status.code, status.stderr]).toEqual([1, named])
    expect(JSON.parse(status.stdout)).toEqual([
      ...counts(['new', 'old', null], { old: 2 }),
      { key_id: 'gone', table: 'flow_states', rows: 3, known: false },
    ])
    expect((await run(service, 'keys encryption status', [NEW, OLD])).stdout).toMatch(
      /^gone +unknown +flow_states +3$/m,
    )

    const rotated = await run(service, 'keys encryption rotate --json', [NEW, OLD])
    expect(rotated.code).toBe(1)
    expect(rotated.stderr).toContain('3 rows of flow_states do not open: sealed under the key gone, which AUTH_')
    expect(rotated.stderr).not.toContain('left under other keys')
    expect(JSON.parse(rotated.stdout)).toMatchObject({ key_id: 'new', left: 0 })
    const checked = await run(service, 'config check', [NEW, OLD])
    expect([checked.code, checked.stderr.includes(named.trim())]).toEqual([78, true])
  }))

test('rows that came under another key during a rotation are left for the next one, which ends the advice', () =>
  withAttempts({ [OLD]: 1 }, async (service) => {
    const id = randomUUID()
    const sealed = encryptionWith(OLD).seal(SEALED.message, { id }, { to: 'a@example.com' })
    // Messages are moved before attempts.
    await service.deps.pool.query(`create function add_message() returns trigger language plpgsql as $$ begin
      insert into messages (id, channel, kind, sealed, created_at, updated_at)
        values ('${id}', 'mail', 'invite', '${sealed}', now(), now());
      return null; end $$;
      create trigger add_message after update on flow_states for each row execute function add_message()`)
    const keys = ['ENCRYPTION_KEY', OLD]
    const first = await run(service, 'keys encryption rotate --json', keys)
    expect([first.code, JSON.parse(first.stdout)]).toMatchObject([1, { key_id: null, left: 1 }])
    expect(first.stderr).toMatch(/^1 rows are left under other keys: .* run this again$/m)
    const second = await run(service, 'keys encryption rotate --json', keys)
    expect([second.code, second.stderr, JSON.parse(second.stdout)]).toMatchObject([0, '', { left: 0 }])
  }))

test('texts in place of an id count together, and none is repeated', () =>
  withAttempts({ [OLD]: 3 }, async (service) => {
    const { pool } = service.deps
    await pool.query(
      "update flow_states set sealed = 'v2.<b>' || row || '.AAAA' from (select id, ctid::text as row from flow_states) each where each.id = flow_states.id",
    )
    const { code, stdout, stderr } = await run(service, 'keys encryption status', [NEW])
    expect(code).toBe(1)
    expect(stderr).toBe(
      'AUTH_ENCRYPTION_KEYS lacks the key with a malformed id: 3 rows of flow_states cannot be decrypted\n',
    )
    expect(stdout).toMatch(/^with a malformed id +unknown +flow_states +3$/m)
    expect(stdout + stderr).not.toContain('<b>')
  }))

const CHANGED: [string, string[], Record<string, string>, string | null, string][] = [
  [
    'a key with other bytes',
    [OLD],
    { AUTH_ENCRYPTION_KEYS: newKey('old') },
    'old',
    'the key old in AUTH_ENCRYPTION_KEYS',
  ],
  [
    'an AUTH_ENCRYPTION_KEY that is gone',
    [],
    { AUTH_ENCRYPTION_KEYS: NEW, AUTH_JWT_SECRET: 'another secret of the tests with 32 bytes' },
    null,
    'AUTH_ENCRYPTION_KEY, or AUTH_JWT_SECRET where that is unset,',
  ],
  [
    'another AUTH_ENCRYPTION_KEY',
    [],
    { AUTH_ENCRYPTION_KEY: 'another key of sixteen bytes or more' },
    null,
    'AUTH_ENCRYPTION_KEY, or AUTH_JWT_SECRET where that is unset,',
  ],
]
test.each(CHANGED)('%s is reported like a missing key, everywhere', async (_how, written, settings, id, named) => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const { database, jwt } = service.deps.config
  await addAttempts(service, 2, encryptionWith(...written))
  const given = { AUTH_DATABASE_URL: database.url, AUTH_JWT_SECRET: jwt.secret, ...settings }
  const sentence = `${named} has changed: 2 rows of flow_states cannot be decrypted`
  const status = await authHere(['keys', 'encryption', 'status', '--json'], given)
  expect([status.code, status.stderr]).toEqual([1, `${sentence}\n`])
  const unknown = { key_id: id, table: 'flow_states', rows: 2, known: false }
  expect(JSON.parse(status.stdout)).toContainEqual(unknown)
  expect((await authHere(['keys', 'encryption', 'status'], given)).stdout).toMatch(/ changed +flow_states +2$/m)
  const checked = await authHere(['config', 'check'], given)
  expect([checked.code, checked.stderr.includes(sentence)]).toEqual([78, true])
  const rotated = await authHere(['keys', 'encryption', 'rotate', '--json'], given)
  expect([rotated.code, JSON.parse(rotated.stdout).left]).toEqual([1, 0])
  expect(rotated.stderr).toContain('2 rows of flow_states do not open: sealed under another')
  const replica = await service.with(settings)
  await replica.deps.sealedRows.count()
  expect((await replica.get('/health/ready')).body).toEqual({
    status: 'ok',
    warnings: ['an encryption key is missing'],
  })
  expect(replica.deps.sealedRows.figures()).toContainEqual(unknown)
  await replica.close()
  await service.close()
})

test('config check reports why rows could not be counted, and passes before the first migration', () =>
  withAttempts({}, async (service) => {
    const { pool } = service.deps
    await pool.query('alter table factors rename sealed_secret to renamed')
    const refused = await run(service, 'config check', [NEW])
    expect([refused.code, refused.stderr]).toEqual([
      78,
      expect.stringMatching(/encrypted rows could not be counted: column "sealed_secret" does not exist/),
    ])
    await pool.query('alter table factors rename to no_factors')
    expect(await run(service, 'config check', [NEW])).toMatchObject({ code: 0 })
    const away = {
      AUTH_DATABASE_URL: 'postgres://auth@127.0.0.1:1/auth',
      AUTH_JWT_SECRET: service.deps.config.jwt.secret,
    }
    expect(await authHere(['config', 'check'], away)).toMatchObject({ code: 0 })
  }))

test('config check warns while AUTH_JWT_SECRET encrypts rows that a key of its own could', () =>
  withAttempts({}, async (service) => {
    await addAttempts(service, 2, encryptionWith())
    const warning = 'AUTH_JWT_SECRET encrypts 2 rows of flow_states: before you replace it, run keys encryption rotate'
    expect((await run(service, 'config check', [NEW])).stdout).toContain(warning)
    expect((await run(service, 'config check', ['ENCRYPTION_KEY', NEW])).stdout).not.toContain(warning)
    expect(await run(service, 'keys encryption rotate', [NEW])).toMatchObject({ code: 0 })
    expect((await run(service, 'config check', [NEW])).stdout).not.toContain(warning)
  }))

test('one process counts for all, every 15 minutes, and a rotation at its end', () =>
  withAttempts({ [OLD]: 2 }, async (service) => {
    const [one, two] = [
      await service.with({ AUTH_ENCRYPTION_KEYS: `${NEW},${OLD}` }),
      await service.with({ AUTH_ENCRYPTION_KEYS: NEW }),
    ]
    const rowsOf = (replica: TestService, id: string) =>
      replica.deps.sealedRows.figures()?.find(({ key_id, table }) => key_id === id && table === 'flow_states')
    await Promise.all([one, two].map(({ deps }) => deps.sealedRows.count()))
    for (const { deps } of [one, two]) await deps.sealedRows.count()
    expect([rowsOf(one, 'old'), rowsOf(two, 'old')]).toMatchObject([
      { rows: 2, known: true },
      { rows: 2, known: false },
    ])
    // No scan within the 15 minutes: a row that was added is not in the figures of either.
    await addAttempts(service, 1, encryptionWith(OLD))
    service.clock.advance({ seconds: 899 })
    for (const { deps } of [one, two]) await deps.sealedRows.count()
    expect([rowsOf(one, 'old')?.rows, rowsOf(two, 'old')?.rows]).toEqual([2, 2])
    service.clock.advance({ seconds: 1 })
    await two.deps.sealedRows.count()
    await one.deps.sealedRows.count()
    expect([rowsOf(one, 'old')?.rows, rowsOf(two, 'old')?.rows]).toEqual([3, 3])
    await run(service, 'keys encryption rotate', [NEW, OLD])
    for (const { deps } of [one, two]) await deps.sealedRows.count()
    expect([rowsOf(one, 'new')?.rows, rowsOf(two, 'new')?.rows, rowsOf(two, 'old')]).toEqual([3, 3, undefined])
    await one.close()
    await two.close()
  }))

test('a count outlasts the time limit of the statements of requests', () =>
  withAttempts({ [OLD]: 2 }, async (service) => {
    const { pool, config, log, encryption, now } = service.deps
    const how = { ...config.database, statementWithinMs: 100, applicationName: 'short', log, tables: TABLES_OF_DB }
    const short = openDatabase<DB>(how)
    const watch = watchSealedRows({ db: short.db, config, encryption, now, log })
    const holder = await pool.connect()
    await holder.query('begin; lock table factors')
    const counted = watch.count()
    counted.catch(() => {})
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      and query_start < clock_timestamp() - interval '200 ms'`
    await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(1)
    await holder.query('commit')
    holder.release()
    await counted
    expect(watch.figures()).toContainEqual({ key_id: 'old', table: 'flow_states', rows: 2, known: false })
    await short.close()
  }))

test('a key that rows need and the settings lack is logged once, and GET /health/ready names none', () =>
  withAttempts({ [newKey('gone')]: 3, [OLD]: 1 }, async (service) => {
    const folder = await mkdtemp(join(tmpdir(), 'auth-log-'))
    const log = { AUTH_LOG_LEVEL: 'error', AUTH_LOG_FILE: join(folder, 'log') }
    const replica = await service.with({ AUTH_ENCRYPTION_KEYS: NEW, ...log })
    expect((await replica.get('/health/ready')).body).toEqual({ status: 'ok' })
    const stop = replica.deps.sealedRows.start()
    await expect.poll(() => replica.deps.sealedRows.figures()).toBeDefined()
    const ready = await replica.get('/health/ready')
    expect([ready.status, ready.body]).toEqual([200, { status: 'ok', warnings: ['an encryption key is missing'] }])
    await replica.deps.sealedRows.count()
    await stop()
    await new Promise((written) => replica.deps.log.flush(written))
    const lines = (await readFile(join(folder, 'log'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([
      { level: 'error', keyId: 'gone', tables: { flow_states: 3 }, msg: 'rows are sealed under an unknown key' },
      { level: 'error', keyId: 'old', tables: { flow_states: 1 } },
    ])
    await service.deps.db.deleteFrom('flow_states').execute()
    service.clock.advance({ seconds: 900 })
    await replica.deps.sealedRows.count()
    expect((await replica.get('/health/ready')).body).toEqual({ status: 'ok' })
    await replica.close()
    await rm(folder, { recursive: true })
  }))
