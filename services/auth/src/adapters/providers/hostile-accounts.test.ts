// Accounts at a provider made to take over another user's account, or to keep its owner out.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ProviderSignIns, refusalOf, signedInUser, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { json } from '../../../test/upstream.ts'

const password = 'only the stranger knows'

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
  // KELVIN SIGN becomes the letter k in lower case.
  const signIn = await signInWith('\u212Aate@example.com')
  expect(refusalOf(signIn)).toMatchObject({ error_description: 'External provider reported an invalid email address' })
  const { body } = await all.service.get(`/admin/users/${userId}`, all.service.admin)
  expect(body.identities).toHaveLength(1)
})

describe('a stranger who signed up with several addresses of one owner', () => {
  const squat = (...emails: string[]) =>
    Promise.all(emails.map((email) => all.service.post('/signup', { email, password })))

  test('does not keep them out: they get one account, and the stranger has none', async () => {
    await squat('one@squatted.example', 'two@squatted.example')
    const user = await signedInUser(all.service, await signInWith('two@squatted.example', 'one@squatted.example'))
    expect([user.email, user.app_metadata.providers]).toEqual(['two@squatted.example', ['github']])
    const { body } = await all.service.get('/admin/users?filter=squatted.example', all.service.admin)
    expect(body.users.map(({ id }: { id: string }) => id)).toEqual([user.id])
  })

  test('does not keep them from the account they have', async () => {
    const { userId } = await all.service.signedIn('own@example.com')
    await squat('another@example.com')
    const user = await signedInUser(all.service, await signInWith('another@example.com', 'own@example.com'))
    expect([user.id, user.email, user.app_metadata.providers]).toEqual([userId, 'own@example.com', ['email', 'github']])
  })

  test('of two accounts with the same addresses in different order at once both get in', async () => {
    for (let round = 0; round < 3; round++) {
      const emails = [`a${round}@order.example`, `b${round}@order.example`]
      await squat(...emails)
      let asked = 0
      all.far.answer('github', '/api/v3/user/emails', (response, usual) => {
        const listed = asked++ % 2 ? emails : emails.toReversed()
        json(listed.map((email) => verified(email)))(response, usual)
      })
      const accounts = Array.from({ length: 4 }, () => all.newAccount('github'))
      let told = 0
      all.far.answer('github', '/api/v3/user', (response, usual) =>
        json({ id: Number(accounts[told++ % 4]?.id) })(response, usual),
      )
      const signIns = await Promise.all(accounts.map((account) => all.signIn('github', account)))
      expect(signIns.map(({ answer }) => String(answer.headers.location).includes('#access_token='))).toEqual(
        accounts.map(() => true),
      )
    }
  })
})

test('two accounts that have both proven their address stay two', async () => {
  await all.service.signedIn('first-of-two@example.com')
  await all.service.signedIn('second-of-two@example.com')
  const refusal = refusalOf(await signInWith('first-of-two@example.com', 'second-of-two@example.com'))
  expect(refusal).toMatchObject({ error_code: 'conflict' })
})

test('a token of OAuth 1.0a that no browser can carry in an address is refused', async () => {
  all.far.answer('twitter', 'token', (response) => {
    response.end(new URLSearchParams({ oauth_token: 'x'.repeat(16 * 1024 + 1), oauth_token_secret: 'a' }).toString())
  })
  const refusal = refusalOf(await all.signIn('twitter', all.newAccount('twitter')))
  expect(refusal).toMatchObject({ status: 302, error_description: 'Unable to retrieve access token' })
})
