// Passkeys at two replicas: registering, signing in, own passkeys and an admin's view of them.
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startLogFile } from '../../../test/log-file.ts'
import { claimsOf, signInAgain, withTotp } from '../../../test/second-factors.ts'
import {
  type Answer,
  fragmentOf,
  linkPath,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from '../../../test/service.ts'
import {
  ask,
  assertion,
  begin,
  finish,
  handleOf,
  PASSKEYS,
  prove,
  register,
  SITE,
  signIn,
  withPasskey,
} from '../../../test/webauthn/passkeys.ts'
import { createSecurityKey, SYNCED, VERIFIED } from '../../../test/webauthn/security-key.ts'
import type { Metadata } from '../../db/tables.ts'
import { deleteExpired } from '../../housekeeping.ts'

let service: TestService
let replica: TestService
/** A user whose refused requests change nothing. */
let refused: Awaited<ReturnType<typeof withPasskey>>
beforeAll(async () => {
  service = await startTestService({
    ...PASSKEYS,
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_PASSKEY_MAX_PASSKEYS_PER_USER: '2',
    // One test waits for hours.
    AUTH_JWT_EXP: '86400',
    AUTH_MAILER_NOTIFICATIONS_PASSKEY_ADDED_ENABLED: 'true',
    AUTH_MAILER_NOTIFICATIONS_PASSKEY_REMOVED_ENABLED: 'true',
  })
  replica = await service.with({})
  refused = await withPasskey(service)
})
afterAll(async () => {
  await replica.close()
  await service.close()
})

const refusal = (status: number, error_code: string, msg: string) => ({
  status,
  body: { code: status, error_code, msg },
})
const FAILED = refusal(400, 'webauthn_verification_failed', 'Credential verification failed')
const MALFORMED = refusal(400, 'webauthn_verification_failed', 'Invalid credential response')
const NOT_FOUND = refusal(400, 'webauthn_challenge_not_found', 'Challenge not found or already used')
const EXPIRED = refusal(400, 'webauthn_challenge_expired', 'Challenge has expired')
const UNKNOWN = refusal(404, 'validation_failed', 'Passkey not found')
const AAL2 = refusal(403, 'insufficient_aal', 'AAL2 session is required to manage passkeys when MFA is enabled')
const invalid = (msg: string) => refusal(400, 'validation_failed', msg)

const PRESENT = 0x01
const WITH_KEY = 0x40

const statuses = (answers: Answer[]) => answers.map(({ status }) => status).toSorted()
const patch = async ({ auth }: Pick<SignedIn, 'auth'>, id: string, payload: object, at = service) => {
  const answer = await at.app.inject({ method: 'PATCH', url: `/passkeys/${id}`, headers: auth, payload })
  return { status: answer.statusCode, body: answer.json() }
}
const keysOf = async ({ auth }: Pick<SignedIn, 'auth'>) => (await service.get('/passkeys', auth)).body
const rowsOf = async (table: 'passkeys' | 'used_passkey_challenges') =>
  (await service.deps.pool.query(`select * from ${table}`)).rows

/** Audit entries of an action, with the traits. */
async function audited(action: string, userId: string) {
  const { body } = await service.get(`/admin/audit?query=action:${action}&per_page=1000`, service.admin)
  return body.filter(({ payload }: { payload: { actor_id: string; traits?: { user_id?: string } } }) =>
    [payload.actor_id, payload.traits?.user_id].includes(userId),
  )
}

const noticesTo = async (userId: string): Promise<string[]> => {
  const { body } = await service.get(`/admin/messages?user_id=${userId}&per_page=100`, service.admin)
  return body.messages.map(({ kind }: { kind: string }) => kind).filter((kind: string) => kind.startsWith('passkey_'))
}

/** Runs requests while the user's row is locked, until so many wait for it; the holder then acts and commits. */
async function whileLocked(
  userId: string,
  waiting: number,
  send: () => Promise<Answer>[],
  act: (query: (sql: string, values: string[]) => Promise<unknown>) => Promise<unknown> = async () => undefined,
): Promise<Answer[]> {
  const holder = await service.deps.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from users where id = $1 for update', [userId])
    const answers = Promise.all(send())
    await expect.poll(() => countLockWaits(holder)).toBe(waiting)
    await act((sql, values) => holder.query(sql, values))
    await holder.query('commit')
    return await answers
  } finally {
    holder.release()
  }
}

