// Accounts at a provider that reports an address without verifying it. Nothing of them is stored before the address is
// proven, so no later sign-in reveals whether the address had an account. The proof links one only in the browser that
// signed in there.
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lockExternalAccount } from '../src/core/identities/identities.store.ts'
import { type OpenIdProvider, type ProviderAccount, signInAt, startOpenIdProvider } from './openid-provider.ts'
import { type Answer, fragmentOf, linkPath, queryOf, startTestService, type TestService } from './service.ts'

let corp: OpenIdProvider
let service: TestService
beforeAll(async () => {
  corp = await startOpenIdProvider()
  service = await startTestService({
    ...corp.settings('OIDC_CORP'),
    AUTH_EXTERNAL_OIDC_CORP_EMAIL_OPTIONAL: 'true',
    AUTH_SMTP_MAX_FREQUENCY: '0',
    AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0',
  })
})
afterAll(async () => {
  await service.close()
  await corp.close()
})

let people = 0
const newSub = () => `unproven-${people++}`
const newAddress = () => `${newSub()}@example.com`
const reporting = (email: string): ProviderAccount => ({
  sub: newSub(),
  email,
  email_verified: false,
  name: 'Ada Corp',
})

async function come(person: ProviderAccount, door: Pick<TestService, 'get' | 'submit'> = service): Promise<Answer> {
  corp.next(person)
  return signInAt(door, corp, '/authorize?provider=corp')
}

const comeByIdToken = async ({ ...person }: ProviderAccount) =>
  service.post('/token?grant_type=id_token', { provider: 'corp', id_token: await corp.idToken(person) })

async function refused(person: ProviderAccount): Promise<void> {
  expect(queryOf(await come(person)).error_code).toBe('provider_email_needs_verification')
  await service.settled()
}

const userOf = async (answer: Answer) =>
  (await service.get('/user', { authorization: `Bearer ${fragmentOf(answer).access_token}` })).body

const mailTo = async (to: string) => {
  await service.settled()
  return service.mailbox.messages({ to }).at(0)?.text ?? ''
}

/** Facts that a sign-in reveals to a stranger: the answer, and the age of the account. */
async function learnt(answer: Answer) {
  const { access_token } = fragmentOf(answer)
  if (!access_token) return queryOf(answer)
  const user = await userOf(answer)
  const { identities, user_metadata } = user
  return {
    isNew: user.created_at === service.clock.now().toISOString(),
    email: user.email,
    newEmail: user.new_email,
    providers: user.app_metadata.providers,
    identities: identities.length,
    names: Object.keys(user_metadata).toSorted(),
  }
}

describe.each<[string, (email: string) => Promise<unknown>]>([
  ['a confirmed account', (email) => service.signedIn(email)],
  ['an account that waits for its proof', (email) => service.post('/signup', { email, password: 'correct horse' })],
  ['an invited account', (email) => service.post('/invite', { email }, service.admin)],
  [
    'a banned account',
    async (email) => {
      const { userId } = await service.signedIn(email)
      await service.put(`/admin/users/${userId}`, { ban_duration: '24h' }, service.admin)
    },
  ],
])('an unverified address of %s', (_which, make) => {
  test.each<[string, (told: ProviderAccount) => ProviderAccount]>([
    ['without an address', ({ sub }) => ({ sub })],
    ['with a verified address', ({ sub }) => ({ sub, email: newAddress(), email_verified: true })],
    ['with another unverified address', ({ sub }) => ({ sub, email: newAddress(), email_verified: false })],
    ['with the same address', (told) => told],
  ])('and that of nobody: the next sign-in %s is answered alike', async (how, next) => {
    const answers = []
    for (const isKnown of [true, false]) {
      const told = reporting(newAddress())
      if (isKnown) await make(told.email as string)
      await service.settled()
      await refused(told)
      service.clock.advance({ seconds: 1 })
      const again = next(told)
      const shown = await learnt(await come(again))
      answers.push('email' in shown && shown.email ? { ...shown, email: shown.email === again.email } : shown)
    }
    expect(answers[0]).toEqual(answers[1])
    if (how.startsWith('with a') && !how.includes('unverified')) expect(answers[1]).toMatchObject({ isNew: true })
  })
})

test.each([
  ['in the browser', async (person: ProviderAccount) => queryOf(await come(person)).error_code],
  ['by an id_token', async (person: ProviderAccount) => (await comeByIdToken(person)).body.error_code],
])('nothing of such an account is stored before its proof, %s', async (_how, knock) => {
  const person = { ...reporting(newAddress()), name: `Ada of ${newSub()} alone` }
  expect(await knock(person)).toBe('provider_email_needs_verification')
  await service.settled()
  const { pool } = service.deps
  const rows = await pool.query('select * from identities where provider_id = $1', [person.sub])
  expect(rows.rowCount).toBe(0)
  for (const table of ['users', 'identities', 'one_time_tokens', 'earlier_links']) {
    const { rows: all } = await pool.query(`select * from ${table}`)
    expect(JSON.stringify(all)).not.toContain(person.name)
  }
})

