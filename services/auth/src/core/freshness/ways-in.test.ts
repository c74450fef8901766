// Every act that may need a proof, at each of its endpoints: the answer to a session without one.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../../test/openid-provider.ts'
import {
  challenge,
  claimsOf,
  enrollTotp,
  refresh,
  signInAgain,
  type Totp,
  totpCode,
  verifyTotp,
} from '../../../test/second-factors.ts'
import {
  type Answer,
  codeIn,
  fragmentOf,
  linkPath,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from '../../../test/service.ts'
import { ethereumWallet } from '../../../test/wallets.ts'
import { PASSKEYS, register } from '../../../test/webauthn/passkeys.ts'
import { ACTS, type Act, type ActName } from './acts.ts'

const password = 'correct horse'
const QUARTER = { seconds: 15 * 60 + 1 }

let google: OpenIdProvider
let service: TestService
/** The service with one of the switches set. */
let switched: Record<Switch, TestService>
type Switch = 'the current password' | 'a nonce'

beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
    ...PASSKEYS,
    AUTH_SMS_AUTOCONFIRM: 'true',
    AUTH_SMS_TEST_OTP: '4915100000001:111111',
    AUTH_JWT_EXP: '86400',
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    AUTH_SELF_DELETION_ENABLED: 'true',
  })
  switched = {
    'the current password': await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' }),
    'a nonce': await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' }),
  }
})
afterAll(async () => {
  for (const one of Object.values(switched)) await one.close()
  await service.close()
  await google.close()
})

type Auth = SignedIn['auth']
interface Owner {
  auth: Auth
  email: string
  userId: string
  /** The second factor, if there is one. */
  totp?: Totp
  /** Signs in again, with the second factor if there is one. */
  again(): Promise<SignedIn>
}
interface Door {
  /** Prerequisite of the user. */
  needs?: 'factor' | 'google' | 'admin' | 'passkey'
  walk(at: TestService, owner: Owner, auth: Auth, proof: object): Promise<Answer>
}

let count = 0
const unique = () => `${++count}`
const person = (more: object = {}) => {
  const sub = `way-in-${unique()}`
  return { sub, email: `${sub}@example.com`, email_verified: true, ...more }
}

/** Issues an ID token by the clock of the service, which the tests advance. */
const idTokenOf = (shown: ReturnType<typeof person>) => {
  const iat = Math.floor(service.clock.now().getTime() / 1000)
  return google.idToken({ ...shown, iat, exp: iat + 300 })
}