describe('registering', () => {
  test('offers the options of the site, stores the key and notifies the user', async () => {
    const user = await service.signedIn('ada@example.com')
    await service.put('/user', { data: { name: 'Ada' } }, user.auth)
    const begun = await begin(service, user)
    expect(begun).toMatchObject({
      status: 200,
      body: {
        challenge_id: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-7/),
        expires_at: Math.floor(service.clock.now().getTime() / 1000) + 300,
        options: {
          rp: { id: 'site.example', name: 'Site' },
          user: { id: handleOf(user.userId), name: 'ada@example.com', displayName: 'Ada' },
          challenge: expect.stringMatching(/^[\w-]{43}$/),
          pubKeyCredParams: expect.arrayContaining([{ type: 'public-key', alg: -7 }]),
          timeout: 300_000,
          authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
          attestation: 'none',
        },
      },
    })
    expect(begun.body.options).not.toHaveProperty('excludeCredentials')
    const key = createSecurityKey()
    const aaguid = 'bada5566-a7aa-401f-bd96-45619a55120d'
    const credential = key.create({ ...SITE, challenge: begun.body.options.challenge }, { aaguid })
    const registered = await finish(replica, user, begun.body.challenge_id, credential)
    const { id } = registered.body
    const created_at = service.clock.now().toISOString()
    expect(registered).toMatchObject({ status: 200, body: { id, friendly_name: '1Password', created_at } })
    expect(await keysOf(user)).toEqual([{ id, friendly_name: '1Password', created_at }])
    const [row] = (await rowsOf('passkeys')).filter((each) => each.id === id)
    expect(row).toMatchObject({ credential_id: credential.id, attestation: 'none', aaguid, transports: ['usb'] })
    expect(await audited('passkey_created', user.userId)).toMatchObject([{ payload: { traits: { passkey_id: id } } }])
    expect(await noticesTo(user.userId)).toEqual(['passkey_added_notification'])
    const mail = await service.mailbox.waitFor('ada@example.com', { subject: 'A passkey was added' })
    expect(mail.text).toContain('1Password')
    const again = await begin(service, user)
    expect(again.body.options.excludeCredentials).toEqual([
      { id: credential.id, transports: ['usb'], type: 'public-key' },
    ])
  })

  test.for([
    ['from another origin', { origin: 'https://evil.example' }],
    ['for another site', { rpId: 'evil.example' }],
    ['to another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['of another kind', { type: 'webauthn.get' }],
    ['without a touch', { flags: WITH_KEY }],
    ['with a certificate of its maker', { attestation: 'certificate' }],
    ['of a format nobody asked for', { fmt: 'android-safetynet' }],
    ['that is backed up but cannot be', { flags: PRESENT | WITH_KEY | 0x10 }],
  ] as const)('a key %s is refused', async ([, spoil]) => {
    expect(await register(service, refused, createSecurityKey(), spoil)).toMatchObject(FAILED)
    expect(await keysOf(refused)).toHaveLength(1)
  })

  test('accepts each configured origin, and self-attestation', async () => {
    const user = await service.signedIn()
    const spoil = { origin: 'https://app.site.example', attestation: 'self' } as const
    expect((await register(service, user, createSecurityKey(), spoil)).status).toBe(200)
  })

  test('refuses what is no answer by name', async () => {
    const user = await service.signedIn()
    const { body } = await begin(service, user)
    const id = body.challenge_id
    expect(await finish(service, user, undefined, {})).toMatchObject(invalid('challenge_id is required'))
    expect(await finish(service, user, id, undefined)).toMatchObject(invalid('credential is required'))
    expect(await finish(service, user, 'x', {})).toMatchObject(invalid('challenge_id must be a valid UUID'))
    expect(await finish(service, user, id, { id: 'a' })).toMatchObject(MALFORMED)
    // The attempt used the challenge up.
    const credential = createSecurityKey().create({ ...SITE, challenge: body.options.challenge })
    expect(await finish(service, user, id, credential)).toMatchObject(NOT_FOUND)
  })

  test('is not for anonymous users, nor for a session below the second factor of its user', async () => {
    const anonymous = toSignedIn((await service.post('/signup', {})).body)
    const answer = await begin(service, anonymous)
    expect(answer).toMatchObject({ status: 403, body: { error_code: 'no_authorization' } })
    const user = await withTotp(service)
    const begun = await begin(service, user)
    const lower = await signInAgain(service, user.email)
    expect(await begin(service, lower)).toMatchObject(AAL2)
    const credential = createSecurityKey().create({ ...SITE, challenge: begun.body.options.challenge })
    expect(await finish(service, lower, begun.body.challenge_id, credential)).toMatchObject(AAL2)
    expect((await finish(service, user, begun.body.challenge_id, credential)).status).toBe(200)
  })

  test('at two replicas at once does not pass the limit of keys', async () => {
    const user = await service.signedIn()
    expect((await register(service, user)).status).toBe(200)
    const begun = await Promise.all([service, replica, service, replica].map((at) => begin(at, user)))
    const answers = await Promise.all(
      begun.map(({ body }, index) => {
        const credential = createSecurityKey().create({ ...SITE, challenge: body.options.challenge })
        return finish(index % 2 ? replica : service, user, body.challenge_id, credential)
      }),
    )
    expect(statuses(answers)).toEqual([200, 422, 422, 422])
    const full = refusal(422, 'too_many_passkeys', 'Maximum number of passkeys reached')
    expect(answers.find(({ status }) => status === 422)).toMatchObject(full)
    expect(await begin(service, user)).toMatchObject(full)
  })

  test('of one key by two users at once succeeds once', async () => {
    const users = [await service.signedIn(), await service.signedIn()]
    const key = createSecurityKey()
    const at = [service, replica]
    const answers = await Promise.all(users.map((user, index) => register(at[index] ?? service, user, key)))
    expect(statuses(answers)).toEqual([200, 422])
    expect(answers.find(({ status }) => status === 422)).toMatchObject(
      refusal(422, 'webauthn_credential_exists', 'This credential is already registered'),
    )
  })
})

