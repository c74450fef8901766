// Rules of the fields of a provider, in the order that contract/auth-custom-providers.md gives them.
import { type Static, Type } from 'typebox'
import { discoveryAddress } from '../../../adapters/described-providers/discovery.ts'
import { isLinkingRule, LINKING_RULES } from '../../../config/external-providers.ts'
import { isIdentifier } from '../../../core/custom-providers/find-custom-provider.ts'
import type { CustomProvider } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import { choiceOf } from '../../../http/bodies/shapes.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))
const texts = (description: string) => Type.Optional(Type.Array(Type.Unknown(), { description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const record = (description: string) => Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description }))

/** Members that a change may give; null clears those of CLEARABLE. */
const changeable = {
  name: text('Name for people; required.'),
  client_id: text('Required.'),
  acceptable_client_ids: texts('Further audiences of id_tokens.'),
  scopes: texts('List of strings; `openid` is added for oidc.'),
  pkce_enabled: flag('PKCE towards the provider; true if absent.'),
  attribute_mapping: record('Claim, or path such as `emails.0.value`, by member of the identity.'),
  custom_claims_allowlist: texts('Claims that are copied to `custom_claims` of the identity.'),
  authorization_params: record('Further parameters of the authorization request.'),
  enabled: flag('True if absent.'),
  listed: flag('Whether GET /settings shows it; true if absent.'),
  email_optional: flag('Whether accounts without an address may sign in; false if absent.'),
  linking: text('verified (if absent), never, or group: and a name.'),
  issuer: text('Required for oidc.'),
  skip_nonce_check: flag('Whether id_tokens of applications need no nonce; oidc only.'),
  authorization_url: text('Required for oauth2.'),
  token_url: text('Required for oauth2.'),
  userinfo_url: text('Required for oauth2.'),
}

export const CLEARABLE = ['client_secret', 'discovery_url', 'jwks_uri'] as const
const clearable = (description: string) =>
  Type.Optional(Type.Union([Type.String(), Type.Null()], { description: `${description}; null removes it.` }))

const SECRET = 'Write only; required where pkce_enabled is false'
const DISCOVERY = 'Address of the description; below the issuer if absent'
const KEYS = 'Stored, without use; oauth2 only'

export const NewProvider = Type.Object({
  provider_type: Type.Optional(choiceOf(['oauth2', 'oidc'], { description: 'Required; never changes.' })),
  identifier: text('`custom:` and up to 43 of a-z, 0-9, : and -; required, and never changes.'),
  client_secret: text(`${SECRET}.`),
  discovery_url: text(`${DISCOVERY}.`),
  jwks_uri: text(`${KEYS}.`),
  ...changeable,
})
export const ProviderChange = Type.Object({
  client_secret: clearable(SECRET),
  discovery_url: clearable(DISCOVERY),
  jwks_uri: clearable(KEYS),
  ...changeable,
})

/** Columns that admins write. `client_secret`: undefined keeps the one that is there. */
export type ProviderFields = Omit<
  CustomProvider,
  'id' | 'sealed_secret' | 'discovery_document' | 'discovered_at' | 'version' | 'created_at' | 'updated_at'
> & { client_secret?: string | null; has_secret: boolean }

const MAX_NAME = 100
const MAX_CLIENT_ID = 512
const MAX_SECRET = 4096
const MAX_LISTED = 100
const MAX_ENTRY = 512
const MAX_OBJECT = 16 * 1024

const DEFAULTS = {
  name: '',
  client_id: '',
  acceptable_client_ids: [],
  scopes: [],
  pkce_enabled: true,
  attribute_mapping: {},
  custom_claims_allowlist: [],
  authorization_params: {},
  enabled: true,
  listed: true,
  email_optional: false,
  linking: 'verified',
  issuer: null,
  discovery_url: null,
  skip_nonce_check: false,
  authorization_url: null,
  token_url: null,
  userinfo_url: null,
  jwks_uri: null,
} as const

