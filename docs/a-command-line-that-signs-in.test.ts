import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { agree, connectDevice, ownAddress, startOAuthService } from './testing/oauth-server.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const dependencies = join(import.meta.dirname, '../services/auth/node_modules')

test('a program signs its user in by the browser of its machine, and a television by a code', async () => {
  const guide = openGuide('a-command-line-that-signs-in.md')
  const own = await ownAddress()
  const shell = await openShell({ ...settings, ...own.settings })
  onTestFinished(() => shell.close())
  await shell.write('oauth.env', openGuide('sign-in-with-this-service.md').file('oauth.env'))
  const secret = settings.AUTH_JWT_SECRET
  const auth = await startOAuthService(shell, { url: own.url, file: 'oauth.env', secret })
  const there = { 'https://auth.example.com': auth.url }
  const registered = JSON.parse((await shell.run(auth.token + guide.take('"public"', there))).stdout)
  const television = JSON.parse((await shell.run(guide.take('"grant_types"', there))).stdout)
  for (const name of ['reports.mjs', 'television.mjs']) await shell.write(name, guide.file(name))
  await symlink(dependencies, join(shell.folder, 'node_modules'))
  const session = await auth.signIn('terminal@example.com')

  const run = (name: string, { client_id }: { client_id: string }) =>
    shell.start(`AUTH_URL=${auth.url} CLIENT_ID=${client_id} exec node ${name}`)

  // The television asks after five seconds, in which the other program signs in.
  const device = run('television.mjs', television)
  const [page = '', code = ''] = (await device.says(/Open (\S+ and enter \S+)/)).split(' and enter ')
  await connectDevice(page, code, 'terminal@example.com')
  const program = run('reports.mjs', registered)
  const back = await agree(await program.says(/Open (\S+)/), session)
  expect(await (await fetch(back)).text()).toBe('You can close this window.')
  await program.says(/(Signed in as terminal@example\.com)/)
  await device.says(/(Signed in as terminal@example\.com)/)
  expect(guide.untaken()).toEqual([])
})