describe('a challenge', () => {
  /** Answers a challenge of a registration, and the refusal that another caller of it gets. */
  const credentialFor = ({ body }: Answer) => createSecurityKey().create({ ...SITE, challenge: body.options.challenge })

  test('of a registration is answered once, by the session that asked', async () => {
    const user = await service.signedIn('session@example.com')
    const other = await service.signedIn()
    const begun = await begin(service, user)
    const [id, credential] = [begun.body.challenge_id, credentialFor(begun)]
    expect(await finish(service, other, id, credential)).toMatchObject(NOT_FOUND)
    const elsewhere = await signInAgain(service, 'session@example.com')
    expect(await finish(service, elsewhere, id, credential)).toMatchObject(NOT_FOUND)
    const answers = await Promise.all([service, replica].map((at) => finish(at, user, id, credential)))
    expect(statuses(answers)).toEqual([200, 400])
    expect(answers.find(({ status }) => status === 400)).toMatchObject(NOT_FOUND)
  })

  test('of a sign-in is answered once at all replicas, and a wrong answer uses it up', async () => {
    const passkey = await withPasskey(service)
    const asked = await ask(service)
    const credential = assertion(asked, passkey)
    const answers = await Promise.all(
      [service, replica, service].map((at) => prove(at, asked.body.challenge_id, credential)),
    )
    expect(statuses(answers)).toEqual([200, 400, 400])
    expect(answers.find(({ status }) => status === 400)).toMatchObject(NOT_FOUND)
    const second = await ask(service)
    const wrong = assertion(second, passkey, { origin: 'https://evil.example' })
    expect(await prove(service, second.body.challenge_id, wrong)).toMatchObject(FAILED)
    const right = assertion(second, passkey)
    expect(await prove(replica, second.body.challenge_id, right)).toMatchObject(NOT_FOUND)
  })

  test('of one kind is none of the other', async () => {
    const passkey = await withPasskey(service)
    const begun = await begin(service, passkey)
    expect(await prove(service, begun.body.challenge_id, assertion(begun, passkey))).toMatchObject(NOT_FOUND)
    const asked = await ask(service)
    const credential = createSecurityKey().create({ ...SITE, challenge: asked.body.options.challenge })
    expect(await finish(service, passkey, asked.body.challenge_id, credential)).toMatchObject(NOT_FOUND)
  })

  test('that is not ours is not found, whatever its form', async () => {
    const passkey = await withPasskey(service)
    const asked = await ask(service)
    const id: string = asked.body.challenge_id
    const later = `ffff${id.slice(4)}`
    const v4 = crypto.randomUUID()
    for (const other of [
      '00000000-0000-0000-0000-000000000000',
      v4,
      later,
      `${id.slice(0, -1)}${(Number.parseInt(id.slice(-1), 16) ^ 1).toString(16)}`,
    ]) {
      expect(await prove(service, other, assertion(asked, passkey))).toMatchObject(NOT_FOUND)
    }
    expect((await prove(service, id.toUpperCase(), assertion(asked, passkey))).status).toBe(200)
    expect(await prove(service, id, assertion(asked, passkey))).toMatchObject(NOT_FOUND)
  })

  test('expires, is not stored before its answer, and is deleted once time alone refuses it', async () => {
    const passkey = await withPasskey(service)
    const before = (await rowsOf('used_passkey_challenges')).length
    const asked = await ask(service)
    expect(await rowsOf('used_passkey_challenges')).toHaveLength(before)
    service.clock.advance({ seconds: 300 })
    expect(await prove(service, asked.body.challenge_id, assertion(asked, passkey))).toMatchObject(EXPIRED)
    const spent = await ask(service)
    expect((await prove(service, spent.body.challenge_id, assertion(spent, passkey))).status).toBe(200)
    service.clock.advance({ seconds: 3_600 })
    // A longer validity does not revive it.
    const patient = await service.with({ AUTH_WEBAUTHN_CHALLENGE_EXPIRY_DURATION: '1h' })
    await deleteExpired(service.deps, service.deps.log, {})
    service.clock.advance({ seconds: -1 })
    expect(await prove(patient, spent.body.challenge_id, assertion(spent, passkey))).toMatchObject(NOT_FOUND)
    await patient.close()
    service.clock.advance({ seconds: 602 })
    await deleteExpired(service.deps, service.deps.log, {})
    expect(await rowsOf('used_passkey_challenges')).toEqual([])
  })
})

