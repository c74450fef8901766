// Deviations of single providers.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ProviderSignIns, refusalOf, signedInUser, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { json, text } from '../../../test/upstream.ts'
import { clientOf, sign } from '../../../test/upstreams/sign-in-providers.ts'

let all: ProviderSignIns
let folder: string
let log: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quirks-'))
  log = join(folder, 'log')
  all = await startProviderSignIns({ AUTH_LOG_LEVEL: 'warn', AUTH_LOG_FILE: log })
})
afterEach(() => {
  all.far.forge()
  for (const [name, at] of changed.splice(0)) all.far.answer(name, at)
})
afterAll(async () => {
  await all.close()
  await rm(folder, { recursive: true })
})

type Answer = Parameters<ProviderSignIns['far']['answer']>
const changed: [Answer[0], Answer[1]][] = []
/** Another answer of a provider within one test. */
function answer(...[name, at, how]: Answer): void {
  changed.push([name, at])
  all.far.answer(name, at, how)
}

const claimsOf = async (name: string, brings: Record<string, string> = {}) => {
  const signIn = await all.signIn(name, all.newAccount(name), { brings })
  const user = await signedInUser(all.service, signIn)
  return user.identities[0].identity_data
}
const needsVerification = { status: 302, error: 'access_denied', error_code: 'provider_email_needs_verification' }

describe('apple', () => {
  test.each([
    ['both names', '{"name":{"firstName":"Ada","lastName":"Apple"},"email":"x@y.example"}', 'Ada Apple'],
    ['one name', '{"name":{"firstName":"Ada","lastName":""}}', 'Ada'],
    ['no name', '{"email":"x@y.example"}', undefined],
    ['a name that is none', '{"name":{"firstName":7,"lastName":{}}}', undefined],
    ['no JSON', '{"name":', undefined],
  ])('the form of a first sign-in tells %s, and never an address', async (_what, user, name) => {
    const claims = await claimsOf('apple', { user })
    expect(claims.name).toBe(name)
    expect(claims.full_name).toBe(name)
    expect(claims.email).toMatch(/^apple-/)
  })

  test.each([
    [true, true],
    ['true', true],
    [false, false],
    ['false', false],
  ])('is_private_email %j becomes %j', async (is_private_email, expected) => {
    all.far.forge((claims, keys) => sign({ ...claims, is_private_email }, keys))
    expect((await claimsOf('apple')).custom_claims.is_private_email).toBe(expected)
  })

  test('an address it says is not verified is not', async () => {
    all.far.forge((claims, keys) => sign({ ...claims, email_verified: 'false' }, keys))
    expect(refusalOf(await all.signIn('apple', all.newAccount('apple')))).toMatchObject(needsVerification)
  })

  test('neither scopes nor parameters of the application go on to it, nor its nonce', async () => {
    const query = '&scopes=more&prompt=login&nonce=chosen-by-the-application'
    const { location } = await all.signIn('apple', all.newAccount('apple'), { query })
    const asked = Object.fromEntries(location.searchParams)
    expect(asked.scope).toBe('email name')
    expect(asked).not.toHaveProperty('prompt')
    expect(asked.nonce).not.toBe('chosen-by-the-application')
  })
})

describe('azure: an address is verified', () => {
  test.each([undefined, true, 1, '1', 'true'])('where xms_edov is %j', async (xms_edov) => {
    all.far.forge((claims, keys) => sign({ ...claims, xms_edov }, keys))
    expect((await claimsOf('azure')).email_verified).toBe(true)
  })

  test.each([false, 0, '0', 'false', null, {}])('but not where it is %j', async (xms_edov) => {
    all.far.forge((claims, keys) => sign({ ...claims, xms_edov }, keys))
    expect(refusalOf(await all.signIn('azure', all.newAccount('azure')))).toMatchObject(needsVerification)
  })
})

describe('discord', () => {
  test.each([
    [{ avatar: null, discriminator: '1337' }, 'https://cdn.discordapp.com/embed/avatars/2.png'],
    [{ avatar: null, discriminator: '0' }, 'https://cdn.discordapp.com/embed/avatars/0.png'],
    [{ avatar: null }, 'https://cdn.discordapp.com/embed/avatars/0.png'],
    [{ avatar: 'abc' }, 'https://cdn.discordapp.com/avatars/80351110224678912/abc.png'],
    [{ avatar: 'a_bc' }, 'https://cdn.discordapp.com/avatars/80351110224678912/a_bc.gif'],
  ])('the picture of %j is %s', async (members, picture) => {
    const account = { id: '80351110224678912', username: 'nelly', email: 'nelly@discord.example', verified: true }
    answer('discord', 'profile', json({ ...account, ...members }))
    expect(await claimsOf('discord')).toMatchObject({ picture, avatar_url: picture })
  })

  test('an address it has not verified is not', async () => {
    answer('discord', 'profile', json({ id: '1', username: 'a', email: 'a@discord.example', verified: false }))
    expect(refusalOf(await all.signIn('discord', {}))).toMatchObject(needsVerification)
  })

  test('an `iss` in its callback is ignored, because its issuer is unknown', async () => {
    expect(await claimsOf('discord', { iss: 'https://discord.com' })).toMatchObject({ full_name: 'dora' })
  })
})

