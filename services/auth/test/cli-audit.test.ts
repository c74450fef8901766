import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { authHere } from './command-line.ts'
import { startTestService } from './service.ts'

/** A service with entries, `each` of every hour of a long past day; entry `n` is the n-th of all. */
async function withEntries(hours: number, each: number) {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  onTestFinished(() => service.close())
  const { pool, config } = service.deps
  await pool.query(
    `insert into audit_log_entries (id, payload, created_at, ip_address)
      select gen_random_uuid(), jsonb_build_object('action', 'login', 'hour', hour), '2020-02-01T00:00:00.123456Z'::timestamptz
        + hour * interval '1 hour', '192.0.2.1' from generate_series(0, $1::int - 1) hour, generate_series(1, $2::int)`,
    [hours, each],
  )
  const run = async (...options: string[]) => {
    const result = await authHere(['audit', 'export', ...options], { AUTH_DATABASE_URL: config.database.url })
    const entries = result.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    return { ...result, entries }
  }
  return { service, run }
}

const hoursOf = (entries: { payload: { hour: number } }[]) => [...new Set(entries.map(({ payload }) => payload.hour))]
const idsOf = (entries: { id: string }[]) => new Set(entries.map(({ id }) => id))

describe('audit export', () => {
  test('prints each entry once, oldest first, as GET /admin/audit shows it', async () => {
    const { service, run } = await withEntries(3, 700)
    const { code, entries } = await run()
    expect([code, entries.length, idsOf(entries).size, hoursOf(entries)]).toEqual([0, 2_100, 2_100, [0, 1, 2]])
    const { body } = await service.get('/admin/audit?per_page=1000', service.admin)
    for (const entry of body) expect(entries.find(({ id }) => id === entry.id)).toEqual(entry)
  })

  test('prints the entries from a time until another one', async () => {
    const { run } = await withEntries(5, 2)
    const range = await run('--from', '2020-02-01T01:00:00.124Z', '--before', '2020-02-01T05:00:00.124+01:00')
    expect(hoursOf(range.entries)).toEqual([2, 3, 4])
    expect(hoursOf((await run('--before', '2020-02-01T02:00:00Z')).entries)).toEqual([0, 1])
    expect((await run('--before', '2020-02-01')).entries).toEqual([])
  })

  test('continues behind any entry, so that nothing is missing or there twice', async () => {
    const { run } = await withEntries(2, 60)
    const whole = (await run()).entries
    for (const at of [0, 37, 59, 60, 118]) {
      expect((await run('--after', whole[at].id)).entries).toEqual(whole.slice(at + 1))
    }
    expect((await run('--after', whole.at(-1).id)).entries).toEqual([])
  })

  test('leaves out entries of the last minute, beside which an older one may still be written', async () => {
    const { service, run } = await withEntries(1, 1)
    await service.signedIn()
    const future = new Date(Date.now() + 86_400_000).toISOString()
    for (const options of [[], ['--before', future]]) expect((await run(...options)).entries).toHaveLength(1)
  })

  test("leaves them out by the database's clock, whatever that of its own machine", async () => {
    const { service, run } = await withEntries(1, 1)
    await service.signedIn()
    const tomorrow = Date.now() + 86_400_000
    const clock = vi.spyOn(Date, 'now').mockReturnValue(tomorrow)
    onTestFinished(() => clock.mockRestore())
    expect((await run()).entries).toHaveLength(1)
  })

  test('says what is wrong with a time or an id, and with an entry that is gone', async () => {
    const { run } = await withEntries(1, 1)
    for (const time of ['yesterday', '2020-02-01T01:00:00', '2020-13-01']) {
      expect(await run('--from', time)).toMatchObject({ code: 64, stderr: expect.stringContaining('--from must be') })
    }
    expect(await run('--after', '7')).toMatchObject({ code: 64 })
    const gone = await run('--after', crypto.randomUUID())
    expect(gone).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('there is no entry') })
  })
})