describe('signing in', () => {
  test('names no account before, and starts a session of aal1', async () => {
    const passkey = await withPasskey(service)
    const asked = await ask(replica)
    expect(asked).toMatchObject({
      status: 200,
      body: {
        challenge_id: expect.any(String),
        options: {
          challenge: expect.any(String),
          timeout: 300_000,
          rpId: 'site.example',
          userVerification: 'preferred',
        },
        expires_at: expect.any(Number),
      },
    })
    expect(asked.body.options).not.toHaveProperty('allowCredentials')
    const { status, body } = await prove(
      service,
      asked.body.challenge_id,
      assertion(asked, passkey, { flags: PRESENT | VERIFIED }),
    )
    expect(status).toBe(200)
    expect(body.user.id).toBe(passkey.userId)
    expect(claimsOf(toSignedIn(body))).toMatchObject({ aal: 'aal1', amr: [{ method: 'passkey' }] })
    const used = service.clock.now().toISOString()
    expect(await keysOf(passkey)).toMatchObject([{ id: passkey.passkeyId, last_used_at: used }])
    const logins = (await audited('login', passkey.userId)).map(({ payload }: { payload: Metadata }) => payload.traits)
    expect(logins).toContainEqual({ provider: 'passkey', passkey_id: passkey.passkeyId })
    const { body: refreshed } = await service.post('/token?grant_type=refresh_token', {
      refresh_token: body.refresh_token,
    })
    expect(claimsOf(toSignedIn(refreshed))).toMatchObject({ aal: 'aal1', amr: [{ method: 'passkey' }] })
  })

  test.for([
    ['from another origin', { origin: 'https://evil.example' }],
    ['for another site', { rpId: 'evil.example' }],
    ['to another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['of another kind', { type: 'webauthn.create' }],
    ['without a touch', { flags: 0 }],
    ['of a key that backups hold now', { flags: PRESENT | SYNCED }],
  ] as const)('an assertion %s is refused', async ([, spoil]) => {
    expect(await signIn(service, refused, spoil)).toMatchObject(FAILED)
  })

  test('whatever is wrong with the key, the answer is the same', async () => {
    const countFailures = async () => {
      const traits = { provider: 'passkey', error_code: 'webauthn_verification_failed' }
      const found = `select count(*)::integer from audit_log_entries where payload -> 'traits' = $1::jsonb`
      return (await service.deps.pool.query(found, [JSON.stringify(traits)])).rows[0].count
    }
    const before = await countFailures()
    const [passkey, other] = [await withPasskey(service), await withPasskey(service)]
    const deleted = await withPasskey(service)
    expect((await service.delete(`/passkeys/${deleted.passkeyId}`, deleted.auth)).status).toBe(204)
    const gone = await withPasskey(service)
    const soft = { should_soft_delete: true }
    await service.app.inject({
      method: 'DELETE',
      url: `/admin/users/${gone.userId}`,
      headers: service.admin,
      payload: soft,
    })
    const wrong = [
      { ...passkey, userId: other.userId },
      { ...passkey, key: other.key },
      { ...passkey, key: createSecurityKey() },
      { ...passkey, userId: crypto.randomUUID() },
      { ...passkey, userId: '' },
      { ...passkey, userId: 'not a user' },
      deleted,
      gone,
    ]
    for (const each of wrong) expect(await signIn(service, each)).toMatchObject(FAILED)
    const asked = await ask(service)
    const unsigned = assertion(asked, passkey)
    unsigned.response.signature = assertion(asked, other).response.signature
    expect(await prove(service, asked.body.challenge_id, unsigned)).toMatchObject(FAILED)
    expect(await countFailures()).toBe(before + wrong.length + 1)
  })

  test('refuses what is no answer by name', async () => {
    const { body } = await ask(service)
    expect(await prove(service, undefined, {})).toMatchObject(invalid('challenge_id is required'))
    expect(await prove(service, body.challenge_id, undefined)).toMatchObject(invalid('credential is required'))
    expect(await prove(service, 'x', {})).toMatchObject(invalid('challenge_id must be a valid UUID'))
    expect(await prove(service, body.challenge_id, { id: 'a' })).toMatchObject(MALFORMED)
  })

  test('is refused to banned users and to those whose address is not confirmed', async () => {
    const passkey = await withPasskey(service)
    await service.put(`/admin/users/${passkey.userId}`, { ban_duration: '1h' }, service.admin)
    expect(await signIn(service, passkey)).toMatchObject({ status: 403, body: { error_code: 'user_banned' } })
    const pending = await withPasskey(service)
    await service.deps.pool.query('update users set email_confirmed_at = null where id = $1', [pending.userId])
    expect(await signIn(service, pending)).toMatchObject({ status: 403, body: { error_code: 'email_not_confirmed' } })
  })

  test('by a count that went back is refused, and the user is warned once a day', async () => {
    const passkey = await withPasskey(service, {}, 'copied@example.com')
    expect((await signIn(service, passkey, { counter: 7 })).status).toBe(200)
    expect(await signIn(service, passkey, { counter: 7 })).toMatchObject(FAILED)
    expect(await signIn(service, passkey, { counter: 3 })).toMatchObject(FAILED)
    expect((await noticesTo(passkey.userId)).filter((kind) => kind === 'passkey_copied_notification')).toHaveLength(1)
    // An authenticator that counts nothing any more, as after a move to a synced one.
    expect((await signIn(service, passkey, { counter: 0 })).status).toBe(200)
    expect(await signIn(service, passkey, { counter: 7 })).toMatchObject(FAILED)
    expect((await signIn(service, passkey, { counter: 8 })).status).toBe(200)
  })

  test('by one count twice at once succeeds once, and the user is warned', async () => {
    const passkey = await withPasskey(service, {}, 'copied-at-once@example.com')
    expect((await signIn(service, passkey, { counter: 7 })).status).toBe(200)
    const asked = await Promise.all([ask(service), ask(replica)])
    const answers = await whileLocked(passkey.userId, 2, () =>
      asked.map((each) => prove(service, each.body.challenge_id, assertion(each, passkey, { counter: 8 }))),
    )
    expect(statuses(answers)).toEqual([200, 400])
    expect(await noticesTo(passkey.userId)).toContain('passkey_copied_notification')
  })

  test('that is overtaken by the removal of the passkey warns of no copy', async () => {
    const passkey = await withPasskey(service, {}, 'removed-meanwhile@example.com')
    expect((await signIn(service, passkey, { counter: 7 })).status).toBe(200)
    const asked = await ask(service)
    const [answer] = await whileLocked(
      passkey.userId,
      1,
      () => [prove(service, asked.body.challenge_id, assertion(asked, passkey, { counter: 8 }))],
      (query) => query('delete from passkeys where id = $1', [passkey.passkeyId]),
    )
    expect(answer).toMatchObject(FAILED)
    expect(await noticesTo(passkey.userId)).not.toContain('passkey_copied_notification')
  })

  test('that waits for a ban is refused, as one by password is', async () => {
    const email = 'banned-meanwhile@example.com'
    const passkey = await withPasskey(service, {}, email)
    const asked = await ask(service)
    const answers = await whileLocked(
      passkey.userId,
      2,
      () => [
        prove(service, asked.body.challenge_id, assertion(asked, passkey)),
        service.post('/token?grant_type=password', { email, password: 'correct horse' }),
      ],
      (query) => {
        const end = new Date(service.clock.now().getTime() + 3_600_000).toISOString()
        return query('update users set banned_until = $2 where id = $1', [passkey.userId, end])
      },
    )
    expect(answers.map(({ status, body }) => [status, body.error_code])).toEqual([
      [403, 'user_banned'],
      [400, 'user_banned'],
    ])
  })

  test('by a copied key waits for its user before it locks the passkey, as all flows do', async () => {
    const passkey = await withPasskey(service, {}, 'copied-and-locked@example.com')
    expect((await signIn(service, passkey, { counter: 7 })).status).toBe(200)
    const asked = await ask(service)
    const [answer] = await whileLocked(
      passkey.userId,
      1,
      () => [prove(service, asked.body.challenge_id, assertion(asked, passkey, { counter: 7 }))],
      (query) => query('update passkeys set friendly_name = $2 where id = $1', [passkey.passkeyId, 'renamed']),
    )
    expect(answer).toMatchObject(FAILED)
    expect(await noticesTo(passkey.userId)).toContain('passkey_copied_notification')
  })

  test('the log has the reason of a refused answer, which the answer does not reveal', async () => {
    const log = await startLogFile()
    const logged = await service.with(log.settings)
    const passkey = await withPasskey(service)
    const spoil = { origin: 'https://forgotten.example' }
    expect(await signIn(logged, passkey, spoil)).toMatchObject(FAILED)
    expect(await register(logged, passkey, createSecurityKey(), spoil)).toMatchObject(FAILED)
    const reasons = async () => (await log.about('request refused')).map(({ err }) => err.message)
    const reason = expect.stringContaining('https://forgotten.example')
    await expect.poll(reasons).toEqual([reason, reason])
    await logged.close()
  })

  test('with the user verified now and at the registration is aal2 where the switch is set', async () => {
    const strong = await service.with({ AUTH_PASSKEY_VERIFIED_IS_AAL2: 'true' })
    const verified = await withPasskey(service, { flags: PRESENT | WITH_KEY | VERIFIED })
    const touched = await withPasskey(service)
    const aalOf = async (...of: Parameters<typeof signIn>) => claimsOf(toSignedIn((await signIn(...of)).body)).aal
    const now = { flags: PRESENT | VERIFIED }
    expect(await aalOf(strong, verified, now)).toBe('aal2')
    expect(await aalOf(strong, verified)).toBe('aal1')
    // A thief can give a PIN to a key that had none.
    expect(await aalOf(strong, touched, now)).toBe('aal1')
    expect(await aalOf(service, verified, now)).toBe('aal1')
    await strong.close()
  })

  test('is limited by client address, like its challenges', async () => {
    const limited = await service.with({ AUTH_RATE_LIMIT_HEADER: 'x-client', AUTH_RATE_LIMIT_PASSKEY: '2' })
    const from = { 'x-client': '192.0.2.5' }
    const asked = [await ask(limited, from), await ask(limited, from), await ask(limited, from)]
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 429])
    const proofs = []
    for (let i = 0; i < 3; i++) proofs.push((await prove(limited, crypto.randomUUID(), {}, from)).status)
    expect(proofs).toEqual([400, 400, 429])
    expect((await ask(limited, { 'x-client': '192.0.2.6' })).status).toBe(200)
    await limited.close()
  })
})

