import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { lookInto } from '../packages/common/src/bench/postgres.ts'
import { makeClip } from './testing/clip.ts'
import { linkOfMail } from './testing/confirm-by-mail.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { databaseServerUrl, settings } = inject('devServices')
const guide = openGuide('prepare-the-database.md')
const SERVICES = ['auth', 'media'] as const
let shell: Shell

beforeAll(async () => {
  shell = await openShell({
    ...settings,
    AUTH_MIGRATE_ON_START: 'true',
    MEDIA_MIGRATE_ON_START: 'true',
  })
  for (const dir of ['BLOBS', 'WORK']) await shell.run(`MEDIA_${dir}_DIR='${join(shell.folder, dir)}'`)
})
afterAll(() => shell.close())

/** The guide's SQL for a service, with names that no other guide uses on this server. */
const sqlFor = (service: string, sql: string) =>
  sql
    .replaceAll(/\bauth\b/g, `prepared_${service}`)
    .replaceAll(/\bauth_service\b/g, `prepared_${service}_service`)
    .replaceAll('auth_queue', `${service}_queue`)

const addressOf = (service: string, user = `prepared_${service}`) =>
  Object.assign(new URL(databaseServerUrl), { username: user, password: 'password', pathname: `/prepared_${service}` })
    .href

/** Runs SQL as the administrator of the server. */
async function administer(sql: string, database?: string): Promise<void> {
  const address = new URL(databaseServerUrl)
  if (database) address.pathname = `/${database}`
  const { pool, close } = lookInto(address.href)
  try {
    for (const statement of sql.split(';\n').filter((each) => each.trim())) await pool.query(statement)
  } finally {
    await close()
  }
}

/** Serves and works as these roles: an address gets its mail, and an upload becomes a clip. */
async function expectBothWork(environment: string, email: string) {
  const start = (service: string, script: string) =>
    shell.start(`. ./.exported; ${environment} exec npx -y pnpm@12 -C services/${service} ${script}`)
  const serving = SERVICES.map((service) => start(service, 'start'))
  const working = SERVICES.map((service) => start(service, 'worker'))
  const [auth, media] = await Promise.all(serving.map((service) => service.says(/listening at (http:[^"]+)"/)))
  await Promise.all(working.map((service) => service.says(/(worker started)/)))

  const signedUp = await fetch(`${auth}/signup`, {
    method: 'POST',
    body: JSON.stringify({ email, password: 'correct horse' }),
  })
  expect(signedUp.status).toBe(200)
  expect(await linkOfMail(email)).toContain('/verify')

  const created = await shell.run(`media tokens create --name '${email}' --scopes write,read`)
  const token = created.stdout.trim().split(/\s+/).at(-1) as string
  const form = new FormData()
  form.set('file', new Blob([await readFile(await makeClip(email))]), 'clip.mp4')
  const uploaded = await fetch(`${media}/media/upload`, { method: 'POST', body: form, headers: { token } })
  const { success } = (await uploaded.json()) as { success: { files: { mp4: string } } }
  const mp4 = await fetch(String(media) + new URL(success.files.mp4).pathname)
  expect([uploaded.status, mp4.status]).toEqual([201, 200])

  const output = [...serving, ...working].map((service) => service.output()).join('\n')
  expect(output).not.toContain('permission denied')
  await Promise.all([...serving, ...working].map((service) => service.stop()))
}

test('roles that own their schemas and nothing else migrate, serve and work', async () => {
  const [server, database] = [guide.file('server.sql'), guide.file('database.sql')]
  for (const service of SERVICES) {
    await administer(sqlFor(service, server))
    await administer(sqlFor(service, database), `prepared_${service}`)
  }
  const migrated = await shell.run(
    guide.take('auth migrate', {
      'postgres://auth:password@db.internal/auth?sslmode=verify-full': addressOf('auth'),
      'postgres://media:password@db.internal/media?sslmode=verify-full': addressOf('media'),
    }),
  )
  expect(migrated).toMatchObject({ code: 0, stdout: expect.stringContaining('applied 0008-moderation') })
  await expectBothWork('', 'prepared@example.com')
})

test('a second role without the right to change tables serves and works', async () => {
  const sql = guide.file('second-role.sql')
  for (const service of SERVICES) await administer(sqlFor(service, sql), `prepared_${service}`)
  const addresses = SERVICES.map(
    (service) => `${service.toUpperCase()}_DATABASE_URL='${addressOf(service, `prepared_${service}_service`)}'`,
  )
  const environment = `${addresses.join(' ')} AUTH_MIGRATE_ON_START=false MEDIA_MIGRATE_ON_START=false`
  await expectBothWork(environment, 'second@example.com')
})

test('every command of the guide was run', () => {
  expect(guide.untaken()).toEqual([])
})
