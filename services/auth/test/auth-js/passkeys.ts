// Passkeys, as an application and its admins use them. In a real browser: flows/passkeys/browser.slow.test.ts.
import { perFile } from '@services/common/testing/per-file'
import { expect } from 'vitest'
import { ORIGIN, PASSKEYS } from '../webauthn/passkeys.ts'
import { browserWithKey } from './browser-with-key.ts'
import { adminOf, test as base, clientOf, type Running, signIn, startRunning } from './client.ts'

const test = base.extend<object & { keys: Running }>({
  keys: perFile(() => startRunning(PASSKEYS)),
})

test('registerPasskey, signInWithPasskey, and list, update and delete of passkeys', async ({ keys }) => {
  browserWithKey(ORIGIN)
  const { client } = clientOf(keys)
  const { user } = await signIn(keys, client, 'passkey@example.com')
  const registered = await client.registerPasskey()
  expect(registered).toMatchObject({ error: null, data: { friendly_name: 'Passkey' } })
  const passkeyId = registered.data?.id as string
  expect((await client.registerPasskey()).error).toMatchObject({ status: 422, code: 'webauthn_credential_exists' })
  const { client: later } = clientOf(keys)
  const events: string[] = []
  later.onAuthStateChange((event) => void events.push(event))
  const signedIn = await later.signInWithPasskey({ options: { mediation: 'conditional' } })
  expect([signedIn.error, signedIn.data?.user?.id]).toEqual([null, user.id])
  await expect.poll(() => events).toContain('SIGNED_IN')
  expect(await later.passkey.list()).toMatchObject({ error: null, data: [{ id: passkeyId }] })
  expect(await later.passkey.update({ passkeyId, friendlyName: 'Blue' })).toMatchObject({
    error: null,
    data: { id: passkeyId, friendly_name: 'Blue' },
  })
  expect(await later.passkey.delete({ passkeyId })).toMatchObject({ error: null })
  expect((await clientOf(keys).client.signInWithPasskey()).error).toMatchObject({
    status: 400,
    code: 'webauthn_verification_failed',
  })
})

test('passkeys by single steps, and the reasons of refusals', async ({ keys }) => {
  const { client } = clientOf(keys)
  await signIn(keys, client, 'passkey-steps@example.com')
  const begun = await client.passkey.startRegistration()
  expect(begun).toMatchObject({ error: null, data: { options: { rp: { id: 'site.example' } } } })
  const challengeId = '00000000-0000-0000-0000-000000000000'
  const refused = await client.passkey.verifyRegistration({ challengeId, credential: {} as never })
  expect(refused.error).toMatchObject({ status: 400, code: 'webauthn_challenge_not_found' })
  expect(await client.passkey.startAuthentication()).toMatchObject({ error: null, data: { options: {} } })
  const unknown = await client.passkey.verifyAuthentication({ challengeId, credential: {} as never })
  expect(unknown.error).toMatchObject({ status: 400, code: 'webauthn_challenge_not_found' })
})

test('admin.passkey lists and deletes passkeys', async ({ keys }) => {
  browserWithKey(ORIGIN)
  const { client } = clientOf(keys)
  const { user } = await signIn(keys, client, 'passkey-admin@example.com')
  const { data } = await client.registerPasskey()
  const admin = adminOf(keys)
  const userId = user.id
  expect(await admin.passkey.listPasskeys({ userId })).toMatchObject({ error: null, data: [{ id: data?.id }] })
  const passkeyId = data?.id as string
  expect((await admin.passkey.deletePasskey({ userId, passkeyId })).error).toBeNull()
  expect((await admin.passkey.deletePasskey({ userId, passkeyId })).error).toMatchObject({ status: 404 })
})
