import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { lookInto } from '../packages/common/src/bench/postgres.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings } = inject('devServices')
const guide = openGuide('limit-growth.md')
let shell: Shell

beforeAll(async () => {
  shell = await openShell(settings)
})
afterAll(() => shell.close())

test('the audit entries of a month are exported, and an export cut in a line continues without a gap', async () => {
  const { pool, close } = lookInto(String(settings.AUTH_DATABASE_URL))
  await pool.query(`insert into audit_log_entries (id, payload, created_at)
    select gen_random_uuid(), '{"action": "login", "traits": {"id": "other"}}', time::timestamptz
    from unnest('{2025-09-30T23:59Z,2025-10-01T00:00Z,2025-10-02T00:00Z,2025-10-30T00:00Z,2025-11-01T00:00Z}'::text[]) time`)
  await close()
  const file = join(shell.folder, 'audit-2025-10.jsonl')
  const lines = (text: string) => text.trim().split('\n')
  expect(await shell.run(guide.take('--from 2025-10-01'))).toMatchObject({ code: 0 })
  const whole = await readFile(file, 'utf8')
  const days = lines(whole).map((line) => JSON.parse(line).created_at.slice(0, 10))
  expect(days).toEqual(['2025-10-01', '2025-10-02', '2025-10-30'])
  const continuing = guide.take('--after')
  const [first = '', second = ''] = lines(whole)
  const afterSecond = first.length + second.length + 2
  for (const end of [afterSecond - 10, afterSecond - 1, afterSecond, afterSecond + 50, whole.length]) {
    await writeFile(file, whole.slice(0, end))
    expect(await shell.run(continuing)).toMatchObject({ code: 0 })
    expect(await readFile(file, 'utf8')).toBe(whole)
  }
  expect(await shell.run(guide.take('gzip'))).toMatchObject({ code: 0 })
  expect(gunzipSync(await readFile(`${file}.gz`)).toString()).toBe(whole)
})

test('the settings of the guide are accepted, one beside the other', async () => {
  const settings = ['AUTH_AUDIT_KEEP', 'AUTH_AUDIT_PII_RETENTION'].map((name) => guide.take(name).trim())
  expect(await shell.run(`${settings.join(' ')} auth config check`)).toMatchObject({ code: 0 })
})

test('every command of the guide was run', () => {
  expect(guide.untaken()).toEqual([])
})
