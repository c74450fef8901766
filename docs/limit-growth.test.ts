import { readFile } from 'node:fs/promises'
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

test('the audit entries of a month are exported, and an interrupted export continues', async () => {
  const { pool, close } = lookInto(String(settings.AUTH_DATABASE_URL))
  const add = (...times: string[]) =>
    pool.query(
      `insert into audit_log_entries (id, payload, created_at)
        select gen_random_uuid(), '{"action": "login"}', time from unnest($1::timestamptz[]) time`,
      [times],
    )
  await add('2025-09-30T23:59Z', '2025-10-01T00:00Z', '2025-10-02T00:00Z', '2025-11-01T00:00Z')
  const times = async () => {
    const lines = gunzipSync(await readFile(join(shell.folder, 'audit-2025-10.jsonl.gz')))
      .toString()
      .trim()
      .split('\n')
    return lines.map((line) => JSON.parse(line).created_at.slice(0, 10))
  }
  expect(await shell.run(guide.take('--from 2025-10-01'))).toMatchObject({ code: 0 })
  expect(await times()).toEqual(['2025-10-01', '2025-10-02'])
  await add('2025-10-30T00:00Z')
  await close()
  expect(await shell.run(guide.take('--after'))).toMatchObject({ code: 0 })
  expect(await times()).toEqual(['2025-10-01', '2025-10-02', '2025-10-30'])
})

test('the setting of the guide is accepted', async () => {
  const setting = guide.take('AUTH_AUDIT_KEEP').trim()
  expect(await shell.run(`${setting} auth config check`)).toMatchObject({ code: 0 })
})

test('every command of the guide was run', () => {
  expect(guide.untaken()).toEqual([])
})
