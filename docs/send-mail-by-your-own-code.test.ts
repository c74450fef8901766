import { expect, inject, onTestFinished, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const NO_SERVER = { AUTH_SMTP_HOST: '', AUTH_SMTP_PORT: '', AUTH_SMTP_ADMIN_EMAIL: '' }

test('the receiver of the guide sends a code by SMS, the mail of a sign-up and both mails of a change of address', async () => {
  const guide = openGuide('send-mail-by-your-own-code.md')
  // The worker of the dev services would deliver the messages without the hook.
  const own = { AUTH_DB_NAMESPACE: 'hooks', AUTH_MIGRATE_ON_START: 'true', AUTH_WORKERS_ENABLED: 'true' }
  const shell = await openShell({ ...settings, ...NO_SERVER, ...own })
  onTestFinished(() => shell.close())
  expect((await shell.run(guide.take('randomBytes'))).stdout).toMatch(/^v1,whsec_[\w+/]{43}=\n$/)
  await shell.write('receiver.mjs', guide.file('receiver.mjs'))
  const env = guide.file('hook.env')
  await shell.write('hook.env', env)
  const started = 'set -a; . ./hook.env; SECRET="$AUTH_HOOK_SEND_EMAIL_SECRETS" PORT=0 exec node receiver.mjs'
  const receiver = shell.start(started)
  const port = await receiver.says(/receiving at port (\d+)/)
  await shell.write('hook.env', env.replaceAll('localhost:4000', `localhost:${port}`))
  expect((await shell.run(guide.take('hook test'))).stdout).toMatch(/^answered \{\}/)

  const url = await shell.start('exec npx -y pnpm@12 -C services/auth start').says(/listening at (http:[^"]+)"/)
  const call = async (method: string, path: string, body: object, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
    expect({ path, status: answer.status }).toEqual({ path, status: 200 })
    return (await answer.json()) as { access_token: string }
  }
  const phone = '4915112345678'
  await call('POST', '/otp', { phone })
  const code = await receiver.says(/SMS to 4915112345678: Your code is (\d{6})/)
  expect(await call('POST', '/verify', { type: 'sms', phone, token: code })).toHaveProperty('access_token')
  await call('POST', '/signup', { email: 'signs-up@example.com', password: 'correct horse' })
  await receiver.says(/mail to signs-up@example.com: Confirm your email address/)

  const create = 'echo "correct horse" | auth users create --email has@example.com --email-confirm --password-stdin'
  expect(await shell.run(create)).toMatchObject({ code: 0 })
  const signedIn = { email: 'has@example.com', password: 'correct horse' }
  const { access_token: token } = await call('POST', '/token?grant_type=password', signedIn)
  await call('PUT', '/user', { email: 'wants@example.com' }, token)
  await receiver.says(/mail to has@example.com: Confirm your new email address/)
  await receiver.says(/mail to wants@example.com: Confirm your new email address/)
  expect(guide.untaken()).toEqual([])
})
