import type { Metadata } from '../../db/tables.ts'
import { type ExternalAccount, onlyEmail, type ProviderJson } from '../oauth/provider.ts'

/** Claims of OpenID Connect Core 5.1 that identities keep under the same name. */
const STANDARD = [
  'name',
  'family_name',
  'given_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
]

/** Members of an identity that several OAuth 2 services call the same. */
const FURTHER = ['full_name', 'avatar_url', 'user_name']

const TEXTS = [...STANDARD, ...FURTHER, 'email']

export interface ClaimMapping {
  /** Claim `iss` of the identity. */
  issuer: string
  /** Claim or path by member of the identity, such as `data.user.login`; a value other than text is a constant. */
  attributes: Readonly<Record<string, unknown>>
  /** Claims that are copied as they are to `custom_claims`. */
  customClaims: readonly string[]
  /** Whether a member keeps its standard claim where the mapping finds nothing. */
  keepsStandard: boolean
  /** Called for a member whose value has the wrong type. */
  reportMisfit(member: string): void
}

/** Documents about one account. */
export interface AccountDocuments {
  idToken?: ProviderJson
  profile?: ProviderJson
}

/** Reads an account: standard claims of the profile before those of the id_token, then the mapping. */
export function accountOfClaims({ idToken, profile }: AccountDocuments, mapping: ClaimMapping): ExternalAccount {
  const raw = idToken ? { ...idToken, ...profile, sub: idToken.sub } : (profile ?? {})
  const { issuer, attributes, customClaims, keepsStandard, reportMisfit } = mapping
  const standard = keepsStandard ? [...STANDARD, ...FURTHER] : STANDARD
  const copied = copy(raw, customClaims)
  const read: Metadata = {
    ...copy(raw, ['sub', 'email', ...standard]),
    ...(Object.keys(copied).length > 0 && { custom_claims: copied }),
  }
  const mapped = Object.entries(attributes).map(([member, source]) => {
    const value = typeof source === 'string' ? (valueAt(raw, source) ?? valueAt(read, source)) : source
    return [member, value] as const
  })
  // Another claim that happens to be `sub` names another account: without the mapped one there is none.
  if (Object.hasOwn(attributes, 'sub')) delete read.sub
  for (const [member, value] of mapped) {
    if (value === undefined && keepsStandard) continue
    if (value !== undefined && !fits(member, value)) reportMisfit(member)
    else read[member] = value
  }
  const { sub, email, email_verified: _, iss: __, ...claims } = read
  return {
    sub,
    emails: onlyEmail(email, isVouchedFor(email, [idToken ?? {}, profile ?? {}], attributes)),
    // Claims past the limits are left out from the end (clean-account.ts); the issuer names the account.
    claims: {
      iss: issuer,
      ...claims,
      full_name: 'full_name' in claims ? claims.full_name : claims.name,
      avatar_url: 'avatar_url' in claims ? claims.avatar_url : claims.picture,
    },
  }
}

/**
 * Reports whether a document verifies the address and none denies it. The flag is about the claim `email` of its own
 * document alone (OpenID Connect Core 5.1), unless the mapping names another flag.
 */
function isVouchedFor(email: unknown, documents: readonly ProviderJson[], attributes: ClaimMapping['attributes']) {
  const { email: address = 'email', email_verified: flag } = attributes
  const [addressSource, flagSource] = flag === undefined ? ['email', 'email_verified'] : [address, flag]
  const flags = documents
    .filter((document) => valueAt(document, String(addressSource)) === email)
    .map((document) => valueAt(document, String(flagSource)))
  return flags.includes(true) && flags.every((given) => given === true || given === undefined)
}

const copy = (raw: ProviderJson, names: readonly string[]): Metadata =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(raw, name)).map((name) => [name, raw[name]]))

function fits(member: string, value: unknown): boolean {
  if (member === 'sub') return typeof value === 'string' || typeof value === 'number'
  return !TEXTS.includes(member) || typeof value === 'string'
}

/** Value of a claim, whose name may contain dots, else of a path through objects and lists. */
function valueAt(raw: ProviderJson, path: string): unknown {
  if (Object.hasOwn(raw, path)) return raw[path] ?? undefined
  let value: unknown = raw
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Metadata)[step]
  }
  return value ?? undefined
}
