import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authHere } from '../../../../test/command-line.ts'
import { addAttempts, encryptionWith, newKey, rowsByKey } from '../../../../test/encryption-keys.ts'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { SEALED_COLUMNS } from '../../../core/keys/sealed-columns.ts'

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

/** All counts are 0 but these. */
const counts = (ids: (string | null)[], rows: Record<string, number>) =>
  ids.flatMap((id) =>
    TABLES.map((table) => ({ key_id: id, table, rows: table === 'flow_states' ? (rows[String(id)] ?? 0) : 0 })),
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
      { key_id: 'gone', table: 'flow_states', rows: 3 },
    ])
    expect((await run(service, 'keys encryption status', [NEW, OLD])).stdout).toMatch(
      /^gone +unknown +flow_states +3$/m,
    )

    const rotated = await run(service, 'keys encryption rotate --json', [NEW, OLD])
    expect(rotated.code).toBe(1)
    expect(rotated.stderr).toContain('3 rows of flow_states do not open: sealed under the key gone, which AUTH_')
    expect(rotated.stderr).toContain('3 rows are left under other keys')
    expect(JSON.parse(rotated.stdout)).toMatchObject({ key_id: 'new', left: 3 })
    const checked = await run(service, 'config check', [NEW, OLD])
    expect([checked.code, checked.stderr.includes(named.trim())]).toEqual([78, true])
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

test('a key that rows need and the settings lack is logged once, and named by GET /health/ready, which stays 200', () =>
  withAttempts({ [newKey('gone')]: 3, [OLD]: 1 }, async (service) => {
    const folder = await mkdtemp(join(tmpdir(), 'auth-log-'))
    const log = { AUTH_LOG_LEVEL: 'error', AUTH_LOG_FILE: join(folder, 'log') }
    const replica = await service.with({ AUTH_ENCRYPTION_KEYS: NEW, ...log })
    expect((await replica.get('/health/ready')).body).toEqual({ status: 'ok' })
    const stop = replica.deps.sealedRows.start()
    await expect.poll(() => replica.deps.sealedRows.figures()).toBeDefined()
    const [gone, old] = ['gone: 3 rows', 'old: 1 rows'].map(
      (which) => `AUTH_ENCRYPTION_KEYS lacks the key ${which} of flow_states cannot be decrypted`,
    )
    expect(await replica.get('/health/ready')).toMatchObject({
      status: 200,
      body: { status: 'ok', warnings: [gone, old] },
    })
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
    await replica.deps.sealedRows.count()
    expect((await replica.get('/health/ready')).body).toEqual({ status: 'ok' })
    await replica.close()
    await rm(folder, { recursive: true })
  }))
