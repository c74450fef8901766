// Clients and scopes of the OAuth server (contract/auth-oauth-server.md): their rows and rules. The rule:
// text of a client is stored and compared as given. The API is in flows/admin/oauth.

/** Scopes of this service, which open its endpoints or describe the user, in words for users. */
export const STANDARD_DESCRIPTIONS: Readonly<Record<string, string>> = {
  openid: 'Recognize you',
  email: 'See your e-mail address',
  phone: 'See your phone number',
  profile: 'See your name and picture',
  offline_access: 'Stay signed in while you are away',
  'account:read': 'See your account',
  'account:write': 'Change your profile',
  'users:read': 'See all users',
  'users:write': 'Change users',
  'audit:read': 'See the audit log',
  'messages:read': 'See messages to users',
  'messages:write': 'Send messages again',
}

export const STANDARD_SCOPES: readonly string[] = Object.keys(STANDARD_DESCRIPTIONS)

/** Scopes of clients whose registration names none, and the most that one without an administrator gets. */
export const USUAL_SCOPES: readonly string[] = ['openid', 'email', 'phone', 'profile', 'offline_access']

/** Whether it is no scope of this service. */
export const isOwnScope = (name: string): boolean => !STANDARD_SCOPES.includes(name)

/** Scope of an operator, for other services. */
export interface OAuthScope {
  name: string
  description: string
  /** Descriptions by language tag. */
  descriptions: Record<string, string>
  /** Paths into the user's metadata, such as `app_metadata.plan`, that become claims. */
  claims: string[]
  /** Whether a request that names no scope gets it. */
  default: boolean
}

/** Most scopes of one origin. */
export const MAX_SCOPES = 100

const MAX_DESCRIPTION = 300
const MAX_LANGUAGES = 30
const MAX_CLAIMS = 30

const NAME = /^[a-z0-9][a-z0-9:._-]{0,63}$/
const LANGUAGE = /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/
const CLAIM = /^(app|user)_metadata(\.[A-Za-z0-9_-]{1,64}){1,5}$/

export const isScopeName = (text: string): boolean => NAME.test(text)

const DEFAULTS = { name: '', description: '', descriptions: {}, claims: [], default: false }

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= MAX_DESCRIPTION

/** Checks the members of a scope; absent ones get defaults, further ones are dropped. Throws the fault in words. */
export function readScope(given: object): OAuthScope {
  const { name, description, descriptions, claims, default: isDefault } = { ...DEFAULTS, ...given } as Unchecked
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new Error('name must begin with a-z or 0-9, with up to 63 more of a-z, 0-9, :, ., _ and -')
  }
  if (STANDARD_SCOPES.includes(name)) throw new Error(`name must not be a standard scope: ${name}`)
  if (!isText(description)) throw new Error(`description must have 1 to ${MAX_DESCRIPTION} characters`)
  if (!areDescriptions(descriptions)) {
    throw new Error(
      `descriptions must map up to ${MAX_LANGUAGES} language tags to texts of 1 to ${MAX_DESCRIPTION} characters`,
    )
  }
  if (!areClaims(claims)) {
    throw new Error(`claims must list up to ${MAX_CLAIMS} paths that begin with app_metadata. or user_metadata.`)
  }
  if (typeof isDefault !== 'boolean') throw new Error('default must be true or false')
  return { name, description, descriptions, claims, default: isDefault }
}

type Unchecked = Record<keyof OAuthScope, unknown>

const areClaims = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length <= MAX_CLAIMS &&
  value.every((path) => typeof path === 'string' && CLAIM.test(path))

const areDescriptions = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.keys(value).length <= MAX_LANGUAGES &&
  Object.entries(value).every(([language, text]) => LANGUAGE.test(language) && isText(text))
