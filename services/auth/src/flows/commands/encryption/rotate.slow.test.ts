// A rotation by the real command, killed without warning, and the start of a real process that lacks a key.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { findFreePort } from '@services/common/dev/dev-ports'
import { programOf } from '@services/common/testing/run/program'
import { readingOf } from '@services/common/testing/telemetry/metrics-table'
import { expect, test } from 'vitest'
import { auth } from '../../../../test/command-line.ts'
import { addAttempts, encryptionWith, newKey, rowsByKey } from '../../../../test/encryption-keys.ts'
import { processEnvironment } from '../../../../test/process-environment.ts'
import { startTestService } from '../../../../test/service.ts'

const [OLD, NEW] = [newKey('old'), newKey('new')]
const MUTEX = 4711

test('a rotation that is killed in the middle of a batch leaves whole batches, and the next one moves the rest', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const { pool, config } = service.deps
  await addAttempts(service, 1_200, encryptionWith(OLD))
  // The second batch stops at a row that the test holds.
  await pool.query(`create function stop_here() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(${MUTEX}); return new; end $$`)
  const { rows } = await pool.query<{ id: string }>('select id from flow_states order by id offset 700 limit 1')
  await pool.query(`create trigger stop_here before update on flow_states for each row
    when (old.id = '${rows[0]?.id}') execute function stop_here()`)
  const holder = await pool.connect()
  await holder.query(`select pg_advisory_lock(${MUTEX})`)

  const settings = { AUTH_DATABASE_URL: config.database.url, AUTH_ENCRYPTION_KEYS: `${NEW},${OLD}` }
  const env = processEnvironment({ ...settings, AUTH_JWT_SECRET: config.jwt.secret })
  const child = spawn(process.execPath, [programOf('auth', 'cli'), 'keys', 'encryption', 'rotate'], { env })
  const waiting = async () => {
    const { rows: found } = await pool.query<{ pid: number }>(
      "select pid from pg_locks where locktype = 'advisory' and not granted and objid = $1",
      [MUTEX],
    )
    return found.map(({ pid }) => pid)
  }
  await expect.poll(waiting).toHaveLength(1)
  const [pid] = await waiting()
  child.kill('SIGKILL')
  await once(child, 'exit')
  await pool.query('select pg_terminate_backend($1)', [pid])
  await expect.poll(waiting).toEqual([])
  await holder.query(`select pg_advisory_unlock(${MUTEX})`)
  holder.release()
  expect(await rowsByKey(service, 'flow_states', 'sealed')).toEqual({ new: 500, old: 700 })

  const again = await auth(['keys', 'encryption', 'rotate'], { ...settings, AUTH_JWT_SECRET: config.jwt.secret })
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('flow_states: 700 rows encrypted anew')])
  expect(await rowsByKey(service, 'flow_states', 'sealed')).toEqual({ new: 1_200 })
  await service.close()
})

test.each(['main', 'cli'] as const)(
  'a start of %s logs and measures the key that its rows need and its settings lack',
  async (program) => {
    const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
    const { config } = service.deps
    await addAttempts(service, 2, encryptionWith(OLD))
    const port = await findFreePort()
    const env = processEnvironment({
      AUTH_DATABASE_URL: config.database.url,
      AUTH_JWT_SECRET: config.jwt.secret,
      AUTH_ENCRYPTION_KEYS: NEW,
      AUTH_PORT: '0',
      AUTH_METRICS_ENABLED: 'true',
      AUTH_METRICS_EXPORTER: 'prometheus',
      AUTH_OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      AUTH_OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    })
    const args = program === 'cli' ? ['worker'] : []
    const child = spawn(process.execPath, [programOf('auth', program), ...args], { env })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    const line = () => output.split('\n').find((each) => each.includes('rows are sealed under an unknown key'))
    await expect.poll(line).toBeDefined()
    expect(JSON.parse(String(line()))).toMatchObject({ level: 'error', keyId: 'old', tables: { flow_states: 2 } })
    const figures = async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/`)).text()
      const known = ['old', 'new', ''].map((id) => `auth_sealed_rows{key_id="${id}",known="${id !== 'old'}"`)
      return known.map((name) => readingOf(text, name))
    }
    await expect.poll(figures).toEqual([2, 0, 0])
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    await service.close()
  },
)
