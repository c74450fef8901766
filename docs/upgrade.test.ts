import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { cloneTemplate } from '../packages/common/src/testing/template-database.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings, authUrl, databaseServerUrl } = inject('devServices')
const guide = openGuide('upgrade.md')
let shell: Shell
let database: Awaited<ReturnType<typeof cloneTemplate>>

beforeAll(async () => {
  // As far from the newest version as can be: nothing is there yet. The services can share it, one by its namespace.
  database = await cloneTemplate(databaseServerUrl, 'guide_upgrade', async () => {})
  const databases = { AUTH_DATABASE_URL: database.url, MEDIA_DATABASE_URL: database.url, MEDIA_DB_NAMESPACE: 'media' }
  shell = await openShell({ ...settings, ...databases })
})
afterAll(async () => {
  await shell.close()
  await database.drop()
})

test('what is pending is shown before, applied once by migrate, and the service is asked how it is', async () => {
  const before = await shell.run(guide.take('--dry-run'))
  expect(before.stdout).toMatch(/^pending +0001-accounts\n[\s\S]*\n-- 0001-accounts\n[\s\S]*create table users/)
  const applied = await shell.run(guide.take('auth migrate'))
  expect(applied.stdout).toMatch(/^applied 0001-accounts\n/)
  expect((await shell.run(guide.take('media migrate'))).stdout).toMatch(/^applied 0001-/)
  const here = { 'https://auth.example.com': authUrl }
  expect((await shell.run(guide.take('/health/ready', here))).code).toBe(0)
  const { stdout } = await shell.run(guide.take('/health', here))
  expect(JSON.parse(stdout)).toMatchObject({ version: expect.stringMatching(/^v?\d/) })
  expect(guide.untaken()).toEqual([])
}, 60_000)

// That old code serves beside a newer database: services/auth/test/processes.test.ts.
