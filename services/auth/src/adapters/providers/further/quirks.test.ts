// Deviations of the providers beyond the specification's eighteen.
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  type ProviderSignIns,
  refusalOf,
  signedInUser,
  startProviderSignIns,
} from '../../../../test/provider-sign-in.ts'
import { json } from '../../../../test/upstream.ts'
import { clientOf, sign } from '../../../../test/upstreams/sign-in-providers.ts'

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns()
})
afterEach(() => {
  all.far.forge()
  for (const name of ['kakao', 'slack_oidc', 'x', 'zoom']) all.far.answer(name, 'profile')
})
afterAll(() => all.close())

const needsVerification = { status: 302, error: 'access_denied', error_code: 'provider_email_needs_verification' }
const withoutProfile = { status: 302, error_description: 'Error getting user profile from external provider' }
const withoutAddress = { status: 302, error_description: 'Error getting user email from external provider' }

const identityOf = async (name: string) => {
  const user = await signedInUser(all.service, await all.signIn(name, all.newAccount(name)))
  return user.identities[0].identity_data
}
const refusal = async (name: string) => refusalOf(await all.signIn(name, all.newAccount(name)))

/** The sign-in of a stranger whose account has the address of a user: no word of proof opens it. */
async function expectUnproven(name: string, answer: (email: string) => void) {
  const account = all.newAccount(name)
  const { userId } = await all.service.signedIn(account.email)
  answer(account.email)
  expect(refusalOf(await all.signIn(name, account))).toMatchObject(needsVerification)
  const { body } = await all.service.get(`/admin/users/${userId}`, all.service.admin)
  expect(body.app_metadata.providers).toEqual(['email'])
}

describe('kakao', () => {
  const profile = (members: object) => all.far.answer('kakao', 'profile', json({ id: 42, kakao_account: members }))

  test.each([
    [true, false],
    [false, true],
    [false, false],
    [true, undefined],
    [undefined, true],
    ['true', 'true'],
    [1, 1],
  ])('valid %j and verified %j make no verified address', async (is_email_valid, is_email_verified) => {
    await expectUnproven('kakao', (email) => profile({ email, is_email_valid, is_email_verified }))
  })

  test.each([
    ['that the user did not share', { email_needs_agreement: true }],
    ['that is null', { email: null, is_email_valid: true, is_email_verified: true }],
  ])('an address %s is none', async (_what, members) => {
    profile(members)
    expect(await refusal('kakao')).toMatchObject(withoutAddress)
  })

  test('an account that shares nothing has no address either', async () => {
    all.far.answer('kakao', 'profile', json({ id: 43 }))
    expect(await refusal('kakao')).toMatchObject(withoutAddress)
  })

  test('an account without a profile has no name', async () => {
    const email = 'no-profile@kakao.example'
    profile({ email, is_email_valid: true, is_email_verified: true, profile: null })
    const identity = await identityOf('kakao')
    expect(identity).toMatchObject({ sub: '42', email, email_verified: true })
    expect(identity).not.toHaveProperty('name')
  })

  async function sendIdToken(account: object) {
    const nonce = createHash('sha256').update('the-nonce').digest('hex')
    const claims = { iss: all.far.base('kakao'), aud: clientOf('kakao').id, nickname: 'Kim', nonce, ...account }
    const body = { provider: 'kakao', id_token: await all.far.idToken(claims), nonce: 'the-nonce' }
    return all.service.post('/token?grant_type=id_token', body)
  }

  test('an id_token of its SDK yields the account, whose address needs a mail of ours', async () => {
    const { id, email } = all.newAccount('kakao')
    const granted = await sendIdToken({ sub: id, email })
    expect(granted).toMatchObject({ status: 422, body: { error_code: 'provider_email_needs_verification' } })
    expect((await all.service.mailbox.waitFor(email)).text).toContain('/verify')
  })

  test.each([
    ['the same address', {}],
    ['another address', { email: 'another@kakao.example' }],
  ])('an id_token with %s takes nothing from what a browser proved', async (_what, members) => {
    const account = all.newAccount('kakao')
    const known = await signedInUser(all.service, await all.signIn('kakao', account))
    const { body } = await sendIdToken({ sub: account.id, email: account.email, ...members })
    const { email, avatar_url } = known.identities[0].identity_data
    expect(body.user.id).toBe(known.id)
    expect(body.user.identities[0].identity_data).toMatchObject({
      email,
      email_verified: true,
      avatar_url,
      name: 'Kim',
    })
    expect(body.user.user_metadata).toMatchObject({ email, email_verified: true, avatar_url, name: 'Kim' })
  })

  test('an id_token replaces an address that nothing has proved', async () => {
    const account = all.newAccount('kakao')
    await signedInUser(all.service, await all.signIn('kakao', account))
    await all.service.deps.pool.query(
      `update identities set identity_data = identity_data || '{"email_verified": false}' where provider_id = $1`,
      [account.id],
    )
    const { body } = await sendIdToken({ sub: account.id, email: 'newer@kakao.example' })
    const data = body.user.identities[0].identity_data
    expect(data).toMatchObject({ email: 'newer@kakao.example', email_verified: false })
  })
})

