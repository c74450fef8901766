import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { browserWithKey } from '../services/auth/test/auth-js/browser-with-key.ts'
import { clientOf, password, type Running } from '../services/auth/test/auth-js/client.ts'
import { openGuide } from './testing/guide.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')

test('a user adds, uses and removes a passkey with the settings and code of the guide', async () => {
  const guide = openGuide('sign-in-with-a-passkey.md')
  const shell = await openShell(settings)
  onTestFinished(() => shell.close())
  for (const name of ['passkeys.env', 'sign-up.env']) await shell.write(name, guide.file(name))
  const start =
    'set -a; . ./passkeys.env; . ./sign-up.env; AUTH_MAILER_AUTOCONFIRM=true; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  const here = { 'https://auth.example.com': url }
  const enabled = JSON.parse((await shell.run(guide.take('/settings', here))).stdout)
  expect(enabled).toMatchObject({ passkeys_enabled: true })

  await shell.write('passkeys.js', guide.file('passkeys.js', here))
  await shell.write('sign-up.js', guide.file('sign-up.js', here))
  const load = (name: string) => import(pathToFileURL(join(shell.folder, name)).href)
  const [page, { signUpWithPasskey }] = await Promise.all([load('passkeys.js'), load('sign-up.js')])
  browserWithKey('https://app.example.com')
  const { client: auth } = clientOf({ url } as Running)
  const { data } = await auth.signUp({ email: `passkey-${crypto.randomUUID()}@example.com`, password })
  const id = await page.addPasskey(auth, 'My key')
  for (const signIn of [page.offerPasskey, page.signInWithPasskey]) {
    const { client } = clientOf({ url } as Running)
    expect(await signIn(client)).toMatchObject({ id: data.user?.id })
  }
  expect((await auth.passkey.list()).data).toMatchObject([{ id, friendly_name: 'My key' }])
  await page.removePasskey(auth, id)
  expect(await page.offerPasskey(clientOf({ url } as Running).client)).toBeUndefined()

  browserWithKey('https://app.example.com')
  const { client: stranger } = clientOf({ url } as Running)
  const { id: userId } = await signUpWithPasskey(stranger, { data: { name: 'Pat' } })
  expect(await page.signInWithPasskey(clientOf({ url } as Running).client)).toMatchObject({
    ...{ id: userId, user_metadata: { name: 'Pat' } },
    app_metadata: { provider: 'passkey' },
  })
  expect(guide.untaken()).toEqual([])
})