describe('own passkeys', () => {
  test('are listed oldest first, renamed and removed; those of others are not found', async () => {
    const user = await withPasskey(service, {}, 'mine@example.com')
    service.clock.advance({ seconds: 1 })
    const second = (await register(service, user)).body.id
    expect((await keysOf(user)).map(({ id }: { id: string }) => id)).toEqual([user.passkeyId, second])
    expect(await patch(user, second, { friendly_name: ' Blue key ' })).toMatchObject({
      status: 200,
      body: { id: second, friendly_name: 'Blue key' },
    })
    expect(await patch(user, second, { friendly_name: ' ' })).toMatchObject(invalid('friendly_name is required'))
    expect(await patch(user, second, {})).toMatchObject(invalid('friendly_name is required'))
    expect((await patch(user, second, { friendly_name: 'ä'.repeat(120) })).status).toBe(200)
    expect(await patch(user, second, { friendly_name: 'x'.repeat(121) })).toMatchObject(
      invalid('friendly_name must be 120 characters or less'),
    )
    const other = await withPasskey(service)
    for (const id of [user.passkeyId, crypto.randomUUID(), 'x']) {
      expect(await patch(other, id, { friendly_name: 'theirs' })).toMatchObject(UNKNOWN)
      expect(await service.delete(`/passkeys/${id}`, other.auth)).toMatchObject(UNKNOWN)
    }
    const removed = await service.delete(`/passkeys/${second.toUpperCase()}`, user.auth)
    expect([removed.status, removed.text]).toEqual([204, ''])
    expect(await keysOf(user)).toHaveLength(1)
    for (const action of ['passkey_updated', 'passkey_deleted']) {
      expect((await audited(action, user.userId)).at(0).payload.traits).toEqual({ passkey_id: second })
    }
    expect(await noticesTo(user.userId)).toContain('passkey_removed_notification')
  })

  test('end with the sessions that they started, except the one that removes them', async () => {
    const user = await withPasskey(service)
    const [first, second] = [await signIn(service, user), await signIn(service, user)].map(({ body }) =>
      toSignedIn(body),
    )
    if (!first || !second) throw new Error('unreachable')
    expect((await service.delete(`/passkeys/${user.passkeyId}`, first.auth)).status).toBe(204)
    const alive = async ({ refreshToken }: SignedIn) =>
      (await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status
    expect([await alive(first), await alive(second), await alive(user)]).toEqual([200, 400, 200])
  })

  test('need the second factor of their user to be removed', async () => {
    const user = await withTotp(service)
    const { body } = await register(service, user)
    const lower = await signInAgain(service, user.email)
    expect(await service.delete(`/passkeys/${body.id}`, lower.auth)).toMatchObject(AAL2)
    expect((await patch(lower, body.id, { friendly_name: 'renamed' })).status).toBe(200)
    expect((await service.delete(`/passkeys/${body.id}`, user.auth)).status).toBe(204)
  })

  test('of a registrant are gone once the owner proves the address', async () => {
    const careless = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
    const email = 'victim@example.com'
    const { body } = await careless.post('/signup', { email, password: 'a horse of a stranger' })
    const stranger = toSignedIn(body)
    const key = createSecurityKey()
    expect((await register(service, stranger, key)).status).toBe(200)
    await service.post('/otp', { email })
    const link = await service.get(linkPath((await service.mailbox.waitFor(email, { subject: 'sign-in link' })).text))
    const owner = { authorization: `Bearer ${fragmentOf(link).access_token}` }
    expect((await service.get('/user', owner)).body.id).toBe(stranger.userId)
    expect(await keysOf({ auth: owner })).toEqual([])
    expect(await signIn(service, { key, userId: stranger.userId })).toMatchObject(FAILED)
    await careless.close()
  })

  test('keep the last way in', async () => {
    const user = await withPasskey(service)
    await service.deps.pool.query('update users set email = null, email_confirmed_at = null where id = $1', [
      user.userId,
    ])
    await service.deps.pool.query('delete from identities where user_id = $1', [user.userId])
    const remove = (id: string) => service.delete(`/passkeys/${id}`, user.auth)
    expect(await remove(user.passkeyId)).toMatchObject(
      refusal(422, 'single_identity_not_deletable', 'The last way to sign in cannot be deleted'),
    )
    const { body } = await register(service, user)
    // Two at once: one of them remains.
    const answers = await Promise.all([remove(user.passkeyId), replica.delete(`/passkeys/${body.id}`, user.auth)])
    expect(statuses(answers)).toEqual([204, 422])
  })
})

describe('the last way in that the settings accept is kept', () => {
  const KEPT = { status: 422, body: { error_code: 'single_identity_not_deletable' } }
  const NO_MAIL = { AUTH_EXTERNAL_EMAIL_ENABLED: 'false' }

  async function linked(userId: string, provider: string): Promise<string> {
    const { rows } = await service.deps.pool.query(
      `insert into identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
       values (gen_random_uuid(), $1, $2, $3, '{}', now(), now()) returning id`,
      [userId, provider, `sub-${userId}`],
    )
    return rows[0].id
  }

  test.for<[string, Record<string, string>]>([
    ['an address whose sign-in is disabled', NO_MAIL],
    ['an account at a provider that is not configured', NO_MAIL],
    ['an account of a wallet whose chain is disabled', NO_MAIL],
  ])('%s is none beside a passkey', async ([what, settings]) => {
    const user = await withPasskey(service)
    if (what.includes('provider')) await linked(user.userId, 'gitlab')
    if (what.includes('wallet')) await linked(user.userId, 'web3')
    const limited = await service.with(settings)
    expect(await limited.delete(`/passkeys/${user.passkeyId}`, user.auth)).toMatchObject(KEPT)
    await limited.close()
    expect((await service.delete(`/passkeys/${user.passkeyId}`, user.auth)).status).toBe(204)
  })

  test('a passkey is one beside an address and an account at a provider, while passkeys are enabled', async () => {
    const off = await service.with({
      AUTH_PASSKEY_ENABLED: 'false',
      AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    })
    const on = await service.with({ AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true' })
    const user = await withPasskey(service)
    const identity = await linked(user.userId, 'gitlab')
    expect(await off.put('/user', { email: '' }, user.auth)).toMatchObject(KEPT)
    expect((await on.put('/user', { email: '' }, user.auth)).status).toBe(200)
    expect(await off.delete(`/user/identities/${identity}`, user.auth)).toMatchObject(KEPT)
    expect((await on.delete(`/user/identities/${identity}`, user.auth)).status).toBe(200)
    expect(await on.delete(`/passkeys/${user.passkeyId}`, user.auth)).toMatchObject(KEPT)
    await off.close()
    await on.close()
  })
})

describe('an admin', () => {
  test('lists and removes passkeys, while they are disabled too', async () => {
    const user = await withPasskey(service)
    const session = toSignedIn((await signIn(service, user)).body)
    const off = await service.with({ AUTH_PASSKEY_ENABLED: 'false' })
    const url = `/admin/users/${user.userId}/passkeys`
    expect(await off.get(url, service.admin)).toMatchObject({ status: 200, body: [{ id: user.passkeyId }] })
    expect(await off.delete(`${url}/${crypto.randomUUID()}`, service.admin)).toMatchObject(UNKNOWN)
    const elsewhere = `/admin/users/${crypto.randomUUID()}/passkeys`
    expect(await off.get(elsewhere, service.admin)).toMatchObject({
      status: 404,
      body: { error_code: 'user_not_found' },
    })
    expect((await off.get(url, user.auth)).status).toBe(403)
    expect((await off.delete(`${url}/${user.passkeyId}`, service.admin)).status).toBe(204)
    expect(await audited('passkey_deleted', user.userId)).toMatchObject([
      { payload: { traits: { user_id: user.userId, passkey_id: user.passkeyId } } },
    ])
    const refresh = await service.post('/token?grant_type=refresh_token', { refresh_token: session.refreshToken })
    expect(refresh.status).toBe(400)
    await off.close()
  })
})

test('a browser learns which passkeys are accepted, origins are related, and password managers find the pages', async () => {
  const user = await withPasskey(service)
  const { body } = await service.get('/passkeys/signal', user.auth)
  const [row] = (await rowsOf('passkeys')).filter((each) => each.id === user.passkeyId)
  expect(body).toEqual({
    rp_id: 'site.example',
    user_id: handleOf(user.userId),
    credential_ids: [row.credential_id],
  })
  const page = 'https://site.example/passkeys'
  const paged = await service.with({
    AUTH_PASSKEY_MANAGE_URL: page,
    AUTH_WEBAUTHN_RP_ORIGINS: `https://site.example,android:apk-key-hash:${'a'.repeat(43)}`,
  })
  expect((await paged.get('/.well-known/webauthn')).body).toEqual({ origins: ['https://site.example'] })
  expect((await paged.get('/.well-known/passkey-endpoints')).body).toEqual({ manage: page })
  await paged.close()
})

test('while passkeys are disabled each path says so before anything else', async () => {
  const user = await withPasskey(service)
  const off = await service.with({ AUTH_PASSKEY_ENABLED: 'false' })
  const paths = ['/passkeys/registration/options', '/passkeys/registration/verify', '/passkeys/x', '/passkeys/a/b']
  const disabled = refusal(404, 'passkey_disabled', 'Passkeys are disabled')
  for (const url of [...paths, '/passkeys/authentication/options', '/passkeys/authentication/verify']) {
    for (const headers of [{}, user.auth]) {
      const answer = await off.app.inject({
        method: 'POST',
        url,
        headers: { ...headers, 'content-type': 'application/json' },
        payload: '{',
      })
      expect({ status: answer.statusCode, body: answer.json() }).toMatchObject(disabled)
    }
  }
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    for (const url of ['/passkeys', '/passkeys?a=b', '/passkeys/signal', ...paths]) {
      const answer = await off.app.inject({ method, url })
      expect({ method, url, status: answer.statusCode, body: answer.json() }).toMatchObject({ url, ...disabled })
    }
  }
  expect((await off.get('/passkeysx')).body).toMatchObject({ error_code: 'not_found' })
  const flags = await Promise.all([service, off].map(async (at) => (await at.get('/settings')).body.passkeys_enabled))
  expect(flags).toEqual([true, false])
  await off.close()
})

test('a deleted account leaves no passkey', async () => {
  for (const soft of [true, false]) {
    const user = await withPasskey(service)
    const payload = { should_soft_delete: soft }
    await service.app.inject({ method: 'DELETE', url: `/admin/users/${user.userId}`, headers: service.admin, payload })
    expect((await rowsOf('passkeys')).filter((row) => row.user_id === user.userId)).toEqual([])
  }
})

describe('a sign-up with a passkey alone', () => {
  let open: TestService
  beforeAll(async () => {
    open = await service.with({ AUTH_PASSKEY_SIGNUP_ENABLED: 'true' })
  })
  afterAll(() => open.close())

  /** Signs up; `handle` is the id that the authenticator keeps. */
  async function signUp(given: object = {}, at = open) {
    const key = createSecurityKey()
    const begun = await at.post('/passkeys/signup/options', given)
    if (begun.status !== 200) return { begun, answer: begun, key, userId: '' }
    const { challenge, user } = begun.body.options
    const credential = key.create({ ...SITE, challenge })
    const body = { challenge_id: begun.body.challenge_id, credential, ...given }
    const userId = Buffer.from(user.id, 'base64url').toString()
    return { begun, body, answer: await at.post('/passkeys/signup/verify', body), key, userId }
  }

  /** Masks times, and replaces ids, tokens and addresses by their kind. */
  const masking = (body: object): unknown =>
    JSON.parse(
      JSON.stringify(body)
        .replaceAll(/"[\w-]+\.[\w-]+\.[\w-]+"/g, '"token"')
        .replaceAll(/[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/g, 'id')
        .replaceAll(/[\w-]+@example\.com/g, 'address')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
        .replaceAll(/"refresh_token":"[^"]+"/g, '"refresh_token":"token"'),
    )

  test('makes an account that signs in again, without an address', async () => {
    const { begun, answer, key, userId } = await signUp({ data: { name: 'Ada' } })
    expect(begun.body.options).toMatchObject({
      user: { name: 'Ada', displayName: 'Ada' },
      authenticatorSelection: { residentKey: 'required' },
    })
    expect(answer).toMatchObject({
      status: 200,
      body: { user: { id: userId, email: '', is_anonymous: false, identities: [], user_metadata: { name: 'Ada' } } },
    })
    const user = toSignedIn(answer.body)
    expect(claimsOf(user)).toMatchObject({ aal: 'aal1', amr: [{ method: 'passkey' }], role: 'authenticated' })
    expect((await signIn(service, { key, userId })).body.user.id).toBe(userId)
    const [{ id }] = await keysOf(user)
    const last = await service.delete(`/passkeys/${id}`, user.auth)
    expect(last.body.error_code).toBe('single_identity_not_deletable')
    for (const action of ['user_signedup', 'passkey_created']) expect(await audited(action, userId)).toHaveLength(1)
  })

  test('requests an address, which its owner adds by a link; that of another account stays there', async () => {
    const email = 'by-passkey@example.com'
    const { answer, key, userId } = await signUp({ email })
    expect(answer).toMatchObject({ status: 200, body: { user: { email: '', new_email: email } } })
    const { text } = await service.mailbox.waitFor(email)
    expect(text).toContain('a person already signed in to that account stays signed in, keeps its passkeys')
    expect((await service.get(linkPath(text))).status).toBe(303)
    const { auth } = toSignedIn(answer.body)
    const app_metadata = { provider: 'email', providers: ['email'] }
    expect((await service.get('/user', auth)).body).toMatchObject({ id: userId, email, app_metadata })
    expect((await signIn(service, { key, userId })).body.user.id).toBe(userId)
    await service.signedIn('taken-by-other@example.com')
    const other = await signUp({ email: 'taken-by-other@example.com' })
    const free = await signUp({ email: 'free-of-others@example.com' })
    await service.settled()
    expect(other.answer).toMatchObject({ status: 200, body: { user: { email: '' } } })
    const [masked, expected] = [other, free].map(({ answer: { status, body } }) => [status, masking(body)])
    expect(masked).toEqual(expected)
    expect(service.mailbox.messages({ to: 'taken-by-other@example.com' })).toEqual([])
  })

  test('uses its challenge once at all replicas, and is refused by name', async () => {
    const key = createSecurityKey()
    const begun = await open.post('/passkeys/signup/options')
    const credential = key.create({ ...SITE, challenge: begun.body.options.challenge })
    const body = { challenge_id: begun.body.challenge_id, credential }
    const second = await open.with({ AUTH_PASSKEY_SIGNUP_ENABLED: 'true' })
    const answers = await Promise.all([open, second].map((at) => at.post('/passkeys/signup/verify', body)))
    expect(statuses(answers)).toEqual([200, 400])
    expect(answers.find(({ status }) => status === 400)).toMatchObject(NOT_FOUND)
    const other = await open.post('/passkeys/signup/options')
    const again = key.create({ ...SITE, challenge: other.body.options.challenge })
    const known = await open.post('/passkeys/signup/verify', {
      challenge_id: other.body.challenge_id,
      credential: again,
    })
    expect(known).toMatchObject({ status: 422, body: { error_code: 'webauthn_credential_exists' } })
    expect((await signUp({ email: 'no address' })).answer).toMatchObject({
      status: 400,
      body: { error_code: 'validation_failed' },
    })
    const closed = await open.with({ AUTH_PASSKEY_SIGNUP_ENABLED: 'true', AUTH_DISABLE_SIGNUP: 'true' })
    expect((await signUp({}, closed)).answer).toMatchObject({ status: 422, body: { error_code: 'signup_disabled' } })
    expect((await signUp({}, service)).answer).toMatchObject(refusal(404, 'passkey_disabled', 'Passkeys are disabled'))
    await second.close()
    await closed.close()
  })
})
