import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { browserWithKey } from '../services/auth/test/auth-js/browser-with-key.ts'
import { clientOf, password, type Running } from '../services/auth/test/auth-js/client.ts'
import { totpCode } from '../services/auth/test/second-factors.ts'
import { openGuide } from './testing/guide.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')

test('a user adds, proves and removes an app and a key with the settings and code of the guide', async () => {
  const guide = openGuide('ask-for-a-second-factor.md')
  const shell = await openShell(settings)
  onTestFinished(() => shell.close())
  for (const name of ['factors.env', 'factors.js', 'sign-in.js']) await shell.write(name, guide.file(name))
  const start = 'set -a; . ./factors.env; AUTH_MAILER_AUTOCONFIRM=true; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  const load = (name: string) => import(pathToFileURL(join(shell.folder, name)).href)
  const [page, signIn] = await Promise.all([load('factors.js'), load('sign-in.js')])
  browserWithKey('https://app.example.com')
  const open = () => clientOf({ url } as Running, 'implicit', { experimental: { recoveryCodes: true } }).client
  const account = { email: `factor-${crypto.randomUUID()}@example.com`, password }
  const signedIn = async () => {
    const auth = open()
    await auth.signInWithPassword(account)
    expect(await signIn.needsFactor(auth)).toBe(true)
    return auth
  }

  const auth = open()
  await auth.signUp(account)
  expect(await signIn.needsFactor(auth)).toBe(false)
  const { id, totp } = await page.beginApp(auth, 'My phone')
  expect(totp.qr_code).toMatch(/^data:image/)
  const codes = await page.addApp(auth, id, totpCode(totp.secret, new Date()))
  expect(codes).toHaveLength(10)

  const withCode = await signedIn()
  await signIn.proveFactor(withCode, async () => codes[0])
  expect(await signIn.needsFactor(withCode)).toBe(false)
  const withApp = await signedIn()
  await signIn.proveFactor(withApp, async () => totpCode(totp.secret, new Date(), 1))
  const { credentials } = navigator as unknown as { credentials: object }
  vi.stubGlobal('navigator', { credentials: { create: () => Promise.reject(new Error('closed')) } })
  await expect(page.addKey(withApp, 'Blue key')).rejects.toThrow()
  vi.stubGlobal('navigator', { credentials })
  expect(await page.addKey(withApp, 'Blue key', page.THIS_DEVICE)).toBeUndefined()
  const withKey = await signedIn()
  await signIn.proveFactor(withKey, () => expect.unreachable())
  expect(await signIn.needsFactor(withKey)).toBe(false)

  const { data: factors } = await withKey.mfa.listFactors()
  for (const factor of [...(factors?.totp ?? []), ...(factors?.webauthn ?? [])]) {
    await page.removeFactor(withKey, factor.id)
    if (factor.factor_type === 'totp') continue
    expect(await signIn.needsFactor(withKey)).toBe(false)
  }
  expect(guide.untaken()).toEqual([])
})
