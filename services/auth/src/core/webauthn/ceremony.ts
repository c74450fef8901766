// Ceremonies of WebAuthn, of passkeys and of security keys as second factor, by @simplewebauthn/server. It is loaded
// with the first key: it would be a tenth of an idle service's memory. A key's answer is hostile until the library has
// checked it, and is small. Callers own challenges and keys: core/passkeys, core/factors.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { StoredCredential, WebauthnChallenge } from '../../db/tables.ts'

let loading: Promise<typeof import('@simplewebauthn/server')> | undefined
/** A repeated import() searches for the module again: 4 % of a sign-in. */
const library = () => {
  loading ??= import('@simplewebauthn/server')
  return loading
}

export const USER_VERIFICATION = 'preferred' as const

/** ES256, EdDSA and RS256. */
const ALGORITHMS = [-7, -8, -257]

/** A key as options name it. */
type KnownKey = Pick<StoredCredential, 'id' | 'transports'>

interface KeyQuestion {
  rpId: string
  challenge: Buffer
  timeoutSeconds: number
}

/** `id` is the user handle: a discoverable key replaces the one of its domain and handle in the same authenticator. */
interface KeyOwner {
  id: string
  name: string
  displayName: string
}

export async function creationOptions(
  {
    rpId,
    rpName,
    challenge,
    timeoutSeconds,
    residentKey,
  }: KeyQuestion & { rpName: string; residentKey: 'required' | 'discouraged' },
  owner: KeyOwner,
  known: readonly KnownKey[],
) {
  const { generateRegistrationOptions } = await library()
  return generateRegistrationOptions({
    rpID: rpId,
    rpName,
    userID: new TextEncoder().encode(owner.id),
    userName: owner.name,
    userDisplayName: owner.displayName,
    challenge: new Uint8Array(challenge),
    timeout: timeoutSeconds * 1000,
    attestationType: 'none',
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports })),
    authenticatorSelection: { residentKey, userVerification: USER_VERIFICATION },
    supportedAlgorithmIDs: ALGORITHMS,
  })
}

export async function requestOptions({ rpId, challenge, timeoutSeconds }: KeyQuestion, { id, transports }: KnownKey) {
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({
    rpID: rpId,
    challenge: new Uint8Array(challenge),
    timeout: timeoutSeconds * 1000,
    allowCredentials: [{ id, transports }],
    userVerification: USER_VERIFICATION,
  })
}

/** Base64url of 1023 bytes, the longest id (WebAuthn 5.8.3). No index could hold one twice as long. */
const MAX_ID_CHARACTERS = 1364

/** Challenge in base64url, and the pages and domain that may answer it. */
export type Ceremony = Pick<WebauthnChallenge, 'challenge' | 'rpId' | 'origins'>

const expectationsOf = ({ challenge, origins, rpId }: Ceremony) => ({
  expectedChallenge: challenge,
  expectedOrigin: origins,
  expectedRPID: rpId,
  // A touch is enough; callers that need more read `isUserVerified`.
  requireUserVerification: false,
})

export interface NewKey {
  credential: StoredCredential
  attestation: string
  isUserVerified: boolean
  isBackupEligible: boolean
  isBackedUp: boolean
}

/** An answer that is not the key's own to this challenge, with the reason, which only the log may show. */
interface Refused {
  refused: unknown
}

/** Returns the new key, or why the answer is refused. */
export async function checkRegistration(
  ceremony: Ceremony,
  response: RegistrationResponseJSON,
): Promise<NewKey | Refused> {
  const { verifyRegistrationResponse } = await library()
  if (!(await isWithoutCertificates(response))) return refuse('attestation of an unknown format or with certificates')
  const checked = await verifyRegistrationResponse({
    response,
    ...expectationsOf(ceremony),
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(asRefused)
  if ('refused' in checked) return checked
  if (!checked.verified) return refuse('attestation not verified')
  const { registrationInfo: info } = checked
  const { aaguid, credential } = info
  if (credential.id.length > MAX_ID_CHARACTERS) return refuse('id of the key too long')
  return {
    credential: {
      id: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      counter: credential.counter,
      transports: transportsOf(response),
      aaguid,
    },
    attestation: info.fmt,
    isUserVerified: info.userVerified,
    isBackupEligible: info.credentialDeviceType === 'multiDevice',
    isBackedUp: info.credentialBackedUp,
  }
}

export interface Assertion {
  counter: number
  isUserVerified: boolean
  isBackupEligible: boolean
  isBackedUp: boolean
}

/**
 * Returns what the key asserts, or why the answer is refused. One whose counter is not above `counter` is, unless both
 * are 0.
 */
export async function checkAssertion(
  ceremony: Ceremony,
  { id, publicKey, counter }: { id: string; publicKey: Buffer; counter: number },
  response: AuthenticationResponseJSON,
): Promise<Assertion | Refused> {
  if (response.id !== id) return refuse('answer of another key')
  const { verifyAuthenticationResponse } = await library()
  const checked = await verifyAuthenticationResponse({
    response,
    ...expectationsOf(ceremony),
    credential: { id, publicKey: new Uint8Array(publicKey), counter },
  }).catch(asRefused)
  if ('refused' in checked) return checked
  if (!checked.verified) return refuse('signature not verified')
  const { authenticationInfo: info } = checked
  return {
    counter: info.newCounter,
    isUserVerified: info.userVerified,
    isBackupEligible: info.credentialDeviceType === 'multiDevice',
    isBackedUp: info.credentialBackedUp,
  }
}

const asRefused = (refused: unknown): Refused => ({ refused })

const refuse = (reason: string) => asRefused(new Error(reason))

/**
 * We request no attestation, so browsers send none, or the key's own. One with certificates is refused: the library
 * could fetch revocation lists from addresses in it.
 */
async function isWithoutCertificates({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  try {
    const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
    const format = attestation.get('fmt')
    return format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined)
  } catch {
    return false
  }
}

const MAX_TRANSPORTS = 10

const transportsOf = ({ response }: RegistrationResponseJSON): string[] => {
  const transports: unknown[] = Array.isArray(response.transports) ? response.transports : []
  return transports
    .filter((item): item is string => typeof item === 'string' && /^[a-z-]{1,20}$/.test(item))
    .slice(0, MAX_TRANSPORTS)
}

/** Limit of an answer of about 1 KiB, or 2 KiB with an RSA key and signature. */
const MAX_RESPONSE_CHARACTERS = 16 * 1024

const NEEDED_PARTS = { create: ['attestationObject'], request: ['authenticatorData', 'signature'] } as const

/** Whether the value has the shape of a registration or an assertion; the library checks the content. */
export function isKeyResponse(value: unknown, type: 'create'): value is RegistrationResponseJSON
export function isKeyResponse(value: unknown, type: 'request'): value is AuthenticationResponseJSON
export function isKeyResponse(value: unknown, type: WebauthnChallenge['type']): boolean
export function isKeyResponse(value: unknown, type: WebauthnChallenge['type']): boolean {
  if (typeof value !== 'object' || value === null || JSON.stringify(value).length > MAX_RESPONSE_CHARACTERS)
    return false
  const { id, rawId, response } = value as Record<string, unknown>
  if (typeof id !== 'string' || typeof rawId !== 'string' || typeof response !== 'object' || response === null) {
    return false
  }
  const parts = response as Record<string, unknown>
  return ['clientDataJSON', ...NEEDED_PARTS[type]].every((name) => typeof parts[name] === 'string')
}
