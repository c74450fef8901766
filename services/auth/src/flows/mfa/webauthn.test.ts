import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startLogFile } from '../../../test/log-file.ts'
import { claimsOf, signInAgain } from '../../../test/second-factors.ts'
import { type SignedIn, startTestService, type TestService, toSignedIn } from '../../../test/service.ts'
import { createSecurityKey, type SecurityKey } from '../../../test/webauthn/security-key.ts'

const SWITCHES = { AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true', AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true' }
const ORIGIN = 'https://site.example'
const SITE = { rpId: 'site.example', origin: ORIGIN }
const ASKED = { rpId: 'site.example', rpOrigins: [ORIGIN] }

let service: TestService
beforeAll(async () => {
  service = await startTestService({ ...SWITCHES, AUTH_URI_ALLOW_LIST: 'https://app.other.example/**' })
})
afterAll(() => service.close())

const refusal = (status: number, code: string, msg?: string) => ({
  status,
  body: { code: status, error_code: code, ...(msg ? { msg } : {}) },
})

type Who = Pick<SignedIn, 'auth'>

async function enroll({ auth }: Who, name = ''): Promise<string> {
  const { status, body } = await service.post('/factors', { factor_type: 'webauthn', friendly_name: name }, auth)
  expect([status, body]).toEqual([200, { id: expect.any(String), type: 'webauthn', friendly_name: name }])
  return body.id
}

const ask = ({ auth }: Who, id: string, webauthn: unknown = ASKED) =>
  service.post(`/factors/${id}/challenge`, { factorId: id, webauthn }, auth)

/** A challenge as the key gets it. */
async function questionFor(user: Who, id: string) {
  const { body } = await ask(user, id)
  const { challenge } = body.webauthn.credential_options.publicKey
  return { challengeId: body.id as string, question: { ...SITE, challenge } }
}

const answer = ({ auth }: Who, id: string, challenge_id: string, webauthn: unknown) =>
  service.post(`/factors/${id}/verify`, { challenge_id, webauthn }, auth)

async function withKey() {
  const email = `key-${Math.random().toString(36).slice(2)}@example.com`
  const [user, key] = [await service.signedIn(email), createSecurityKey()]
  const id = await enroll(user)
  const { challengeId, question } = await questionFor(user, id)
  const credential_response = key.create(question)
  const { body } = await answer(user, id, challengeId, { type: 'create', credential_response })
  return { ...toSignedIn(body), email, key, id }
}

/** A sign-in with the password, then the key's answer, bent or not. */
async function prove(of: { email: string; key: SecurityKey; id: string }, spoil = {}) {
  const login = await signInAgain(service, of.email)
  const { challengeId, question } = await questionFor(login, of.id)
  const credential_response = of.key.get(question, spoil)
  return answer(login, of.id, challengeId, { type: 'request', credential_response })
}

test('a key is registered, then asked for: both raise the session', async () => {
  const user = await service.signedIn('keys@example.com')
  const id = await enroll(user, 'blue key')
  const { body: opened } = await ask(user, id)
  expect(opened).toMatchObject({
    type: 'webauthn',
    expires_at: expect.any(Number),
    webauthn: {
      type: 'create',
      credential_options: {
        publicKey: {
          rp: { id: 'site.example', name: 'site.example' },
          user: { id: Buffer.from(id).toString('base64url'), name: 'keys@example.com' },
          challenge: expect.stringMatching(/^[\w-]{43}$/),
          attestation: 'none',
        },
      },
    },
  })
  const { challenge } = opened.webauthn.credential_options.publicKey
  const key = createSecurityKey()
  const credential_response = key.create({ ...SITE, challenge })
  const registered = await answer(user, id, opened.id, { type: 'create', credential_response })
  expect(registered.status).toBe(200)
  expect(claimsOf(toSignedIn(registered.body))).toMatchObject({
    aal: 'aal2',
    amr: [{ method: 'mfa/webauthn' }, { method: 'password' }],
  })
  expect(registered.body.user.factors).toEqual([
    expect.objectContaining({
      ...{ id, factor_type: 'webauthn', status: 'verified', friendly_name: 'blue key' },
      web_authn_aaguid: '00000000-0000-0000-0000-000000000000',
    }),
    expect.objectContaining({ factor_type: 'recovery_code' }),
  ])
  const login = await signInAgain(service, 'keys@example.com')
  const { body: second } = await ask(login, id)
  expect(second.webauthn).toMatchObject({
    type: 'request',
    credential_options: { publicKey: { rpId: 'site.example', allowCredentials: [{ id: credential_response.id }] } },
  })
  expect((await prove({ email: 'keys@example.com', key, id })).status).toBe(200)
})