const doors: Record<ActName, Door> = {
  'new password': {
    walk: (at, _, auth, proof) => at.put('/user', { password: `horse ${unique()}`, ...proof }, auth),
  },
  'new e-mail address': {
    walk: (at, _, auth, proof) => at.put('/user', { email: `new-${unique()}@example.com`, ...proof }, auth),
  },
  'new number': {
    walk: (at, _, auth, proof) => at.put('/user', { phone: `49151${1_000_000 + ++count}`, ...proof }, auth),
  },
  'removing an address': {
    needs: 'google',
    walk: (at, _, auth, proof) => at.put('/user', { email: '', ...proof }, auth),
  },
  'own app_metadata': {
    needs: 'admin',
    walk: (at, _, auth, proof) => at.put('/user', { app_metadata: { mine: true }, ...proof }, auth),
  },
  'linking an identity': {
    async walk(at, _, auth) {
      const redirect = await at.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)
      const id_token = await idTokenOf(person())
      const body = { provider: 'google', id_token, link_identity: true }
      const token = await at.post('/token?grant_type=id_token', body, auth)
      // Three doors, one answer.
      const wallet = { ...ethereumWallet().body(service.clock.now()), link_identity: true }
      const web3 = await at.post('/token?grant_type=web3', wallet, auth)
      const answers = [redirect, token, web3].map(({ status, body }) => [status, body.error_code])
      expect(answers[2]).toEqual(answers[1])
      expect(answers[1]).toEqual(answers[0])
      return token
    },
  },
  'unlinking an identity': {
    needs: 'google',
    async walk(at, _, auth, proof) {
      const { body } = await at.get('/user', auth)
      const identity = body.identities.find(({ provider }: { provider: string }) => provider === 'google')
      return send(at, 'DELETE', `/user/identities/${identity.identity_id}`, auth, proof)
    },
  },
  'adding a passkey': {
    walk: (at, _, auth, proof) => at.post('/passkeys/registration/options', proof, auth),
  },
  'removing a passkey': {
    needs: 'passkey',
    async walk(at, _, auth, proof) {
      const { body } = await at.get('/passkeys', auth)
      const answer = await send(at, 'DELETE', `/passkeys/${body[0].id}`, auth, proof)
      return { ...answer, status: answer.status === 204 ? 200 : answer.status }
    },
  },
  'beginning a factor': {
    walk: (at, _, auth, proof) => at.post('/factors', { factor_type: 'totp', friendly_name: unique(), ...proof }, auth),
  },
  'proving a factor for the first time': {
    async walk(at, owner, auth, proof) {
      // Begun by the owner: a session stolen later does not know its secret.
      const totp = await enrollTotp(service, owner, unique())
      const challenge_id = await challenge(service, { auth }, totp.id)
      const body = { challenge_id, code: totpCode(totp.secret, service.clock.now()), ...proof }
      return at.post(`/factors/${totp.id}/verify`, body, auth)
    },
  },
  'removing a proven factor': {
    needs: 'factor',
    async walk(at, _, auth, proof) {
      const { body } = await at.get('/user', auth)
      return send(at, 'DELETE', `/factors/${body.factors[0].id}`, auth, proof)
    },
  },
  'making recovery codes': {
    needs: 'factor',
    async walk(at, owner, auth, proof) {
      await service.deps.db.deleteFrom('recovery_codes').where('user_id', '=', owner.userId).execute()
      return at.post('/factors/recovery-codes', proof, auth)
    },
  },
  'replacing recovery codes': {
    needs: 'factor',
    walk: (at, _, auth, proof) => at.post('/factors/recovery-codes/regenerate', proof, auth),
  },
  'removing recovery codes': {
    needs: 'factor',
    walk: (at, _, auth, proof) => send(at, 'DELETE', '/factors/recovery-codes', auth, proof),
  },
  'exporting the data': { walk: (at, _, auth) => at.get('/user/export', auth) },
  'deleting the account': {
    async walk(at, _, auth, proof) {
      const answer = await send(at, 'DELETE', '/user', auth, proof)
      return { ...answer, status: answer.status === 204 ? 200 : answer.status }
    },
  },
}

async function send(at: TestService, method: 'DELETE', url: string, headers: Auth, payload: object): Promise<Answer> {
  const answer = await at.app.inject({ method, url, headers, payload })
  const body = answer.payload ? answer.json() : undefined
  return { status: answer.statusCode, body, text: answer.payload, headers: answer.headers }
}

async function newOwner(needs?: Door['needs'], hasFactor = needs === 'factor'): Promise<Owner> {
  const email = `owner-${unique()}@example.com`
  let { auth, userId } = await service.signedIn(email, password)
  if (needs === 'admin') await service.put(`/admin/users/${userId}`, { role: 'admin' }, service.admin)
  if (needs === 'passkey') await register(service, { auth })
  if (needs === 'google') {
    const id_token = await idTokenOf(person())
    await service.post('/token?grant_type=id_token', { provider: 'google', id_token, link_identity: true }, auth)
  }
  if (!hasFactor) return { auth, email, userId, again: () => signInAgain(service, email) }
  const totp = await enrollTotp(service, { auth })
  auth = toSignedIn((await verifyTotp(service, { auth }, totp)).body).auth
  const again = async () => toSignedIn((await verifyTotp(service, await signInAgain(service, email), totp)).body)
  return { auth, email, userId, totp, again }
}

async function nonceOf({ auth, email }: Pick<Owner, 'auth' | 'email'>): Promise<string> {
  const before = service.mailbox.messages({ to: email }).at(-1)
  await service.get('/reauthenticate', auth)
  const { text } = await service.mailbox.waitFor(email, before ? { after: before } : {})
  return codeIn(text)
}

const acts = Object.keys(ACTS) as ActName[]

