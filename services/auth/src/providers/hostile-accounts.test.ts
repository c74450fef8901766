// Accounts at a provider that are made to be somebody else's here, or to keep their owner out.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { json } from '../../test/far-side.ts'
import { type ProviderSignIns, refusalOf, startProviderSignIns } from '../../test/provider-sign-in.ts'

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns()
})
afterEach(() => {
  for (const at of ['token', '/api/v3/user', '/api/v3/user/emails'] as const) all.far.answer('github', at)
  all.far.answer('twitter', 'token')
})
afterAll(() => all.close())

const verified = (email: string, primary = false) => ({ email, verified: true, primary })

/** Signs in at GitHub, which has verified these addresses. */
function signInWith(...emails: string[]) {
  all.far.answer('github', '/api/v3/user/emails', json(emails.map((email, at) => verified(email, at === 0))))
  return all.signIn('github', all.newAccount('github'))
}

test('an address of letters that only look like those of another one is not that one', async () => {
  const { userId } = await all.service.signedIn('kate@example.com')
  // In lower case KELVIN SIGN is the letter k.
  const signIn = await signInWith('\u212Aate@example.com')
  expect(refusalOf(signIn)).toMatchObject({ error_description: 'Error getting user email from external provider' })
  const { body } = await all.service.get(`/admin/users/${userId}`, all.service.admin)
  expect(body.identities).toHaveLength(1)
})
