import { isStorable } from '@services/common/database/storable-json'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { isSupportedHash } from '../../core/passwords/imported-hash.ts'
import { whyRefused } from '../../core/passwords/refused-hash.ts'
import { UUID } from '../../db/uuid.ts'
import type { IdentityRow, ImportedUser } from './import-users.store.ts'
import { isGiven, type Json, orProblem, readMetadata, readText, readTime } from './line-fields.ts'
import { readPasskeys } from './read-passkeys.ts'

export interface LineDefaults {
  now: () => Date
  newId: () => string
  audience: string
  role: string
}

/**
 * Reads the user of one line, `{"email": …, "password_hash": …}`, in our names or those of the reference's users table.
 * Ignores unknown members. Throws an Error that names the wrong member, never its value.
 */
export function parseUserLine(text: string, line: number, defaults: LineDefaults): ImportedUser {
  const json = readLine(text)
  const now = defaults.now().toISOString()
  const account = readAccount(json, defaults.newId, now)
  const identities = readIdentities(json, account, defaults.newId)
  const invitedAt = readTime(json, 'invited_at')
  const providers = [...new Set(identities.map((identity) => identity.provider))]
  return {
    line,
    hasOwnId: isGiven(json.id),
    hasOwnCreatedAt: isGiven(json.created_at),
    user: {
      ...account,
      aud: readText(json, 'aud') ?? defaults.audience,
      role: readText(json, 'role') ?? defaults.role,
      password_hash: readHash(json),
      email_vouched: invitedAt !== null && account.email !== null,
      phone_vouched: invitedAt !== null && account.phone !== null,
      invited_at: invitedAt,
      last_sign_in_at: readTime(json, 'last_sign_in_at'),
      app_metadata: { ...(providers.length > 0 ? { provider: providers[0], providers } : {}), ...account.app_metadata },
      user_metadata: readMetadata(json, 'user_metadata', 'raw_user_meta_data'),
      is_anonymous: json.is_anonymous === true,
      banned_until: readTime(json, 'banned_until'),
      updated_at: readTime(json, 'updated_at') ?? now,
    },
    identities,
    passkeys: readPasskeys(json, account, defaults.newId),
  }
}

function readLine(text: string): Json {
  const json = orProblem('is not valid JSON', () => JSON.parse(text))
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Error('is not a JSON object')
  if (!isStorable(json)) throw new Error('holds NUL or half characters, or is nested too deep')
  // Not ignored like other members: the author of the file expects these passwords to work.
  if ('password' in json) throw new Error('holds a plain password; only hashes are imported (password_hash)')
  if (isGiven(json.deleted_at)) throw new Error('has deleted_at: deleted users are not imported')
  return json
}

/** The part of a user that its identities repeat. */
type Account = ReturnType<typeof readAccount>

function readAccount(json: Json, newId: () => string, now: string) {
  const id = readText(json, 'id')?.toLowerCase()
  if (id && !UUID.test(id)) throw new Error('id must be a UUID')
  const email = readEmail(json)
  const phone = readPhone(json)
  // Needed to recognise the user in a second run.
  if (!id && !email && !phone) throw new Error('needs an id, an email or a phone')
  const createdAt = readTime(json, 'created_at') ?? now
  return {
    id: id ?? newId(),
    email,
    phone,
    created_at: createdAt,
    email_confirmed_at: email ? confirmedAt(json, 'email', createdAt) : null,
    phone_confirmed_at: phone ? confirmedAt(json, 'phone', createdAt) : null,
    app_metadata: readMetadata(json, 'app_metadata', 'raw_app_meta_data'),
  }
}

function readEmail(json: Json): string | null {
  const email = readText(json, 'email')
  return email ? orProblem('email is not a valid address', () => parseEmail(email)) : null
}

function readPhone(json: Json): string | null {
  const phone = readText(json, 'phone')
  if (!phone) return null
  if (!/^\+?[1-9]\d{1,14}$/.test(phone)) throw new Error('phone must be E.164 digits')
  return phone.replace('+', '')
}

/** Reads `email_confirmed_at`, or `email_verified: true` where the time is unknown. */
function confirmedAt(json: Json, address: 'email' | 'phone', created: string): string | null {
  return readTime(json, `${address}_confirmed_at`) ?? (json[`${address}_verified`] === true ? created : null)
}

function readHash(json: Json): string | null {
  const hash = readText(json, 'password_hash') ?? readText(json, 'encrypted_password')
  if (!hash) return null
  if (!isSupportedHash(hash)) throw new Error(`password_hash ${whyRefused(hash)}`)
  return hash
}

const MAX_IDENTITIES = 50

/**
 * Reads `identities`; by default those of a sign-up by e-mail or phone, as far as `app_metadata.providers` lists them.
 */
function readIdentities({ identities }: Json, account: Account, newId: () => string): IdentityRow[] {
  if (identities === undefined || identities === null) return ownIdentities(account, newId)
  if (!Array.isArray(identities) || identities.length > MAX_IDENTITIES) {
    throw new Error(`identities must be an array of at most ${MAX_IDENTITIES}`)
  }
  return identities.map((identity) => readIdentity(identity, account, newId))
}

function readIdentity(given: unknown, account: Account, newId: () => string): IdentityRow {
  if (typeof given !== 'object' || given === null) throw new Error('identities must hold objects')
  const json = given as Json
  const provider = readText(json, 'provider')
  if (!provider || !/^[a-z][a-z0-9_:-]{0,63}$/.test(provider)) throw new Error('identities need a provider')
  // Identities of addresses are found by the user's id; older exports give the address instead.
  const isOwn = provider === 'email' || provider === 'phone'
  const data = readMetadata(json, 'identity_data')
  const providerId = isOwn ? account.id : (readText(json, 'provider_id') ?? readText(data, 'sub'))
  if (!providerId) throw new Error('identities need a provider_id')
  const createdAt = readTime(json, 'created_at') ?? account.created_at
  return {
    id: newId(),
    user_id: account.id,
    provider,
    provider_id: providerId,
    identity_data: { ...data, sub: providerId },
    last_sign_in_at: readTime(json, 'last_sign_in_at'),
    created_at: createdAt,
    updated_at: readTime(json, 'updated_at') ?? createdAt,
  }
}

function ownIdentities(account: Account, newId: () => string): IdentityRow[] {
  const { id, created_at, email_confirmed_at, phone_confirmed_at, app_metadata } = account
  const { providers } = app_metadata
  const cameBy = (provider: string) => !Array.isArray(providers) || providers.includes(provider)
  const verified = { email_verified: email_confirmed_at !== null, phone_verified: phone_confirmed_at !== null }
  const channels = (['email', 'phone'] as const).filter((channel) => account[channel] && cameBy(channel))
  return channels.map((channel) => ({
    id: newId(),
    user_id: id,
    provider: channel,
    provider_id: id,
    identity_data: { sub: id, [channel]: account[channel], ...verified },
    last_sign_in_at: null,
    created_at,
    updated_at: created_at,
  }))
}
