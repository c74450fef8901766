// Accounts of described providers, of the admin API or by settings (contract/auth-custom-providers.md 5). Neither a
// hostile provider nor one of its users opens an account of another user.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, signInAt, startOpenIdProvider } from './openid-provider.ts'
import { fragmentOf, queryOf, startTestService, type TestService } from './service.ts'
import { type PlainOAuth2, startPlainOAuth2 } from './upstreams/plain-oauth2.ts'

const CLIENT = { client_id: 'our-client', client_secret: 'a-secret-of-the-client' }
const VICTIM = 'victim@example.com'

let corp: OpenIdProvider
let forge: PlainOAuth2
let service: TestService
let victimId: string
beforeAll(async () => {
  ;[corp, forge] = await Promise.all([startOpenIdProvider(), startPlainOAuth2()])
  service = await startTestService({ AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8', ...corp.settings('OIDC_CORP') })
  victimId = (await service.signedIn(VICTIM)).userId
})
afterAll(async () => {
  await service.close()
  forge.close()
  await corp.close()
})

let count = 0
async function add(given: object): Promise<string> {
  const identifier = `custom:p${++count}`
  const provider = { identifier, name: 'P', ...CLIENT, ...given }
  expect((await service.post('/admin/custom-providers', provider, service.admin)).body).toMatchObject({ identifier })
  return identifier
}
const addOpenId = (given: object = {}) =>
  add({ provider_type: 'oidc', issuer: corp.issuer, scopes: ['profile', 'email'], ...given })
const addPlain = (given: object = {}) => add({ provider_type: 'oauth2', ...forge.addresses, ...given })

type Answer = Awaited<ReturnType<TestService['get']>>
const userOf = async (answer: Answer) =>
  (await service.get('/user', { authorization: `Bearer ${fragmentOf(answer).access_token}` })).body

async function signInAtForge(identifier: string, profile: object): Promise<Answer> {
  forge.profile = profile
  const begun = await service.get(`/authorize?provider=${identifier}`)
  return service.get(`/callback?${new URLSearchParams(forge.visit(String(begun.headers.location)))}`)
}

describe('an address is verified by the flag beside it alone', () => {
  const OWN = 'own@example.com'
  const mapped = { email: 'emails.0.value' }
  const emails = [{ value: VICTIM }]

  test.each<[string, object, object]>([
    ['in a list, beside a verified one', mapped, { email: OWN, email_verified: true, emails }],
    ['in a list, with a flag alone', mapped, { email_verified: true, emails }],
    ['in another claim', { email: 'upn' }, { email: OWN, email_verified: true, upn: VICTIM }],
    ['with a flag of text', {}, { email: VICTIM, email_verified: 'true' }],
    ['with a flag of its own', mapped, { emails: [{ value: VICTIM, email_verified: true }] }],
  ])('%s it opens no account', async (_, attribute_mapping, profile) => {
    const identifier = await addPlain({ attribute_mapping })
    const answer = await signInAtForge(identifier, { sub: 'evil', ...profile })
    expect(queryOf(answer).error_code).toBe('provider_email_needs_verification')
    expect(fragmentOf(answer)).not.toHaveProperty('access_token')
  })

  test('a mapped address that is the verified one joins its user', async () => {
    const identifier = await addPlain({ attribute_mapping: mapped })
    const user = await userOf(
      await signInAtForge(identifier, { sub: 'v', email: VICTIM, email_verified: true, emails }),
    )
    expect(user.id).toBe(victimId)
  })

  describe.each(['settings', 'the admin API'])('of a provider by %s', (by) => {
    const provider = async () => (by === 'settings' ? 'corp' : addOpenId())
    const signIn = async (account: object) => {
      corp.next({ sub: `two-${++count}`, ...account })
      return signInAt(service, corp, `/authorize?provider=${await provider()}`)
    }

    test.each([
      ['the address is in the profile, its flag in the id_token', { email: VICTIM, email_verified: undefined }],
      ['the profile denies it', { email_verified: false }],
    ])('not where %s', async (_, inProfile) => {
      const email = 'email' in inProfile ? OWN : VICTIM
      const answer = await signIn({ email, email_verified: true, inProfile })
      expect(queryOf(answer).error_code).toBe('provider_email_needs_verification')
    })

    test('but where the profile repeats the address without a flag', async () => {
      const answer = await signIn({ email: VICTIM, email_verified: true, inProfile: { email_verified: undefined } })
      expect((await userOf(answer)).id).toBe(victimId)
    })
  })
})

describe('a mapped id', () => {
  const employee = { attribute_mapping: { sub: 'employee_id' }, email_optional: true }

  test.each([[undefined], [null], [''], [{}], [['42']], [true]])(
    'of %j is no account, whatever `sub` says',
    async (id) => {
      const identifier = await addPlain(employee)
      const first = await userOf(await signInAtForge(identifier, { sub: 'u1', employee_id: '42' }))
      expect(first.identities[0].id).toBe('42')
      const answer = await signInAtForge(identifier, { sub: '42', employee_id: id })
      expect(queryOf(answer).error_description).toContain('Error getting user profile')
    },
  )

  test('is in an id_token of an application, too', async () => {
    const identifier = await addOpenId(employee)
    const { iat, exp } = { iat: service.clock.now().getTime() / 1000, exp: 4e9 }
    const grant = async (claims: object) => {
      const id_token = await corp.idToken({ sub: '43', iat, exp, ...claims })
      return service.post('/token?grant_type=id_token', { provider: identifier, id_token })
    }
    expect((await grant({})).status).toBe(400)
    expect((await grant({ employee_id: '43' })).body.user.identities[0].id).toBe('43')
  })
})

describe('a provider that is gone', () => {
  const group = { linking: 'group:staff' }
  const comeTo = (at: Pick<TestService, 'get' | 'submit'>, provider: string, email: string) => {
    corp.next({ sub: `gone-${++count}`, email, email_verified: true })
    return signInAt(at, corp, `/authorize?provider=${provider}`)
  }

  test.each(['settings', 'the admin API'])('by %s opens the users of its group to no other one', async (by) => {
    const email = `gone-${++count}@example.com`
    const inSettings = { ...corp.settings('OIDC_LEFT'), AUTH_EXTERNAL_OIDC_LEFT_LINKING: group.linking }
    const before = by === 'settings' ? await service.with(inSettings) : service
    const gone = by === 'settings' ? 'left' : await addOpenId(group)
    expect(fragmentOf(await comeTo(before, gone, email)).access_token).toBeTruthy()
    if (by !== 'settings') await service.delete(`/admin/custom-providers/${gone}`, service.admin)
    for (const provider of [await addOpenId(), await addOpenId(group), 'corp']) {
      expect(queryOf(await comeTo(service, provider, email)).error_code).toBe('email_exists')
    }
  })

  test('leaves the other ways in of its users as they were', async () => {
    const email = `kept-${++count}@example.com`
    const { userId } = await service.signedIn(email)
    const gone = await addOpenId()
    expect((await userOf(await comeTo(service, gone, email))).id).toBe(userId)
    await service.delete(`/admin/custom-providers/${gone}`, service.admin)
    expect(queryOf(await comeTo(service, await addOpenId(group), email)).error_code).toBe('email_exists')
    expect((await userOf(await comeTo(service, await addOpenId(), email))).id).toBe(userId)
  })
})

describe('a name that is used again', () => {
  const again = async (identifier: string, given: object) => {
    const provider = { identifier, name: 'P', ...CLIENT, email_optional: true, ...given }
    return service.post('/admin/custom-providers', provider, service.admin)
  }
  const openId = { provider_type: 'oidc' }
  const plain = { provider_type: 'oauth2' }

  test('serves its accounts at their own issuer alone', async () => {
    const identifier = await addPlain({ email_optional: true })
    const user = await userOf(await signInAtForge(identifier, { sub: 'first' }))
    await service.delete(`/admin/custom-providers/${identifier}`, service.admin)
    const elsewhere = [
      { ...openId, issuer: corp.issuer },
      { ...plain, ...forge.addresses, userinfo_url: `${forge.url}/another` },
    ]
    for (const given of elsewhere) {
      expect(await again(identifier, given)).toMatchObject({
        status: 400,
        body: { error_code: 'conflict', msg: 'Users have accounts of this identifier at another issuer' },
      })
    }
    expect((await again(identifier, { ...plain, ...forge.addresses })).status).toBe(201)
    expect((await userOf(await signInAtForge(identifier, { sub: 'first' }))).id).toBe(user.id)
  })

  test('without accounts, or with imported ones of no issuer, is free for any issuer', async () => {
    const identifier = await addPlain({ email_optional: true })
    const { id } = await userOf(await signInAtForge(identifier, { sub: 'imported' }))
    await service.delete(`/admin/custom-providers/${identifier}`, service.admin)
    await service.deps.pool.query(`update identities set identity_data = identity_data - 'iss' where user_id = $1`, [
      id,
    ])
    expect((await again(identifier, { ...openId, issuer: corp.issuer })).status).toBe(201)
  })

  test('is known by its issuer also where claims fill an identity', async () => {
    const long = ['name', 'family_name', 'given_name', 'middle_name'].map((name) => [name, 'x'.repeat(2000)])
    const claims = { ...Object.fromEntries(long), nickname: 'x'.repeat(170) }
    const identifier = await addPlain({ email_optional: true })
    const user = await userOf(await signInAtForge(identifier, { sub: 'large', ...claims }))
    expect(user.identities[0].identity_data.iss).toBe(forge.addresses.userinfo_url)
  })
})
