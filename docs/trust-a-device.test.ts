import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { clientOf, type Running } from '../services/auth/test/auth-js/client.ts'
import { totpCode } from '../services/auth/test/second-factors.ts'
import { openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')

test('a device that is trusted by the code of the guide signs in without the second factor', async () => {
  const guide = openGuide('trust-a-device.md')
  const shell = await openShell(settings)
  onTestFinished(() => shell.close())
  await shell.write('devices.env', guide.file('devices.env'))
  const start = 'set -a; . ./devices.env; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  await shell.write('device.js', guide.file('device.js', { 'https://auth.example.com': url }))
  const code = pathToFileURL(join(shell.folder, 'device.js')).href
  const { withDevice, trustThisDevice, signOutHere, needsFactor } = await import(code)

  const account = { email: 'device@example.com', password: 'correct horse' }
  await fetch(`${url}/admin/users`, {
    method: 'POST',
    headers: { ...adminBy(settings.AUTH_JWT_SECRET), 'content-type': 'application/json' },
    body: JSON.stringify({ ...account, email_confirm: true }),
  })
  const kept = new Map<string, string>()
  const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: kept.set.bind(kept) }
  const { client: auth } = clientOf({ url } as Running, 'pkce', withDevice(storage))
  await auth.signInWithPassword(account)
  const { data } = await auth.mfa.enroll({ factorType: 'totp' })
  const proof = totpCode(data?.totp.secret as string, new Date())
  await auth.mfa.challengeAndVerify({ factorId: data?.id as string, code: proof })
  const { expires_at: end } = await trustThisDevice(auth, storage, 'Laptop')
  expect(Date.parse(end) - Date.now()).toBeGreaterThan(29 * 86_400_000)

  for (let count = 0; count < 2; count++) {
    await signOutHere(auth)
    await auth.signInWithPassword(account)
    expect(await needsFactor(auth)).toBe(false)
  }
  await expect(trustThisDevice(auth, storage, 'Again')).rejects.toThrow(/just proven/)
  const { client: elsewhere } = clientOf({ url } as Running, 'pkce')
  await elsewhere.signInWithPassword(account)
  expect(await needsFactor(elsewhere)).toBe(true)
  expect(guide.untaken()).toEqual([])
})
