import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { cloneTemplate } from '../packages/common/src/testing/database/template-database.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings, mediaUrl, databaseServerUrl } = inject('devServices')
const guide = openGuide('upgrade.md')
let shell: Shell
let database: Awaited<ReturnType<typeof cloneTemplate>>

beforeAll(async () => {
  // An empty database is the oldest possible version.
  database = await cloneTemplate(databaseServerUrl, 'guide_upgrade', async () => {})
  shell = await openShell({ ...settings, AUTH_DATABASE_URL: database.url })
})
afterAll(async () => {
  await shell.close()
  await database.drop()
})

test('migrate applies pending migrations, and the service reports its readiness and version', async () => {
  guide.leave('media migrate --dry-run', 'services/media/test/migrate.test.ts')
  guide.leave('media migrate', 'services/media/test/migrate.test.ts')
  expect((await shell.run(guide.take('auth migrate'))).stdout).toMatch(/^applied 0001-users\n/)
  const here = { 'https://media.example.com': mediaUrl }
  expect((await shell.run(guide.take('/health/ready', here))).code).toBe(0)
  const { stdout } = await shell.run(guide.take('/health', here))
  expect(JSON.parse(stdout)).toMatchObject({ version: expect.stringMatching(/^v?\d/) })
  expect(guide.untaken()).toEqual([])
})

// Test of old code on a newer database: services/auth/test/processes.slow.test.ts.