test("google: an `iss` that is not google's ends the sign-in", async () => {
  const brings = { iss: 'https://issuer.example' }
  const refusal = refusalOf(await all.signIn('google', all.newAccount('google'), { brings }))
  expect(refusal).toMatchObject({ error: 'server_error', error_description: 'Unable to exchange external code: code' })
})

test('gitlab: an address it has not confirmed is not verified, nor is any of the others', async () => {
  answer('gitlab', '/api/v4/user', json({ id: 4711, email: 'gil@gitlab.example', name: 'Gil', confirmed_at: null }))
  answer('gitlab', '/api/v4/user/emails', json([{ id: 1, email: 'other@gitlab.example', confirmed_at: '2021-01-01' }]))
  expect(refusalOf(await all.signIn('gitlab', {}))).toMatchObject(needsVerification)
})

test('bitbucket: of several addresses the confirmed one stands for the account', async () => {
  const values = [
    { email: 'primary@bitbucket.example', is_primary: true, is_confirmed: false },
    { email: 'confirmed@bitbucket.example', is_primary: false, is_confirmed: true },
  ]
  answer('bitbucket', '/2.0/user/emails', json({ values }))
  expect(await claimsOf('bitbucket')).toMatchObject({ email: 'confirmed@bitbucket.example', email_verified: true })
})

test('spotify: an address is never verified, so that the first sign-in waits for a mail of ours', async () => {
  const { email, ...account } = all.newAccount('spotify')
  expect(refusalOf(await all.signIn('spotify', { ...account, email }))).toMatchObject(needsVerification)
  expect((await all.service.mailbox.waitFor(email)).text).toContain('/verify')
})

test('slack: an address it says is not verified is not', async () => {
  const profile = { ok: true, 'https://slack.com/user_id': 'U1', email: 'u1@slack.example', email_verified: false }
  answer('slack', 'profile', json(profile))
  expect(refusalOf(await all.signIn('slack', {}))).toMatchObject(needsVerification)
})

test('snapchat: an account without an address gets in', async () => {
  const { id } = all.newAccount('snapchat')
  const user = await signedInUser(all.service, await all.signIn('snapchat', { id }))
  expect(user.identities[0].identity_data).toMatchObject({ sub: id, name: 'Sue Snap', email_verified: false })
})

test('notion: a bot of a workspace, which has no user, is refused', async () => {
  answer('notion', 'profile', json({ object: 'user', id: 'b', bot: { owner: { type: 'workspace' } } }))
  expect(refusalOf(await all.signIn('notion', {}))).toMatchObject({ status: 302, error: 'server_error' })
})

test.each(['connection', 'organization'])('workos: %s says where the user signs in', async (selector) => {
  const { location } = await all.signIn('workos', all.newAccount('workos'), { query: `&${selector}=of-theirs` })
  expect(location.searchParams.get(selector)).toBe('of-theirs')
})

describe('workos: an address is verified where its organization has that domain', () => {
  const domains = (...all: object[]) => answer('workos', '/organizations/org_01', json({ id: 'org_01', domains: all }))

  test('and the key of ours, which WorkOS calls the secret, is what it is asked with', async () => {
    domains({ domain: 'EXAMPLE.com', state: 'legacy_verified' })
    expect((await claimsOf('workos')).email_verified).toBe(true)
    const asked = all.far.requests('workos').find(({ path }) => path === '/organizations/org_01')
    expect(asked?.headers.authorization).toBe(`Bearer ${clientOf('workos').secret}`)
  })

  test.each<[string, () => void]>([
    ['has none', () => domains()],
    ['has another one', () => domains({ domain: 'other.example', state: 'verified' })],
    ['has it as part of its own', () => domains({ domain: 'sub.example.com', state: 'verified' })],
    ['has not proven it', () => domains({ domain: 'example.com', state: 'pending' })],
    ['says nothing of the state', () => domains({ domain: 'example.com' })],
    ['answers what is no list', () => answer('workos', '/organizations/org_01', json({ domains: 'example.com' }))],
    ['cannot be asked', () => answer('workos', '/organizations/org_01', text('no', 403))],
  ])('but not where it %s, and takes nobody over', async (_what, organization) => {
    const account = all.newAccount('workos')
    const { userId } = await all.service.signedIn(account.email)
    organization()
    expect(refusalOf(await all.signIn('workos', account))).toMatchObject(needsVerification)
    const { body } = await all.service.get(`/admin/users/${userId}`, all.service.admin)
    expect(body.app_metadata.providers).toEqual(['email'])
  })

  test('nor without an organization', async () => {
    const { id, email } = all.newAccount('workos')
    const profile = { id, email, connection_id: 'conn_1', connection_type: 'GoogleOAuth', organization_id: null }
    answer('workos', 'token', json({ access_token: 'x', profile }))
    expect(refusalOf(await all.signIn('workos', { id, email }))).toMatchObject(needsVerification)
  })
})

