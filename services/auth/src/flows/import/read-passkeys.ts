import { nameOfAuthenticator } from '../../core/passkeys/aaguid-names.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import type { PasskeyRow } from './import-users.store.ts'
import { isGiven, type Json, readText, readTime } from './line-fields.ts'

/** More than any user has: AUTH_PASSKEY_MAX_PASSKEYS_PER_USER is at most 100. */
const MAX_PASSKEYS = 100

/** Bytes of a COSE key: an RSA key of 4096 bits has about 530. */
const MAX_KEY_BYTES = 2048
const MAX_ID_CHARACTERS = 1364
const BASE64URL = /^[\w-]+$/
const MAX_COUNT = 2 ** 32 - 1

/** Reads `passkeys` as an export writes them; without a domain, which must stay the same. */
export function readPasskeys(
  { id, passkeys }: Json,
  account: { id: string; created_at: string },
  newId: () => string,
): PasskeyRow[] {
  if (passkeys === undefined || passkeys === null) return []
  if (!Array.isArray(passkeys) || passkeys.length > MAX_PASSKEYS) {
    throw new Error(`passkeys must be an array of at most ${MAX_PASSKEYS}`)
  }
  // Authenticators name the account by its id.
  if (passkeys.length > 0 && !isGiven(id)) throw new Error('passkeys need the id of their user')
  return passkeys.map((passkey) => readPasskey(passkey, account, newId))
}

function readPasskey(given: unknown, account: { id: string; created_at: string }, newId: () => string): PasskeyRow {
  if (typeof given !== 'object' || given === null) throw new Error('passkeys must hold objects')
  const json = given as Json
  const aaguid = (readText(json, 'aaguid') ?? NIL_UUID).toLowerCase()
  if (!UUID.test(aaguid)) throw new Error('aaguid of a passkey must be a UUID')
  return {
    id: newId(),
    user_id: account.id,
    credential_id: readBytes(json, 'credential_id', MAX_ID_CHARACTERS),
    public_key: `\\x${Buffer.from(readBytes(json, 'public_key', MAX_KEY_BYTES * 2), 'base64url').toString('hex')}`,
    friendly_name: (readText(json, 'friendly_name') ?? nameOfAuthenticator(aaguid)).slice(0, 120),
    attestation: readText(json, 'attestation') ?? 'none',
    aaguid,
    sign_count: readCount(json),
    transports: readTransports(json),
    backup_eligible: json.backup_eligible === true,
    backed_up: json.backed_up === true,
    user_verified: json.user_verified === true,
    last_used_at: readTime(json, 'last_used_at'),
    created_at: readTime(json, 'created_at') ?? account.created_at,
  }
}

function readBytes(json: Json, name: string, maxCharacters: number): string {
  const text = json[name]
  if (typeof text === 'string' && text.length <= maxCharacters && BASE64URL.test(text)) return text
  throw new Error(`${name} of a passkey must be base64url`)
}

function readCount({ sign_count: count = 0 }: Json): number {
  if (Number.isInteger(count) && Number(count) >= 0 && Number(count) <= MAX_COUNT) return Number(count)
  throw new Error('sign_count of a passkey must be a count')
}

const readTransports = ({ transports }: Json): string[] =>
  (Array.isArray(transports) ? transports : [])
    .filter((item): item is string => typeof item === 'string' && /^[a-z-]{1,20}$/.test(item))
    .slice(0, 10)