describe('linkedin_oidc', () => {
  test.each([true, 'true'])('email_verified %j is verified', async (email_verified) => {
    all.far.forge((claims, keys) => sign({ ...claims, email_verified }, keys))
    expect((await identityOf('linkedin_oidc')).email_verified).toBe(true)
  })

  test.each([false, 'false', 'TRUE', '1', 1, {}, undefined])('email_verified %j is not', async (email_verified) => {
    all.far.forge((claims, keys) => sign({ ...claims, email_verified }, keys))
    expect(await refusal('linkedin_oidc')).toMatchObject(needsVerification)
  })

  test('its issuer may have the name that it had before 2024', async () => {
    all.far.forge((claims, keys) => sign({ ...claims, iss: all.far.base('linkedin_oidc') }, keys))
    expect((await identityOf('linkedin_oidc')).iss).toBe(all.far.base('linkedin_oidc'))
  })

  test('the name is that of the token, if it has one', async () => {
    all.far.forge((claims, keys) => sign({ ...claims, name: 'Dr. Liv Linked' }, keys))
    expect(await identityOf('linkedin_oidc')).toMatchObject({ name: 'Dr. Liv Linked', full_name: 'Dr. Liv Linked' })
  })

  test('an account is another identity than that of linkedin, and one user by its address', async () => {
    const account = all.newAccount('linkedin')
    const first = await signedInUser(all.service, await all.signIn('linkedin', account))
    const second = await signedInUser(all.service, await all.signIn('linkedin_oidc', account))
    expect([second.id, second.app_metadata.providers]).toEqual([first.id, ['linkedin', 'linkedin_oidc']])
  })
})

describe('slack_oidc', () => {
  const profile = (members: object) =>
    all.far.answer('slack_oidc', 'profile', (response, usual) =>
      json({ ...JSON.parse(usual), ...members })(response, usual),
    )

  test.each([false, undefined, null, 'true', 1])('email_verified %j is not verified', async (email_verified) => {
    await expectUnproven('slack_oidc', () => profile({ email_verified }))
  })

  test('a profile of another account than the id_token is refused', async () => {
    profile({ sub: 'U-another' })
    expect(await refusal('slack_oidc')).toMatchObject(withoutProfile)
  })

  test('the account is that of the signed id_token, whatever the profile says', async () => {
    profile({ 'https://slack.com/user_id': 'U-another' })
    expect((await identityOf('slack_oidc')).sub).not.toBe('U-another')
  })

  test('an id_token without the id of the user is refused', async () => {
    all.far.forge(({ 'https://slack.com/user_id': _id, ...claims }, keys) => sign(claims, keys))
    expect(await refusal('slack_oidc')).toMatchObject(withoutProfile)
  })

  test('a profile that is a failure with status 200 is refused', async () => {
    all.far.answer('slack_oidc', 'profile', json({ ok: false, error: 'invalid_auth' }))
    expect(await refusal('slack_oidc')).toMatchObject(withoutProfile)
  })
})

