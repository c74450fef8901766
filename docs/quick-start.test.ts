import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { confirmByMail } from './testing/confirm-by-mail.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { authUrl, mediaUrl, dataDir } = inject('devServices')
const guide = openGuide('quick-start.md')
let shell: Shell

beforeAll(async () => {
  shell = await openShell()
  await symlink(dataDir, join(shell.folder, '.data'))
})
afterAll(() => shell.close())

test('a newcomer registers a user, signs her in and uploads a clip', async () => {
  guide.leave('pnpm@12 dev', 'docs/testing/global-setup.ts')

  const auth = { 'http://127.0.0.1:8081': authUrl }
  const signUp = await shell.run(guide.take('/signup', auth))
  expect(JSON.parse(signUp.stdout)).toMatchObject({ email: 'ada@example.com' })
  await confirmByMail('ada@example.com')
  const signIn = await shell.run(guide.take('grant_type=password', auth))
  expect(JSON.parse(signIn.stdout)).toMatchObject({
    access_token: expect.any(String),
    refresh_token: expect.any(String),
  })

  const upload = await shell.run(guide.take('/media/upload', { 'http://127.0.0.1:8082': mediaUrl }))
  const { page, files } = JSON.parse(upload.stdout.split('\n').at(-1) ?? '').success
  for (const url of [page, ...Object.values<string>(files)]) expect((await fetch(url)).status).toBe(200)
  guide.leave('pnpm@12 demo', 'packages/common/src/dev/demo.slow.test.ts')
  expect(guide.untaken()).toEqual([])
})