/** Reads a new provider; the checks that need the database or the network follow (save-provider.ts). */
export function readNewProvider(input: Static<typeof NewProvider>): ProviderFields {
  const { provider_type: type, identifier = '', client_secret: secret, ...given } = input
  if (type !== 'oauth2' && type !== 'oidc') throw invalid("provider_type must be either 'oauth2' or 'oidc'")
  if (identifier === '') throw required('identifier')
  requirePrefix(identifier)
  if (!isIdentifier(identifier)) {
    throw invalid('identifier must be custom: and up to 43 of a-z, 0-9, : and -, the last one a letter or digit')
  }
  const filled = { ...DEFAULTS, ...notEmpty(given) }
  return checked({
    ...(filled as unknown as ProviderFields),
    provider_type: type,
    identifier,
    client_secret: secret || null,
    has_secret: Boolean(secret),
  })
}

/** Lays given members over a stored provider. Empty text counts as absent. */
export function readChange(stored: CustomProvider, input: Static<typeof ProviderChange>) {
  const given = notEmpty(input)
  const { client_secret: secret } = given
  const fields = checked({
    ...stored,
    ...(given as Partial<ProviderFields>),
    has_secret: secret === undefined ? stored.sealed_secret !== null : secret !== null,
  })
  return { fields, given: givenFields(stored.provider_type, given) }
}

/** Members that count for a type, and of which only one of the two has a use. */
const OF_OPENID = ['issuer', 'discovery_url', 'skip_nonce_check']
const OF_OAUTH2 = ['authorization_url', 'token_url', 'userinfo_url', 'jwks_uri']

/** Names of the given members that count for the type; others of a body never reach the audit log. */
export const givenFields = (type: CustomProvider['provider_type'], input: object) =>
  Object.entries(input)
    .filter(([name, value]) => Object.hasOwn(NewProvider.properties, name) && value !== '')
    .map(([name]) => name as keyof Static<typeof NewProvider>)
    .filter((name) => !(type === 'oidc' ? OF_OAUTH2 : OF_OPENID).includes(name))

/** Picks the members above: no other one of a body reaches a row. */
const notEmpty = <Input extends object>(input: Input): Partial<Input> =>
  Object.fromEntries(
    Object.entries(input).filter(([name, value]) => Object.hasOwn(ProviderChange.properties, name) && value !== ''),
  ) as Partial<Input>

export function requirePrefix(identifier: string): void {
  if (identifier.startsWith('custom:')) return
  const example = /^[a-z0-9-]{1,40}$/.test(identifier) ? identifier : 'x'
  throw invalid(`identifier must start with 'custom:' prefix, e.g. 'custom:${example}'`)
}

const invalid = (message: string) => apiError('validation_failed', { message })
const required = (field: string, of = '') => invalid(`${field} is required${of}`)

function checked(fields: ProviderFields): ProviderFields {
  requireText(fields, 'name', MAX_NAME)
  requireText(fields, 'client_id', MAX_CLIENT_ID)
  if (!fields.has_secret && !fields.pkce_enabled) throw required('client_secret', ' while pkce_enabled is false')
  if ((fields.client_secret?.length ?? 0) > MAX_SECRET) {
    throw invalid(`client_secret must be at most ${MAX_SECRET} characters long`)
  }
  if (!isLinkingRule(fields.linking)) throw invalid(`linking ${LINKING_RULES}`)
  const ofType = fields.provider_type === 'oidc' ? openIdFields(fields) : oauth2Fields(fields)
  checkParameters(fields.authorization_params)
  checkMapping(fields.attribute_mapping)
  checkTexts(fields.custom_claims_allowlist, 'custom_claims_allowlist')
  for (const field of ['acceptable_client_ids', 'scopes'] as const) checkTexts(fields[field], field)
  return { ...fields, ...ofType }
}