describe.each(acts)('%s', (name) => {
  const act: Act = ACTS[name]
  const door = doors[name]

  test.each<Switch>(['the current password', 'a nonce'])(
    'is refused to a session of 16 minutes where %s is demanded, and done with it',
    async (demanded) => {
      const at = switched[demanded]
      const owner = await newOwner(door.needs)
      service.clock.advance(QUARTER)
      const isPassword = demanded === 'the current password'
      const refusal = isPassword && act.needsPassword ? 'current_password_required' : 'reauthentication_needed'
      expect(await door.walk(at, owner, owner.auth, {})).toMatchObject({ status: 400, body: { error_code: refusal } })
      if (act.signInOnly) return
      const wrong = isPassword ? { current_password: 'a guess' } : { nonce: '000000' }
      expect((await door.walk(at, owner, owner.auth, wrong)).body.error_code).toBe(
        isPassword ? 'current_password_invalid' : 'reauthentication_not_valid',
      )
      const proof = isPassword ? { current_password: password } : { nonce: await nonceOf(owner) }
      expect((await door.walk(at, owner, owner.auth, proof)).status).toBe(200)
    },
  )

  test.each<Switch>(['the current password', 'a nonce'])(
    'is done after a new sign-in where %s is demanded and the client has no parameter for it',
    async (demanded) => {
      const at = switched[demanded]
      const owner = await newOwner(door.needs)
      service.clock.advance(QUARTER)
      const { auth } = await owner.again()
      const isNamed = demanded === 'the current password' ? act.needsPassword : act.needsNonce
      expect((await door.walk(at, owner, auth, {})).status).toBe(isNamed ? 400 : 200)
    },
  )

  test('is refused to a session without the second factor of its user', async () => {
    const owner = await newOwner(door.needs, true)
    const { auth } = await signInAgain(service, owner.email)
    const { status, message } = act.refusal
    expect(await door.walk(service, owner, auth, {})).toMatchObject({
      status,
      body: { error_code: 'insufficient_aal', ...(message ? { msg: message } : {}) },
    })
  })

  test('is refused to a session that a trusted device began, until it proves the factor, and later again', async () => {
    const owner = await newOwner(door.needs, true)
    const { body: device } = await service.post('/factors/trusted-devices', {}, owner.auth)
    const credentials = { email: owner.email, password }
    const began = toSignedIn(
      (await service.post('/token?grant_type=password', credentials, { 'x-device-token': device.token })).body,
    )
    expect(claimsOf(began)).toMatchObject({ aal: 'aal2' })
    const refusal = { status: act.refusal.status, body: { error_code: 'insufficient_aal' } }
    expect(await door.walk(service, owner, began.auth, {})).toMatchObject({
      ...refusal,
      body: { msg: 'A trusted device is not enough for this: prove the second factor again' },
    })
    const { auth } = toSignedIn((await verifyTotp(service, began, owner.totp as Totp)).body)
    service.clock.advance(QUARTER)
    expect(await door.walk(service, owner, auth, {})).toMatchObject(refusal)
    const again = toSignedIn((await verifyTotp(service, { auth }, owner.totp as Totp)).body)
    expect((await door.walk(service, owner, again.auth, {})).status).toBe(200)
  })
})

const isAlways = (name: (typeof acts)[number]) => (ACTS[name] as Act).always === true

test.each(acts.filter((name) => !isAlways(name)))(
  '%s needs no more than a live session where nothing is demanded',
  async (name) => {
    const { needs, walk } = doors[name]
    const owner = await newOwner(needs)
    service.clock.advance(QUARTER)
    expect((await walk(service, owner, owner.auth, {})).status).toBe(200)
  },
)

test.each(acts.filter(isAlways))('%s needs a proof where nothing is demanded', async (name) => {
  const { needs, walk } = doors[name]
  const { signInOnly }: Act = ACTS[name]
  const owner = await newOwner(needs)
  service.clock.advance(QUARTER)
  const answer = await walk(service, owner, owner.auth, {})
  const proofs = signInOnly ? '' : ', the current password or a nonce'
  const msg = `This needs a sign-in of the last 15 minutes${proofs}: sign in again`
  expect(answer).toMatchObject({ status: 400, body: { error_code: 'reauthentication_needed', msg } })
  for (const proof of signInOnly ? [] : [{ current_password: 'a guess' }, { nonce: '000000' }]) {
    expect((await walk(service, owner, owner.auth, proof)).status).toBeGreaterThanOrEqual(400)
  }
  const { auth } = await owner.again()
  expect((await walk(service, owner, auth, {})).status).toBe(200)
})

