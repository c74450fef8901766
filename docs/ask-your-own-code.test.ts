import { expect, inject, onTestFinished, test } from 'vitest'
import { lookInto } from '../packages/common/src/bench/postgres.ts'
import { openGuide } from './testing/guide.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const password = 'correct horse'

test('the receiver and the function of the guide decide about sign-ups, claims and passwords', async () => {
  const guide = openGuide('ask-your-own-code.md')
  const own = { AUTH_DB_NAMESPACE: 'own_code', AUTH_MIGRATE_ON_START: 'true', AUTH_MAILER_AUTOCONFIRM: 'true' }
  const shell = await openShell({ ...settings, ...own })
  onTestFinished(() => shell.close())
  expect((await shell.run(guide.take('randomBytes'))).stdout).toMatch(/^v1,whsec_[\w+/]{43}=\n$/)
  await shell.write('receiver.mjs', guide.file('receiver.mjs'))
  const env = guide.file('hook.env')
  await shell.write('hook.env', env)
  const started = 'set -a; . ./hook.env; SECRET="$AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS" PORT=0 exec node receiver.mjs'
  const port = await shell.start(started).says(/receiving at port (\d+)/)
  await shell.write('hook.env', env.replaceAll('localhost:4000', `localhost:${port}`))
  expect((await shell.run(guide.take('hook test'))).stdout).toContain('"department":"sales"')

  const serve = (file: string) =>
    shell.start(`set -a; . ./${file}; exec npx -y pnpm@12 -C services/auth start`).says(/listening at (http:[^"]+)"/)
  const ask = async (url: string, path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as { access_token: string; msg?: string } }
  }
  const departmentIn = ({ body }: { body: { access_token: string } }) =>
    JSON.parse(Buffer.from(body.access_token.split('.')[1] as string, 'base64url').toString()).department

  const url = await serve('hook.env')
  const stranger = await ask(url, '/signup', { email: 'ada@elsewhere.example', password })
  expect(stranger).toMatchObject({ status: 403, body: { msg: 'Only for members' } })
  const member = { email: 'ada@example.com', password }
  expect(departmentIn(await ask(url, '/signup', member))).toBe('sales')
  const wrong = () => ask(url, '/token?grant_type=password', { ...member, password: 'wrong' })
  for (let attempt = 0; attempt < 3; attempt++) expect((await wrong()).body.msg).toBe('Invalid login credentials')
  // A stranger's attempts lock no user out.
  expect(departmentIn(await ask(url, '/token?grant_type=password', member))).toBe('sales')

  const { pool, close } = lookInto(settings.AUTH_DATABASE_URL as string)
  onTestFinished(close)
  await pool.query(guide.file('claims.sql'))
  onTestFinished(async () => void (await pool.query('drop function public.add_department')))
  await shell.write('function.env', guide.file('function.env'))
  const byFunction = await serve('function.env')
  expect(departmentIn(await ask(byFunction, '/token?grant_type=password', member))).toBe('support')
  expect(guide.untaken()).toEqual([])
})
