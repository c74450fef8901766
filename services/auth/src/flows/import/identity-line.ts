import { requireModestMetadata } from '../../core/users/metadata.ts'
import type { Metadata } from '../../db/tables.ts'
import type { IdentityRow } from './import-users.store.ts'
import { readObject, readText, readTime } from './line-fields.ts'

interface Holder {
  id: string
  email: string | null
  phone: string | null
  created: string
  emailConfirmed: string | null
  phoneConfirmed: string | null
  appMetadata: Metadata
}

const MAX_IDENTITIES = 50

/** Reads `identities`; by default those of a sign-up by e-mail or phone, as far as `app_metadata.providers` lists them. */
export function parseIdentities(json: Record<string, unknown>, holder: Holder, newId: () => string): IdentityRow[] {
  const { identities } = json
  if (identities === undefined || identities === null) return ownIdentities(holder, newId)
  if (!Array.isArray(identities) || identities.length > MAX_IDENTITIES) {
    throw new Error(`identities must be an array of at most ${MAX_IDENTITIES}`)
  }
  return identities.map((identity) => parseIdentity(identity, holder, newId))
}

function parseIdentity(json: unknown, holder: Holder, newId: () => string): IdentityRow {
  if (typeof json !== 'object' || json === null) throw new Error('identities must hold objects')
  const member = json as Record<string, unknown>
  const provider = readText(member, 'provider')
  if (!provider || !/^[a-z][a-z0-9_:-]{0,63}$/.test(provider)) throw new Error('identities need a provider')
  // Identities of addresses are found by the user's id; older exports give the address instead.
  const isOwn = provider === 'email' || provider === 'phone'
  const data = readData(member)
  const providerId = isOwn ? holder.id : (readText(member, 'provider_id') ?? readText(data, 'sub'))
  if (!providerId) throw new Error('identities need a provider_id')
  const created = readTime(member, 'created_at') ?? holder.created
  return {
    id: newId(),
    user_id: holder.id,
    provider,
    provider_id: providerId,
    identity_data: { ...data, sub: providerId },
    last_sign_in_at: readTime(member, 'last_sign_in_at'),
    created_at: created,
    updated_at: readTime(member, 'updated_at') ?? created,
  }
}

/** Applies the limits of user metadata. */
function readData(member: Record<string, unknown>): Metadata {
  const data = readObject(member, 'identity_data') ?? {}
  try {
    requireModestMetadata(data)
  } catch {
    throw new Error('identity_data is too large or holds a number that is too long')
  }
  return data
}

function ownIdentities(holder: Holder, newId: () => string): IdentityRow[] {
  const { providers } = holder.appMetadata
  const cameBy = (provider: string) => !Array.isArray(providers) || providers.includes(provider)
  const make = (provider: string, data: Metadata): IdentityRow => ({
    id: newId(),
    user_id: holder.id,
    provider,
    provider_id: holder.id,
    identity_data: { sub: holder.id, ...data },
    last_sign_in_at: null,
    created_at: holder.created,
    updated_at: holder.created,
  })
  const made: IdentityRow[] = []
  const verified = { email_verified: holder.emailConfirmed !== null, phone_verified: holder.phoneConfirmed !== null }
  if (holder.email && cameBy('email')) made.push(make('email', { email: holder.email, ...verified }))
  if (holder.phone && cameBy('phone')) made.push(make('phone', { phone: holder.phone, ...verified }))
  return made
}