describe('where the current password is demanded', () => {
  const at = () => switched['the current password']

  test('a refresh makes no session younger', async () => {
    const { refreshToken } = await service.signedIn()
    service.clock.advance(QUARTER)
    const { auth } = toSignedIn((await refresh(service, refreshToken)).body)
    const enrolled = await at().post('/factors', { factor_type: 'totp' }, auth)
    expect(enrolled).toMatchObject({ status: 400, body: { error_code: 'reauthentication_needed' } })
  })

  test('a session begun by a link needs none for 15 minutes, and then does', async () => {
    const { email } = await newOwner()
    await service.post('/otp', { email })
    const answer = await service.get(linkPath((await service.mailbox.waitFor(email)).text))
    const auth = { authorization: `Bearer ${fragmentOf(answer).access_token}` }
    expect((await at().put('/user', { phone: `49152${1_000_000 + ++count}` }, auth)).status).toBe(200)
    service.clock.advance(QUARTER)
    for (const change of [{ password: 'another horse' }, { phone: '4915210000000' }, { email: 'thief@example.com' }]) {
      expect(await at().put('/user', change, auth)).toMatchObject({
        status: 400,
        body: { error_code: 'current_password_required' },
      })
    }
  })

  test('a user without a password sets the first by a nonce or a recent sign-in, not by an old session', async () => {
    const shown = person()
    const signIn = async () => {
      const id_token = await idTokenOf(shown)
      return toSignedIn((await service.post('/token?grant_type=id_token', { provider: 'google', id_token })).body)
    }
    const { auth } = await signIn()
    service.clock.advance(QUARTER)
    const first = { password: 'a first horse' }
    expect(await at().put('/user', first, auth)).toMatchObject({
      status: 400,
      body: { error_code: 'reauthentication_needed' },
    })
    const nonce = await nonceOf({ auth, email: shown.email })
    expect((await at().put('/user', { phone: `49153${1_000_000 + ++count}`, nonce }, auth)).status).toBe(200)
    // Spent.
    expect((await at().put('/user', { ...first, nonce }, auth)).body.error_code).toBe('reauthentication_not_valid')
    expect((await at().put('/user', first, (await signIn()).auth)).status).toBe(200)
  })

  test('an anonymous user, who cannot sign in again, gets an address and links an account', async () => {
    const { auth } = toSignedIn((await service.post('/signup', {})).body)
    service.clock.advance(QUARTER)
    const begun = await at().get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)
    expect(begun.status).toBe(200)
    expect((await at().put('/user', { email: `named-${unique()}@example.com` }, auth)).status).toBe(200)
  })

  test('a factor begun by the owner is proven by the owner, not by a stolen session', async () => {
    const { auth, email } = await newOwner()
    service.clock.advance(QUARTER)
    const owner = await signInAgain(service, email)
    const totp = await enrollTotp(at(), owner)
    expect((await verifyTotp(at(), { auth }, totp)).body.error_code).toBe('reauthentication_needed')
    expect((await verifyTotp(at(), owner, totp)).status).toBe(200)
  })

  test('one nonce begins and proves a factor, and is spent with it', async () => {
    const owner = await newOwner()
    service.clock.advance(QUARTER)
    const nonce = await nonceOf(owner)
    const begun = await at().post('/factors', { factor_type: 'totp', nonce }, owner.auth)
    expect(begun.status).toBe(200)
    const challenge_id = await challenge(service, owner, begun.body.id)
    const code = totpCode(begun.body.totp.secret, service.clock.now())
    const proven = await at().post(`/factors/${begun.body.id}/verify`, { challenge_id, code, nonce }, owner.auth)
    expect(proven.status).toBe(200)
    const { auth } = toSignedIn(proven.body)
    service.clock.advance(QUARTER)
    const again = await at().post('/factors', { factor_type: 'totp', friendly_name: 'second', nonce }, auth)
    expect(again.body.error_code).toBe('reauthentication_not_valid')
  })

  test('an admin changes the password without a proof, and is audited', async () => {
    const { userId } = await newOwner()
    service.clock.advance(QUARTER)
    const changed = await at().put(`/admin/users/${userId}`, { password: 'an admin set it' }, service.admin)
    expect(changed.status).toBe(200)
    const { body } = await service.get('/admin/audit?query=action:user_modified', service.admin)
    expect(JSON.stringify(body)).toContain(userId)
  })
})

test('where a nonce is demanded, one sent to the address unlinks a number, which ends every other code', async () => {
  const at = switched['a nonce']
  const owner = await newOwner()
  const { body } = await service.put('/user', { phone: `49154${1_000_000 + ++count}` }, owner.auth)
  const { identity_id } = body.identities.find((one: { provider: string }) => one.provider === 'phone')
  service.clock.advance(QUARTER)
  const proof = { nonce: await nonceOf(owner) }
  expect(await send(at, 'DELETE', `/user/identities/${identity_id}`, owner.auth, proof)).toMatchObject({ status: 200 })
})