test.each(['snapchat', 'figma', 'spotify'])(
  '%s: an address whose proof it does not tell of opens no account of another user',
  async (name) => {
    const account = all.newAccount(name)
    const { userId } = await all.service.signedIn(account.email)
    expect(refusalOf(await all.signIn(name, account))).toMatchObject(needsVerification)
    const { body } = await all.service.get(`/admin/users/${userId}`, all.service.admin)
    expect(body.app_metadata.providers).toEqual(['email'])
  },
)

test('slack: an address of which it says nothing is not verified', async () => {
  answer('slack', 'profile', json({ ok: true, 'https://slack.com/user_id': 'U2', email: 'u2@slack.example' }))
  expect(refusalOf(await all.signIn('slack', {}))).toMatchObject(needsVerification)
})

test('workos: workos_provider goes on as provider', async () => {
  const query = '&workos_provider=GoogleOAuth&login_hint=ann'
  const { location } = await all.signIn('workos', all.newAccount('workos'), { query })
  const { provider, login_hint, workos_provider } = Object.fromEntries(location.searchParams)
  expect({ provider, login_hint, workos_provider }).toEqual({ provider: 'GoogleOAuth', login_hint: 'ann' })
})

test.each(['bitbucket', 'notion', 'workos', 'apple'])('%s takes no further scopes', async (name) => {
  const { location } = await all.signIn(name, all.newAccount(name), { query: '&scopes=more' })
  expect(location.searchParams.get('scope') ?? '').not.toContain('more')
})

test('scopes of the application come after the usual ones, by comma or by space', async () => {
  const query = `&scopes=${encodeURIComponent('guilds,connections email.read')}`
  const { location } = await all.signIn('discord', all.newAccount('discord'), { query })
  expect(location.searchParams.get('scope')).toBe('email identify guilds connections email.read')
})

test.each(['', ' '.repeat(256), 'x'.repeat(256), 'a\0b', '\ud800', 1.5, 2 ** 60, true, {}, ['1'], null])(
  'an id that is %j is none',
  async (id) => {
    answer('discord', 'profile', json({ id, username: 'a', email: 'an-id@discord.example', verified: true }))
    expect(refusalOf(await all.signIn('discord', {}))).toMatchObject({
      status: 302,
      error_description: 'Error getting user profile from external provider',
    })
  },
)

describe('a token of a provider with more roles than an address can hold', () => {
  const token = 'x'.repeat(30_000)
  const longAnswer: Answer[2] = (response, usual) =>
    void response.end(JSON.stringify({ ...JSON.parse(usual), access_token: token, refresh_token: token }))

  test('is left out of the address, which the log says, and the sign-in goes on', async () => {
    answer('discord', 'token', longAnswer)
    const { answer: answered } = await all.signIn('discord', all.newAccount('discord'))
    const told = new URLSearchParams(String(answered.headers.location).split('#')[1])
    expect(told.get('access_token')).toBeTruthy()
    expect([told.get('provider_token'), told.get('provider_refresh_token')]).toEqual([null, null])
    // Lines are written together, a tenth of a second late.
    const lines = async () =>
      (await readFile(log, 'utf8').catch(() => ''))
        .split('\n')
        .filter((line) => line.includes('too long for an address'))
        .map((line) => JSON.parse(line))
    await expect.poll(lines).toMatchObject([{ provider: 'discord', accessTokenLength: token.length }])
    expect(await readFile(log, 'utf8')).not.toContain(token.slice(0, 100))
  })

  test('comes with the session where a code is exchanged', async () => {
    answer('discord', 'token', longAnswer)
    const verifier = 'v'.repeat(43)
    const query = `&code_challenge=${verifier}&code_challenge_method=plain`
    const { answer: answered } = await all.signIn('discord', all.newAccount('discord'), { query })
    const auth_code = new URL(String(answered.headers.location)).searchParams.get('code')
    const exchanged = await all.service.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })
    const { provider_token, provider_refresh_token } = exchanged.body
    expect([provider_token === token, provider_refresh_token === token]).toEqual([true, true])
  })
})
