import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { confirmByMail } from './testing/confirm-by-mail.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { authUrl } = inject('devServices')
const guide = openGuide('../services/auth/README.md')
let shell: Shell

beforeAll(async () => {
  shell = await openShell()
})
afterAll(() => shell.close())

test('the three requests of the README of auth register a user, sign in and read the account', async () => {
  guide.leave('pnpm@12 dev', 'docs/testing/global-setup.ts')
  guide.leave('new AuthClient', 'docs/connect-a-web-application.test.ts')

  const service = { 'http://127.0.0.1:8081': authUrl }
  const given = { ...service, 'ada@example.com': 'ada.readme@example.com' }
  await shell.run(guide.take('/signup', given))
  await confirmByMail('ada.readme@example.com')
  const signIn = guide.take('grant_type=password', given)
  const account = await shell.run(`${signIn}${guide.take('/user', service)}`)
  expect(JSON.parse(account.stdout)).toMatchObject({ email: 'ada.readme@example.com' })
  expect(guide.untaken()).toEqual([])
})
