import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings, authUrl } = inject('devServices')
const guide = openGuide('migrate-users-from-another-system.md')
let shell: Shell

/** bcrypt of "correct horse", cost 4. */
const BCRYPT = '$2b$04$mhCQ6XLU1ZQAB1TT39wFf.PdJ9t2MmAA.IlchzXPhRXNQ49JFnEVG'

const auth = { 'https://auth.example.com': authUrl }

beforeAll(async () => {
  shell = await openShell(settings)
})
afterAll(() => shell.close())

test('users keep ids and passwords, broken lines are named, and HTTP imports users as well', async () => {
  await shell.write('users.jsonl', guide.file('users.jsonl', { BCRYPT }))
  const imports = guide.take('users import')
  const [dryRun = '', real = ''] = imports.trim().split('\n')
  const tried = await shell.run(dryRun)
  expect(tried.stdout).toMatch(/^3 lines in .*: 2 would be imported, 0 already there, 1 refused\nfix these lines/)
  expect(tried.stderr).toMatch(/^line 3: /m)
  expect((await shell.run(real)).stdout).toMatch(
    /: 2 imported, 0 already there, 1 refused\nthe other users are imported/,
  )

  const signIn = JSON.parse((await shell.run(guide.take('grant_type=password', auth))).stdout)
  expect(signIn.user).toMatchObject({
    id: '6f1c2d34-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
    user_metadata: { name: 'Grace' },
  })

  const byHttp = guide.take('/admin/users', {
    ...auth,
    BCRYPT,
    // configure-auth-for-production.test.ts runs the command, where it is explained.
    '$(auth tokens admin)': adminBy(settings.AUTH_JWT_SECRET).authorization.replace('Bearer ', ''),
  })
  expect(JSON.parse((await shell.run(byHttp)).stdout)).toMatchObject({ email: 'edsger@example.com' })
  const password = { email: 'edsger@example.com', password: 'correct horse' }
  const signedIn = await fetch(`${authUrl}/token?grant_type=password`, {
    method: 'POST',
    body: JSON.stringify(password),
  })
  expect(signedIn.status).toBe(200)

  await shell.run(guide.take('users export'))
  const exported = await readFile(join(shell.folder, 'export.jsonl'), 'utf8')
  const lines = exported
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const grace = lines.find(({ email }) => email === 'grace@example.com')
  // Our hash, no longer the imported one.
  expect(grace.password_hash).toMatch(/^\$argon2id\$/)
  expect(guide.untaken()).toEqual([])
})
