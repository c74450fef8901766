import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { makeClip } from './testing/clip.ts'
import { openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'
import { upload } from './testing/upload.ts'

const { authUrl, settings, databaseServerUrl, postgresTools } = inject('devServices')
const guide = openGuide('back-up-and-restore.md')
let shell: Shell

const PASSWORD = 'of-the-restored-databases'

/** Connects as the owner role, which has no other rights. */
const restoredDatabase = (role: string) =>
  Object.assign(new URL(databaseServerUrl), { username: role, password: PASSWORD, pathname: `/${role}_restored` }).href

beforeAll(async () => {
  const { PATH = '' } = process.env
  shell = await openShell({
    ...settings,
    ADMIN_DATABASE_URL: databaseServerUrl,
    PATH: [join(import.meta.dirname, 'testing/bin'), postgresTools, join(process.execPath, '..'), PATH].join(':'),
  })
})
afterAll(async () => {
  await shell.close()
})

const post = (url: string, body: object, headers = {}) =>
  fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })

test('after a restore a user signs in and a clip is served', async ({ skip }) => {
  skip(!postgresTools, 'no pg_dump that understands the server: apt-get install postgresql brings both')
  const credentials = { email: 'hedy@example.com', password: 'correct horse' }
  const admin = adminBy(settings.AUTH_JWT_SECRET)
  await post(`${authUrl}/admin/users`, { ...credentials, email_confirm: true }, admin)
  const session = async (url: string, grant: string, body: object) => {
    const answer = await post(`${url}/token?grant_type=${grant}`, body)
    return { status: answer.status, ...((await answer.json()) as { refresh_token: string }) }
  }
  const [left, used] = [
    await session(authUrl, 'password', credentials),
    await session(authUrl, 'password', credentials),
  ]
  const { files } = await upload(await makeClip('back-up'))
  const watched = Buffer.from(await (await fetch(files.mp4)).arrayBuffer())

  expect(await shell.run(guide.take('pg_dump'))).toMatchObject({ code: 0, stderr: '' })
  // Created after the back-up, which lacks it.
  const refreshed = await session(authUrl, 'refresh_token', used)

  const restored = join(shell.folder, 'restored')
  for (const role of ['auth', 'media']) {
    const roleMade = `psql --quiet "$ADMIN_DATABASE_URL" --command="create role ${role} login password '${PASSWORD}'"`
    expect(await shell.run(roleMade)).toMatchObject({ code: 0, stderr: '' })
  }
  expect(await shell.run(guide.take('createdb'))).toMatchObject({ code: 0, stderr: '' })
  const restore = guide.take('pg_restore', {
    'postgres://auth@db.internal/auth_restored': restoredDatabase('auth'),
    'postgres://media@db.internal/media_restored': restoredDatabase('media'),
    '/var/lib/media/restored': restored,
  })
  expect(await shell.run(restore)).toMatchObject({ code: 0, stderr: '' })
  const check = await shell.run(`export MEDIA_WORK_DIR='${restored}/work'\n${guide.take('blobs check')}`)
  expect(check).toMatchObject({ code: 0, stdout: expect.stringContaining('no findings') })

  const keys = await shell.run(guide.take('encryption status'))
  expect(keys).toMatchObject({ code: 0, stdout: expect.stringMatching(/^without id +encrypts +factors +\d+$/m) })

  const start = (service: string) => shell.start(`. ./.exported; exec npx -y pnpm@12 -C services/${service} start`)
  const [auth, media] = await Promise.all(
    [start('auth'), start('media')].map((started) => started.says(/listening at (http:[^"]+)"/)),
  )
  expect((await session(String(auth), 'password', credentials)).status).toBe(200)
  // A session continues if it was not used since, and also if its token is newer than the restored database.
  expect((await session(String(auth), 'refresh_token', left)).status).toBe(200)
  expect((await session(String(auth), 'refresh_token', refreshed)).status).toBe(200)
  const served = await fetch(String(media) + new URL(files.mp4).pathname)
  expect(Buffer.from(await served.arrayBuffer()).equals(watched)).toBe(true)
  expect(guide.untaken()).toEqual([])
})
