import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { agree, giveEnvironment, ownAddress, startOAuthService } from './testing/oauth-server.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const dependencies = join(import.meta.dirname, '../services/auth/node_modules')

test('an application of another team is registered, signs a user in, stays signed in and signs out', async () => {
  const guide = openGuide('sign-in-with-this-service.md')
  const own = await ownAddress()
  const shell = await openShell({ ...settings, ...own.settings })
  onTestFinished(() => shell.close())
  await shell.write('oauth.env', guide.file('oauth.env'))
  const secret = settings.AUTH_JWT_SECRET
  const auth = await startOAuthService(shell, { url: own.url, file: 'oauth.env', secret })
  const there = { 'https://auth.example.com': auth.url }
  const registered = JSON.parse((await shell.run(auth.token + guide.take('"Reports"', there))).stdout)

  await shell.write('sign-in.mjs', guide.file('sign-in.mjs'))
  await symlink(dependencies, join(shell.folder, 'node_modules'))
  giveEnvironment({ AUTH_URL: auth.url, CLIENT_ID: registered.client_id, CLIENT_SECRET: registered.client_secret })
  const application = await import(pathToFileURL(join(shell.folder, 'sign-in.mjs')).href)
  const session = await auth.signIn('reports@example.com')
  const { location, kept } = await application.beginSignIn()
  const back = await agree(location, session)
  expect(back).toMatch(/^https:\/\/reports\.example\.com\/callback\?/)
  const { tokens, user } = await application.finishSignIn(back, kept)
  expect(user).toMatchObject({ sub: tokens.claims().sub, email: 'reports@example.com' })
  await expect(application.finishSignIn(back, kept)).rejects.toMatchObject({ error: 'invalid_grant' })

  // The code that was used twice has ended its session: the user signs in again, without a question.
  const again = await application.beginSignIn()
  const { tokens: newer } = await application.finishSignIn(await agree(again.location, session), again.kept)
  const refreshed = await application.refresh(newer.refresh_token)
  expect(refreshed.access_token).not.toBe(newer.access_token)
  await application.signOut(refreshed.refresh_token)
  await expect(application.refresh(refreshed.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  expect(guide.untaken()).toEqual([])
})