describe('x', () => {
  test('without the permission for addresses the sign-in says that there is none', async () => {
    all.far.answer('x', 'profile', json({ data: { id: '7', name: 'Xia', username: 'xia' } }))
    expect(await refusal('x')).toMatchObject(withoutAddress)
  })

  test('without that permission the account gets in where an address is optional', async () => {
    const own = await all.service.with({ AUTH_EXTERNAL_X_EMAIL_OPTIONAL: 'true' })
    all.far.answer('x', 'profile', json({ data: { id: '8', name: 'Xia', username: 'xia' } }))
    const begun = await own.get('/authorize?provider=x')
    const callback = all.far.visit('x', new URL(String(begun.headers.location)), { id: '8' })
    const answer = await own.get(`/callback?${new URLSearchParams(callback)}`)
    expect(answer.headers.location).toContain('#access_token=')
    await own.close()
  })

  test('the verifier of PKCE belongs to the challenge', async () => {
    const { location } = await all.signIn('x', all.newAccount('x'))
    const form = all.far.requests('x').find(({ path }) => path === '/2/oauth2/token')?.form
    const challenge = createHash('sha256').update(String(form?.code_verifier)).digest('base64url')
    expect(location.searchParams.get('code_challenge')).toBe(challenge)
  })

  test('a person has one user at x and at twitter, by the address', async () => {
    const account = all.newAccount('twitter')
    const first = await signedInUser(all.service, await all.signIn('twitter', account))
    const second = await signedInUser(all.service, await all.signIn('x', account))
    expect([second.id, second.app_metadata.providers]).toEqual([first.id, ['twitter', 'x']])
  })
})

describe('zoom', () => {
  const profile = (members: object) =>
    all.far.answer('zoom', 'profile', (response, usual) => json({ ...JSON.parse(usual), ...members })(response, usual))

  test.each([
    { verified: 0 },
    { verified: undefined },
    { verified: 2 },
    { verified: true },
    { verified: '1' },
    { verified: 0, login_types: [101] },
    { verified: 0, login_type: 1 },
  ])('an address is not verified with %j', async (members) => {
    await expectUnproven('zoom', () => profile(members))
  })

  test('takes no scopes of the application', async () => {
    const { location } = await all.signIn('zoom', all.newAccount('zoom'), { query: '&scopes=user:read:user' })
    expect(location.searchParams.has('scope')).toBe(false)
  })
})

test.each([
  ['zoom', 'profile', { first_name: { a: 1 }, last_name: 'Zed' }, 'Zed'],
  ['facebook', 'profile', { first_name: ['a'], last_name: 'Fay' }, 'Fay'],
  ['linkedin_oidc', 'id_token', { name: '', given_name: { a: 1 }, family_name: 'Link' }, 'Link'],
  ['discord', 'profile', { username: 'dis', discriminator: { a: 1 } }, 'dis'],
  ['x', 'profile', { data: { id: '9', name: 'Xia', username: { a: 1 }, confirmed_email: 'xia@x.example' } }, 'Xia'],
] as const)('a part of a name at %s that is no text is left out', async (name, where, members, expected) => {
  if (where === 'profile') {
    all.far.answer(name, 'profile', (response, usual) => json({ ...JSON.parse(usual), ...members })(response, usual))
  } else {
    all.far.forge((claims, keys) => sign({ ...claims, ...members }, keys))
  }
  const identity = await identityOf(name)
  expect([identity.name, JSON.stringify(identity).includes('object Object')]).toEqual([expected, false])
  all.far.answer(name, 'profile')
})

describe('vercel_marketplace', () => {
  test('a person with several installations is one account', async () => {
    const account = all.newAccount('vercel_marketplace')
    const signInAt = async (sub: string) => {
      all.far.forge((claims, keys) => sign({ ...claims, sub, global_user_id: account.id }, keys))
      return signedInUser(all.service, await all.signIn('vercel_marketplace', account))
    }
    const [first, second] = [await signInAt('at-one-installation'), await signInAt('at-another')]
    expect(second.id).toBe(first.id)
    expect(second.identities).toMatchObject([{ identity_data: { sub: `global_user_id:${account.id}` } }])
  })

  test.each(['', 7, null])('a global_user_id that is %j is none', async (global_user_id) => {
    all.far.forge((claims, keys) => sign({ ...claims, sub: `sub-${global_user_id}`, global_user_id }, keys))
    expect((await identityOf('vercel_marketplace')).sub).toBe(`sub-${global_user_id}`)
  })

  test('an integration signs its user in by the id_token that it has', async () => {
    const { id, email } = all.newAccount('vercel_marketplace')
    const claims = { aud: clientOf('vercel_marketplace').id, sub: id, user_email: email, user_name: 'Val' }
    const id_token = await all.far.idToken({ iss: all.far.base('vercel_marketplace'), ...claims })
    const { body } = await all.service.post('/token?grant_type=id_token', { provider: 'vercel_marketplace', id_token })
    expect(body.user).toMatchObject({ email, app_metadata: { provider: 'vercel_marketplace' } })
    expect(body.user.identities[0].identity_data).toMatchObject({ sub: id, name: 'Val', email_verified: true })
  })
})