describe('an answer', () => {
  test.for([
    ['from another origin', { origin: 'https://evil.example' }],
    ['for another site', { rpId: 'evil.example' }],
    ['to another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['of another kind', { type: 'webauthn.create' }],
    ['without a touch', { flags: 0 }],
    ['whose counter went back', { counter: 0 }],
  ] as const)('%s is refused', async ([, spoil]) => {
    const user = await withKey()
    expect((await prove(user)).status).toBe(200)
    expect(await prove(user, spoil)).toMatchObject(refusal(422, 'mfa_verification_failed'))
  })

  test.for([
    ['from another origin', { origin: 'https://evil.example' }],
    ['for another site', { rpId: 'evil.example' }],
    ['to another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['of another kind', { type: 'webauthn.get' }],
    ['with a certificate of its maker', { attestation: 'certificate' }],
    ['of a format nobody asked for', { fmt: 'android-safetynet' }],
    ['of a format that is none', { fmt: '__proto__' }],
  ] as const)('that registers, %s is refused', async ([, spoil]) => {
    const user = await service.signedIn()
    const id = await enroll(user)
    const { challengeId, question } = await questionFor(user, id)
    const credential_response = createSecurityKey().create(question, spoil)
    const refused = await answer(user, id, challengeId, { type: 'create', credential_response })
    expect(refused).toMatchObject(refusal(422, 'mfa_verification_failed'))
    expect((await service.get('/user', user.auth)).body.factors).toMatchObject([{ status: 'unverified' }])
  })

  test('that is refused leaves its reason in the log alone', async () => {
    const log = await startLogFile()
    const logged = await service.with(log.settings)
    const spoil = { origin: 'https://forgotten.example' }
    const user = await service.signedIn()
    const id = await enroll(user)
    const { challengeId, question } = await questionFor(user, id)
    const registered = { type: 'create', credential_response: createSecurityKey().create(question, spoil) }
    const known = await withKey()
    const asked = await questionFor(known, known.id)
    const proven = { type: 'request', credential_response: known.key.get(asked.question, spoil) }
    for (const [who, factor, challenge, webauthn] of [
      [user, id, challengeId, registered],
      [known, known.id, asked.challengeId, proven],
    ] as const) {
      const answered = await logged.post(`/factors/${factor}/verify`, { challenge_id: challenge, webauthn }, who.auth)
      expect(answered).toMatchObject(refusal(422, 'mfa_verification_failed', 'Invalid WebAuthn credential'))
    }
    const reasons = async () => (await log.about('request refused')).map(({ err }) => err.message)
    const reason = expect.stringContaining('https://forgotten.example')
    await expect.poll(reasons).toEqual([reason, reason])
    await logged.close()
  })

  test('that registers may be signed by the key itself', async () => {
    const user = await service.signedIn()
    const id = await enroll(user)
    const { challengeId, question } = await questionFor(user, id)
    const credential_response = createSecurityKey().create(question, { attestation: 'self' })
    expect((await answer(user, id, challengeId, { type: 'create', credential_response })).status).toBe(200)
  })

  test.for([
    [1023, 200],
    [1024, 422],
    [3000, 422],
  ] as const)('that registers a key whose id has %i bytes gets %i', async ([bytes, status]) => {
    const user = await service.signedIn()
    const id = await enroll(user)
    const { challengeId, question } = await questionFor(user, id)
    const credential_response = createSecurityKey(bytes).create(question)
    expect((await answer(user, id, challengeId, { type: 'create', credential_response })).status).toBe(status)
  })

  test("of another's key is refused, and a key is one factor only", async () => {
    const [user, other] = [await withKey(), await withKey()]
    expect(await prove({ ...user, key: other.key })).toMatchObject(refusal(422, 'mfa_verification_failed'))
    const third = await service.signedIn()
    const id = await enroll(third)
    const { challengeId, question } = await questionFor(third, id)
    const credential_response = user.key.create(question)
    expect(await answer(third, id, challengeId, { type: 'create', credential_response })).toMatchObject(
      refusal(422, 'mfa_verification_failed'),
    )
  })

  test('is accepted once: of many at once one', async () => {
    const user = await withKey()
    const logins = await Promise.all([1, 2, 3, 4].map(() => signInAgain(service, user.email)))
    const { challengeId, question } = await questionFor(logins[0] as SignedIn, user.id)
    const same = { type: 'request', credential_response: user.key.get(question) }
    const answers = await Promise.all(logins.map((login) => answer(login, user.id, challengeId, same)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('with the counter of another one is refused, even when both were checked before either was stored', async () => {
    const user = await withKey()
    const asked = [await questionFor(user, user.id), await questionFor(user, user.id)]
    // The lock on the user's row lets both requests check the key and neither store its counter.
    const holder = await service.deps.pool.connect()
    await holder.query('begin')
    await holder.query('select from users where id = $1 for update', [user.userId])
    const answers = Promise.all(
      asked.map(({ question, challengeId }) => {
        const credential_response = user.key.get(question, { counter: 100 })
        return answer(user, user.id, challengeId, { type: 'request', credential_response })
      }),
    )
    await expect.poll(() => countLockWaits(holder)).toBe(2)
    await holder.query('commit')
    holder.release()
    expect((await answers).map(({ status }) => status).toSorted()).toEqual([200, 422])
  })

  test.for([
    [undefined, 'WebAuthn config required'],
    ['text', 'WebAuthn config required'],
    [{}, 'WebAuthn type must be create or request'],
    [{ type: 'delete' }, 'WebAuthn type must be create or request'],
    [{ type: 'create' }, 'credential_response required'],
    [{ type: 'create', credential_response: {} }, 'Invalid credential_response'],
    [{ type: 'create', credential_response: [] }, 'Invalid credential_response'],
    [{ type: 'create', credential_response: { id: 'a', rawId: 'a', response: {} } }, 'Invalid credential_response'],
    [
      { type: 'create', credential_response: { ...keyAnswer(), padding: 'x'.repeat(20_000) } },
      'Invalid credential_response',
    ],
    [{ type: 'request', credential_response: keyAnswer() }, 'Invalid credential_response'],
  ] as const)('%# of a wrong shape is refused', async ([webauthn, msg]) => {
    const user = await service.signedIn()
    const id = await enroll(user)
    const { challengeId } = await questionFor(user, id)
    expect(await answer(user, id, challengeId, webauthn)).toMatchObject(refusal(400, 'validation_failed', msg))
  })

  test.for(['', 'AAAA', '!!!', 'x'.repeat(8_000), Buffer.from('{"type":null}').toString('base64url')])(
    'of garbage (%#) is refused',
    async (garbage) => {
      const user = await service.signedIn()
      const id = await enroll(user)
      const { challengeId, question } = await questionFor(user, id)
      const good = createSecurityKey().create(question)
      for (const part of ['clientDataJSON', 'attestationObject']) {
        const credential_response = { ...good, response: { ...good.response, [part]: garbage } }
        const refused = await answer(user, id, challengeId, { type: 'create', credential_response })
        expect(refused).toMatchObject(refusal(422, 'mfa_verification_failed'))
      }
    },
  )

  test('that registers cannot replace a proven key, by a challenge from before it was proven', async () => {
    const email = 'squatter@example.com'
    const owner = await service.signedIn(email)
    const id = await enroll(owner)
    const early = await questionFor(owner, id)
    const { challengeId, question } = await questionFor(owner, id)
    const key = createSecurityKey()
    const credential_response = key.create(question)
    expect((await answer(owner, id, challengeId, { type: 'create', credential_response })).status).toBe(200)
    const again = await signInAgain(service, email)
    const theirs = { type: 'create', credential_response: createSecurityKey().create(early.question) }
    expect(await answer(again, id, early.challengeId, theirs)).toMatchObject(refusal(422, 'mfa_verification_failed'))
    expect((await prove({ email, key, id })).status).toBe(200)
  })

  test('that registers is none to a challenge that asks for the key', async () => {
    const user = await withKey()
    const login = await signInAgain(service, user.email)
    const { challengeId, question } = await questionFor(login, user.id)
    const credential_response = createSecurityKey().create(question)
    expect(await answer(login, user.id, challengeId, { type: 'create', credential_response })).toMatchObject(
      refusal(400, 'validation_failed'),
    )
  })
})

function keyAnswer() {
  return createSecurityKey().create({ ...SITE, challenge: 'AAAA' })
}

describe('the relying party', () => {
  const rpOf = async (webauthn: unknown, on = service) => {
    const { auth } = await on.signedIn()
    const { body } = await on.post('/factors', { factor_type: 'webauthn' }, auth)
    const opened = await on.post(`/factors/${body.id}/challenge`, { webauthn }, auth)
    return opened.status === 200 ? opened.body.webauthn.credential_options.publicKey.rp.id : opened
  }

  test.for([
    [undefined, 'site.example'],
    [{ rpId: null, rpOrigins: null }, 'site.example'],
    [{ rpId: 'site.example', rpOrigins: ['https://site.example'] }, 'site.example'],
    [{ rpId: 'app.other.example', rpOrigins: ['https://app.other.example'] }, 'app.other.example'],
    [{ rpId: 'other.example', rpOrigins: ['https://app.other.example'] }, 'other.example'],
  ] as const)('%j is the site, or part of what users may be sent to', async ([asked, id]) => {
    expect(await rpOf(asked)).toBe(id)
  })

  test.for([
    { rpId: 'evil.example', rpOrigins: ['https://evil.example'] },
    { rpId: 'site.example', rpOrigins: ['https://site.example', 'https://evil.example'] },
    { rpId: 'evil.example', rpOrigins: ['https://site.example'] },
    { rpId: 'example', rpOrigins: ['https://site.example'] },
    { rpId: 'te.example', rpOrigins: ['https://site.example'] },
    { rpId: 'site.example', rpOrigins: ['https://site.example/path'] },
    { rpId: 'site.example', rpOrigins: [] },
    { rpId: 'site.example', rpOrigins: Array.from({ length: 11 }, () => 'https://site.example') },
    { rpId: 'site.example' },
    { rpOrigins: ['https://site.example'] },
    { rpId: 7, rpOrigins: 'https://site.example' },
  ])('%j is refused', async (asked) => {
    expect(await rpOf(asked)).toMatchObject(refusal(400, 'validation_failed'))
  })

  test('of the settings is the only one, where they name it', async () => {
    const fixed = await startTestService({
      ...SWITCHES,
      AUTH_WEBAUTHN_RP_ID: 'keys.example',
      AUTH_WEBAUTHN_RP_ORIGINS: 'https://keys.example,https://app.keys.example',
      AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Keys',
    })
    expect(await rpOf(ASKED, fixed)).toBe('keys.example')
    await fixed.close()
  })
})