test('the mail names the provider and warns, and its link links the account in the browser that signed in there', async () => {
  const person = reporting(newAddress())
  await refused(person)
  const mail = await mailTo(person.email as string)
  expect(mail).toContain('A sign-in with corp gave this address, which corp has not verified.')
  expect(mail).toContain('Do not confirm if that was not you')
  service.clock.advance({ seconds: 1 })
  const user = await userOf(await service.get(linkPath(mail)))
  expect(user).toMatchObject({
    email: person.email,
    app_metadata: { providers: ['email', 'corp'] },
    user_metadata: { full_name: 'Ada Corp', email_verified: true },
  })
  expect(user.identities).toContainEqual(expect.objectContaining({ provider: 'corp', id: person.sub }))
  expect((await userOf(await come(person))).id).toBe(user.id)
})

test.each<[string, (mail: string, email: string) => Promise<string | undefined>]>([
  ['in another browser', async (mail) => fragmentOf(await service.otherBrowser().get(linkPath(mail))).access_token],
  [
    'by its code',
    async (mail, email) => {
      const token = /\b\d{6}\b/.exec(mail)?.[0]
      return (await service.otherBrowser().post('/verify', { type: 'signup', email, token })).body.access_token
    },
  ],
  [
    'by the link of a later mail',
    async (_mail, email) => {
      await service.post('/resend', { type: 'signup', email })
      const resent = await mailTo(email)
      expect(resent).not.toContain('corp')
      return fragmentOf(await service.get(linkPath(resent))).access_token
    },
  ],
])('a proof %s opens an account without it, which a stranger may have sent', async (_how, prove) => {
  const person = reporting(newAddress())
  const email = person.email as string
  await refused(person)
  const accessToken = await prove(await mailTo(email), email)
  const { body: user } = await service.get('/user', { authorization: `Bearer ${accessToken}` })
  expect(user).toMatchObject({ email, app_metadata: { providers: ['email'] } })
  expect(user.user_metadata).not.toHaveProperty('full_name')
  await refused(person)
  expect(decodeJwt(accessToken as string).sub).toBe(user.id)
})

test('an attempt of a stranger for an address that another one proves lets neither in at the other', async () => {
  const person = reporting(newAddress())
  const email = person.email as string
  const stranger = service.otherBrowser()
  corp.next(person)
  expect(queryOf(await signInAt(stranger, corp, '/authorize?provider=corp')).error_code).toBe(
    'provider_email_needs_verification',
  )
  const owner = await userOf(await service.get(linkPath(await mailTo(email))))
  expect(owner.identities.map(({ provider }: { provider: string }) => provider)).toEqual(['email'])
  expect(fragmentOf(await come(person, stranger)).access_token).toBeUndefined()
})

test('an account that another user linked meanwhile stays theirs', async () => {
  const person = reporting(newAddress())
  await refused(person)
  const mail = await mailTo(person.email as string)
  const other = await userOf(await come({ ...person, email: newAddress(), email_verified: true }))
  const user = await userOf(await service.get(linkPath(mail)))
  expect(user.id).not.toBe(other.id)
  expect(user.app_metadata.providers).toEqual(['email'])
})

test('a proof during another sign-in with the account leaves the account to that sign-in', async () => {
  const person = reporting(newAddress())
  await refused(person)
  const mail = await mailTo(person.email as string)
  const signIn = await service.deps.db.startTransaction().execute()
  await lockExternalAccount(signIn, 'corp', person.sub as string)
  const user = await userOf(await service.get(linkPath(mail)))
  await signIn.rollback().execute()
  expect(user).toMatchObject({ email: person.email, app_metadata: { providers: ['email'] } })
})

test('the mail of an id_token, which no browser can link, names no provider', async () => {
  const person = reporting(newAddress())
  expect((await comeByIdToken(person)).body.error_code).toBe('provider_email_needs_verification')
  expect(await mailTo(person.email as string)).not.toContain('corp')
})

test('the owner of an account that has the address learns of the sign-in, by the mail of a repeated sign-up', async () => {
  const person = reporting(newAddress())
  await service.signedIn(person.email)
  await refused(person)
  expect(await mailTo(person.email as string)).toContain('you already have an account')
})

test('while sign-ups are disabled, such an address is refused alike, whether or not it has an account', async () => {
  const closed = await service.with({ AUTH_DISABLE_SIGNUP: 'true' })
  const known = reporting(newAddress())
  await service.signedIn(known.email)
  for (const person of [known, reporting(newAddress())]) {
    expect(queryOf(await come(person, closed)).error_code).toBe('signup_disabled')
  }
  await closed.close()
})
