// Security keys, by @simplewebauthn/server, which is loaded with the first key: it would be a tenth of an idle
// service's memory. A key's answer is hostile until the library has checked it, and is small.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { StoredCredential, WebauthnChallenge } from '../../db/tables.ts'

const library = () => import('@simplewebauthn/server')

const USER_VERIFICATION = 'preferred'

/** ES256, EdDSA and RS256. */
const ALGORITHMS = [-7, -8, -257]

export async function creationOptions(
  { rpId, displayName, challenge, timeoutSeconds }: KeyQuestion & { displayName: string },
  owner: { id: string; name: string },
  known: readonly StoredCredential[],
) {
  const { generateRegistrationOptions } = await library()
  return generateRegistrationOptions({
    rpID: rpId,
    rpName: displayName,
    userID: new TextEncoder().encode(owner.id),
    userName: owner.name,
    userDisplayName: owner.name,
    challenge: new Uint8Array(challenge),
    timeout: timeoutSeconds * 1000,
    attestationType: 'none',
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports })),
    authenticatorSelection: { residentKey: 'discouraged', userVerification: USER_VERIFICATION },
    supportedAlgorithmIDs: ALGORITHMS,
  })
}

export async function requestOptions(
  { rpId, challenge, timeoutSeconds }: KeyQuestion,
  { id, transports }: StoredCredential,
) {
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({
    rpID: rpId,
    challenge: new Uint8Array(challenge),
    timeout: timeoutSeconds * 1000,
    allowCredentials: [{ id, transports }],
    userVerification: USER_VERIFICATION,
  })
}

interface KeyQuestion {
  rpId: string
  challenge: Buffer
  timeoutSeconds: number
}

/** Base64url of 1023 bytes, the longest id (WebAuthn 5.8.3). No index could hold one twice as long. */
const MAX_ID_CHARACTERS = 1364

const expectationsOf = ({ challenge, origins, rpId }: WebauthnChallenge) => ({
  expectedChallenge: challenge,
  expectedOrigin: origins,
  expectedRPID: rpId,
  // A touch is enough: the password came before it.
  requireUserVerification: false,
})

/** Returns the new key, or undefined if the answer is not to this challenge. */
export async function checkRegistration(
  challenge: WebauthnChallenge,
  response: RegistrationResponseJSON,
): Promise<StoredCredential | undefined> {
  const { verifyRegistrationResponse } = await library()
  if (!(await isWithoutCertificates(response))) return undefined
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response,
    ...expectationsOf(challenge),
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(refused)
  if (!verified || !registrationInfo) return undefined
  const { aaguid, credential } = registrationInfo
  if (credential.id.length > MAX_ID_CHARACTERS) return undefined
  return {
    id: credential.id,
    publicKey: Buffer.from(credential.publicKey).toString('base64url'),
    counter: credential.counter,
    transports: transportsOf(response),
    aaguid,
  }
}

/** Returns the key with its new counter, or undefined if the answer is not its own to this challenge, or the counter went back. */
export async function checkAssertion(
  challenge: WebauthnChallenge,
  credential: StoredCredential,
  response: AuthenticationResponseJSON,
): Promise<StoredCredential | undefined> {
  if (response.id !== credential.id) return undefined
  const { verifyAuthenticationResponse } = await library()
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response,
    ...expectationsOf(challenge),
    credential: {
      id: credential.id,
      publicKey: new Uint8Array(Buffer.from(credential.publicKey, 'base64url')),
      counter: credential.counter,
    },
  }).catch(refused)
  return verified && authenticationInfo ? { ...credential, counter: authenticationInfo.newCounter } : undefined
}

const refused = () => ({ verified: false, registrationInfo: undefined, authenticationInfo: undefined }) as const

/**
 * We request no attestation, so browsers send none, or the key's own. One with certificates is refused: the library could fetch
 * revocation lists from addresses in it.
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

/** Whether the value has the shape of a registration or an assertion; the library checks the content. */
export function isKeyResponse(value: unknown, type: WebauthnChallenge['type']): boolean {
  if (typeof value !== 'object' || value === null || JSON.stringify(value).length > MAX_RESPONSE_CHARACTERS)
    return false
  const { id, rawId, response } = value as Record<string, unknown>
  if (typeof id !== 'string' || typeof rawId !== 'string' || typeof response !== 'object' || response === null) {
    return false
  }
  const parts = response as Record<string, unknown>
  const needed = type === 'create' ? ['attestationObject'] : ['authenticatorData', 'signature']
  return ['clientDataJSON', ...needed].every((name) => typeof parts[name] === 'string')
}
