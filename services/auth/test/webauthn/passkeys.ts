// Passkeys in software, at a service that has them enabled.

import type { Answer, SignedIn, TestService } from '../service.ts'
import { createSecurityKey, type SecurityKey } from './security-key.ts'

export const ORIGIN = 'https://site.example'
export const SITE = { rpId: 'site.example', origin: ORIGIN }

export const PASSKEYS = {
  AUTH_PASSKEY_ENABLED: 'true',
  AUTH_WEBAUTHN_RP_ID: 'site.example',
  AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Site',
  AUTH_WEBAUTHN_RP_ORIGINS: `${ORIGIN},https://app.site.example`,
}

type Who = Pick<SignedIn, 'auth'>
type Spoil = Parameters<SecurityKey['create']>[1]

/** A challenge as an authenticator gets it. */
const questionOf = ({ body }: Answer) => ({ ...SITE, challenge: body.options.challenge as string })

export const begin = (at: TestService, { auth }: Who, body: object = {}) =>
  at.post('/passkeys/registration/options', body, auth)

export const finish = (at: TestService, { auth }: Who, challenge_id: unknown, credential: unknown) =>
  at.post('/passkeys/registration/verify', { challenge_id, credential } as object, auth)

/** Registers a key; the answer of the last call. */
export async function register(at: TestService, user: Who, key = createSecurityKey(), spoil: Spoil = {}) {
  const begun = await begin(at, user)
  if (begun.status !== 200) return begun
  return finish(at, user, begun.body.challenge_id, key.create(questionOf(begun), spoil))
}

export interface Passkey {
  key: SecurityKey
  /** Id of the user, which the authenticator stores with the key. */
  userId: string
}

/** A user with one passkey. */
export async function withPasskey(at: TestService, spoil: Spoil = {}, email?: string) {
  const user = await at.signedIn(email)
  const key = createSecurityKey()
  const { status, body } = await register(at, user, key, spoil)
  if (status !== 200) throw new Error(`passkey not registered: ${JSON.stringify(body)}`)
  return { ...user, key, passkeyId: body.id as string }
}

export const ask = (at: TestService, headers: Record<string, string> = {}, body: object = {}) =>
  at.post('/passkeys/authentication/options', body, headers)

export const handleOf = (userId: string) => Buffer.from(userId).toString('base64url')

/** The assertion of a passkey to a challenge. */
export const assertion = (asked: Answer, { key, userId }: Passkey, spoil: Spoil = {}) =>
  key.get(questionOf(asked), spoil, handleOf(userId))

export const prove = (at: TestService, challenge_id: unknown, credential: unknown, headers = {}) =>
  at.post('/passkeys/authentication/verify', { challenge_id, credential } as object, headers)

export async function signIn(at: TestService, passkey: Passkey, spoil: Spoil = {}): Promise<Answer> {
  const asked = await ask(at)
  return prove(at, asked.body.challenge_id, assertion(asked, passkey, spoil))
}