function requireText(fields: ProviderFields, field: 'name' | 'client_id', most: number): void {
  if (fields[field] === '') throw required(field)
  if (fields[field].length > most) throw invalid(`${field} must be at most ${most} characters long`)
}

function openIdFields({ issuer, scopes }: ProviderFields) {
  if (!issuer) throw required('issuer', ' for OIDC providers')
  const all = scopes.includes('openid') ? scopes : ['openid', ...scopes]
  return { scopes: all, authorization_url: null, token_url: null, userinfo_url: null, jwks_uri: null }
}

function oauth2Fields(fields: ProviderFields) {
  for (const field of ['authorization_url', 'token_url', 'userinfo_url'] as const) {
    if (!fields[field]) throw required(field, ' for OAuth2 providers')
  }
  return { issuer: null, discovery_url: null, skip_nonce_check: false }
}

/** Parameters that are ours, or that carry secrets of a sign-in. */
const RESERVED = [
  ...['client_id', 'client_secret', 'redirect_uri', 'response_type', 'state', 'code_challenge'],
  ...['code_challenge_method', 'code_verifier', 'nonce'],
]

function checkParameters(parameters: Readonly<Record<string, unknown>>): void {
  requireSize('authorization_params', parameters)
  for (const [name, value] of Object.entries(parameters)) {
    if (RESERVED.includes(name.toLowerCase())) throw invalid(`Cannot override reserved OAuth parameter: ${name}`)
    if (typeof value !== 'string') throw invalid(`Authorization parameter "${name}" must be a string`)
  }
}

/** Members of users that only the service sets. */
const PROTECTED = [
  ...['id', 'aud', 'role', 'app_metadata', 'created_at', 'updated_at', 'confirmed_at', 'email_confirmed_at'],
  ...['phone_confirmed_at', 'email_verified', 'phone_verified', 'banned_until', 'is_super_admin'],
]

/** Members that differ between accounts: a constant would make all of them one. */
const FROM_CLAIMS = ['sub', 'email']

function checkMapping(mapping: Readonly<Record<string, unknown>>): void {
  requireSize('attribute_mapping', mapping)
  for (const [member, source] of Object.entries(mapping)) {
    if (PROTECTED.includes(member.toLowerCase())) throw invalid(`Cannot map to protected system field: ${member}`)
    if (member === '' || source === '') throw invalid('attribute_mapping must not contain empty names')
    if (FROM_CLAIMS.includes(member) && typeof source !== 'string') {
      throw invalid(`attribute_mapping of ${member} must name a claim`)
    }
  }
}

function checkTexts(list: readonly unknown[], field: string): void {
  if (!list.every((entry) => typeof entry === 'string' && entry.trim() !== '')) {
    throw invalid(`${field} entries must be non-empty strings`)
  }
  if (list.length > MAX_LISTED || list.some((entry) => (entry as string).length > MAX_ENTRY)) {
    throw invalid(`${field} must have at most ${MAX_LISTED} entries of ${MAX_ENTRY} characters`)
  }
}

function requireSize(field: string, object: object): void {
  const { length } = JSON.stringify(object)
  if (length > MAX_OBJECT || Object.keys(object).length > MAX_LISTED) {
    throw invalid(`${field} must have at most ${MAX_LISTED} members and ${MAX_OBJECT} bytes`)
  }
}

const ADDRESSES = ['issuer', 'discovery_url', 'authorization_url', 'token_url', 'userinfo_url', 'jwks_uri'] as const

/** Addresses that a provider has, by field. */
export const addressesIn = (fields: ProviderFields): [field: string, address: string][] =>
  ADDRESSES.flatMap((field) => (fields[field] ? [[field, fields[field] as string]] : []))

export const discoveryOf = ({ issuer, discovery_url: address }: ProviderFields) => ({
  issuer: issuer ?? '',
  address: address ?? discoveryAddress(issuer ?? ''),
})
