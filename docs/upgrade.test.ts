import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { cloneTemplate } from '../packages/common/src/testing/template-database.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings, mediaUrl, databaseServerUrl } = inject('devServices')
const guide = openGuide('upgrade.md')
let shell: Shell
let database: Awaited<ReturnType<typeof cloneTemplate>>

beforeAll(async () => {
  // As far from the newest version as can be: nothing is there yet.
  database = await cloneTemplate(databaseServerUrl, 'guide_upgrade', async () => {})
  shell = await openShell({ ...settings, AUTH_DATABASE_URL: database.url })
})
afterAll(async () => {
  await shell.close()
  await database.drop()
})

test('migrate applies what is pending, and the service is asked whether it is ready and which version it is', async () => {
  guide.leave('media migrate --dry-run', 'services/media/test/migrate.test.ts')
  guide.leave('media migrate', 'services/media/test/migrate.test.ts')
  expect((await shell.run(guide.take('auth migrate'))).stdout).toMatch(/^applied 0001-accounts\n/)
  const here = { 'https://media.example.com': mediaUrl }
  expect((await shell.run(guide.take('/health/ready', here))).code).toBe(0)
  const { stdout } = await shell.run(guide.take('/health', here))
  expect(JSON.parse(stdout)).toMatchObject({ version: expect.stringMatching(/^v?\d/) })
  expect(guide.untaken()).toEqual([])
})

// That old code serves beside a newer database: services/auth/test/processes.slow.test.ts.
