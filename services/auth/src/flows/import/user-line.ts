import { isStorable } from '@services/common/storable'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { isSupportedHash } from '../../core/passwords/imported-hash.ts'
import { requireModestMetadata } from '../../core/users/metadata.ts'
import type { Metadata } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { parseIdentities } from './identity-line.ts'
import type { ImportedUser } from './import-users.store.ts'
import { isGiven, readObject, readText, readTime } from './line-fields.ts'

interface LineDefaults {
  now: Date
  newId: () => string
  audience: string
  role: string
}

/**
 * Reads the user of one line, `{"email": …, "password_hash": …}`, in our names or those of the reference's users table. Ignores
 * unknown members. Throws an Error that names the wrong member, never its value.
 */
export function parseUserLine(text: string, line: number, defaults: LineDefaults): ImportedUser {
  const json = readLine(text)
  const id = readText(json, 'id')?.toLowerCase()
  if (id && !UUID.test(id)) throw new Error('id must be a UUID')
  const email = readEmail(json)
  const phone = readPhone(json)
  // Needed to recognise the user in a second run.
  if (!id && !email && !phone) throw new Error('needs an id, an email or a phone')
  const createdAt = readTime(json, 'created_at')
  const now = defaults.now.toISOString()
  const own = { id: id ?? defaults.newId(), email, phone, created: createdAt ?? now }
  const emailConfirmed = email ? confirmedAt(json, 'email', own.created) : null
  const phoneConfirmed = phone ? confirmedAt(json, 'phone', own.created) : null
  const appMetadata = readMetadata(json, 'app_metadata', 'raw_app_meta_data')
  const identities = parseIdentities(json, { ...own, emailConfirmed, phoneConfirmed, appMetadata }, defaults.newId)
  const providers = [...new Set(identities.map((identity) => identity.provider))]
  return {
    line,
    hasOwnId: id !== undefined,
    hasOwnCreatedAt: createdAt !== null,
    user: {
      id: own.id,
      aud: readText(json, 'aud') ?? defaults.audience,
      role: readText(json, 'role') ?? defaults.role,
      email,
      phone,
      password_hash: readHash(json),
      email_confirmed_at: emailConfirmed,
      phone_confirmed_at: phoneConfirmed,
      invited_at: readTime(json, 'invited_at'),
      last_sign_in_at: readTime(json, 'last_sign_in_at'),
      app_metadata: { ...(providers.length > 0 ? { provider: providers[0], providers } : {}), ...appMetadata },
      user_metadata: readMetadata(json, 'user_metadata', 'raw_user_meta_data'),
      is_anonymous: json.is_anonymous === true,
      banned_until: readTime(json, 'banned_until'),
      created_at: own.created,
      updated_at: readTime(json, 'updated_at') ?? now,
    },
    identities,
  }
}

function readLine(text: string): Record<string, unknown> {
  const json = parseJson(text)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Error('is not a JSON object')
  if (!isStorable(json)) throw new Error('holds NUL or half characters, or is nested too deep')
  // Not ignored like other members: the author of the file expects these passwords to work.
  if ('password' in json) throw new Error('holds a plain password; only hashes are imported (password_hash)')
  if ('deleted_at' in json && isGiven(json.deleted_at))
    throw new Error('has deleted_at: deleted users are not imported')
  return json as Record<string, unknown>
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('is not valid JSON')
  }
}

function readEmail(json: Record<string, unknown>): string | null {
  const email = readText(json, 'email')
  if (!email) return null
  try {
    return parseEmail(email)
  } catch {
    throw new Error('email is not a valid address')
  }
}

function readPhone(json: Record<string, unknown>): string | null {
  const phone = readText(json, 'phone')
  if (!phone) return null
  if (!/^\+?[1-9]\d{1,14}$/.test(phone)) throw new Error('phone must be E.164 digits')
  return phone.replace('+', '')
}

/** Reads `email_confirmed_at`, or `email_verified: true` where the time is unknown. */
function confirmedAt(json: Record<string, unknown>, address: 'email' | 'phone', created: string): string | null {
  return readTime(json, `${address}_confirmed_at`) ?? (json[`${address}_verified`] === true ? created : null)
}

function readHash(json: Record<string, unknown>): string | null {
  const hash = readText(json, 'password_hash') ?? readText(json, 'encrypted_password')
  if (!hash) return null
  if (!isSupportedHash(hash)) {
    throw new Error('password_hash is of an unsupported format or exceeds its limits of memory and time')
  }
  return hash
}

function readMetadata(json: Record<string, unknown>, name: string, exported: string): Metadata {
  const metadata = readObject(json, name) ?? readObject(json, exported) ?? {}
  try {
    requireModestMetadata(metadata)
  } catch {
    throw new Error(`${name} is too large or holds a number that is too long`)
  }
  return metadata
}
