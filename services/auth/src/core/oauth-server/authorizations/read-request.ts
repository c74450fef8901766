// Requests of applications for a code (RFC 6749 4.1.1, OpenID Connect Core 3.1.2.1, RFC 7636, RFC 8707). The rule:
// nothing is redirected before client and redirect address are proven. Answers: answer-authorization.ts.
import type { OAuthClient } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import { apiError } from '../../../errors.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { isDocumentAddress } from '../documents/read-document.ts'
import { type FindClientDeps, findClient } from '../find-client.ts'
import { isRegisteredRedirect, MAX_ADDRESS } from '../redirect-uris.ts'
import { requestedResources } from '../requested-resources.ts'
import { requestedScopes } from '../requested-scopes.ts'
import type { NewAuthorization } from './authorizations.store.ts'

/** Parameters of a query or form; one that is repeated is a list. */
export type GivenParameters = Readonly<Record<string, string | string[] | undefined>>

export type ReadDeps = FindClientDeps & Parameters<typeof requestedScopes>[0]

/** Proven recipient of answers. */
export interface RequestTarget {
  client: OAuthClient
  redirectUri: string
}

/** Members of a request that its row keeps. */
export type ReadRequest = Omit<
  NewAuthorization,
  'id' | 'client_id' | 'redirect_uri' | 'status' | 'expires_at' | 'created_at'
>

const MAX_LENGTH = { state: 4096, nonce: 255, login_hint: 320, acr_values: 255 }
const PROMPTS = ['none', 'login', 'consent', 'select_account']
const MAX_AGE = 10 ** 9

/** Finds the recipient. Throws what is answered here and never redirected. */
export async function readTarget(
  deps: FindClientDeps,
  given: GivenParameters,
  countUnknown?: () => Promise<void>,
): Promise<RequestTarget> {
  const client = await findNamedClient(deps, once(given, 'client_id'), countUnknown)
  const redirectUri = once(given, 'redirect_uri')
  if (redirectUri === undefined) throw apiError('validation_failed', { message: 'redirect_uri is required' })
  const isKnown = redirectUri.length <= MAX_ADDRESS && isRegisteredRedirect(client.redirect_uris, redirectUri)
  if (!isKnown) throw apiError('validation_failed', { message: 'invalid redirect_uri' })
  return { client, redirectUri }
}

/** Finds the client that a request to authorize names. */
export async function findNamedClient(
  deps: FindClientDeps,
  clientId: string | undefined,
  countUnknown?: () => Promise<void>,
): Promise<OAuthClient> {
  if (clientId === undefined) throw apiError('validation_failed', { message: 'client_id is required' })
  if (!UUID.test(clientId) && !isDocumentAddress(clientId)) throw noClient('invalid client_id format')
  return (await findClient(deps, clientId, countUnknown)) ?? refuseClient()
}

function refuseClient(): never {
  throw noClient('invalid client_id')
}

const noClient = (message: string) => apiError('oauth_client_not_found', { status: 400, message })

/** Returns a parameter; undefined if it is absent or empty. Each may be there once (RFC 6749, section 3.1). */
export function once(given: GivenParameters, name: string): string | undefined {
  const value = given[name]
  if (Array.isArray(value)) throw apiError('validation_failed', { message: `${name} must be given once` })
  return value === '' ? undefined : value
}

/** Reads everything else, in the order of the contract. Throws the errors of a redirect. */
export async function readRequest(
  deps: ReadDeps,
  { client, redirectUri }: RequestTarget,
  given: GivenParameters,
): Promise<ReadRequest> {
  const single = (name: string) => singleOf(given, name)
  if (![undefined, 'code'].includes(single('response_type'))) throw oauthError('unsupported_response_type')
  if (single('request') !== undefined) throw oauthError('request_not_supported')
  if (!client.grant_types.includes('authorization_code')) throw oauthError('unauthorized_client')
  const response_mode = responseModeOf(given, redirectUri)
  const scopes = await requestedScopes(deps, client, single('scope'))
  const resources = requestedResources(deps.config, [given.resource ?? []].flat())
  const code_challenge = challengeOf(given)
  return {
    ...{ response_mode, scopes, resources, code_challenge },
    state: bounded(given, 'state'),
    nonce: bounded(given, 'nonce'),
    dpop_thumbprint: thumbprintOf(single('dpop_jkt')),
    prompt: promptOf(single('prompt')),
    max_age: maxAgeOf(single('max_age')),
    login_hint: bounded(given, 'login_hint'),
    acr_values: bounded(given, 'acr_values'),
  }
}

/** Reads how the answer goes back; errors too go that way. */
export function responseModeOf(given: GivenParameters, redirectUri: string): 'query' | 'form_post' {
  const mode = singleOf(given, 'response_mode') ?? 'query'
  if (mode !== 'query' && mode !== 'form_post') throw invalid('response_mode must be query or form_post')
  if (mode === 'form_post' && !/^https?:/i.test(redirectUri)) throw invalid('form_post needs a redirect_uri of the web')
  return mode
}

function singleOf(given: GivenParameters, name: string): string | undefined {
  const value = given[name]
  if (Array.isArray(value)) throw invalid(`${name} must be given once`)
  return value === '' ? undefined : value
}

function bounded(given: GivenParameters, name: keyof typeof MAX_LENGTH): string | null {
  const value = singleOf(given, name) ?? null
  if (value === null) return null
  if (value.length > MAX_LENGTH[name]) throw invalid(`${name} must have at most ${MAX_LENGTH[name]} characters`)
  // PostgreSQL stores no NUL.
  if (value.includes('\0')) throw invalid(`${name} must have no control characters`)
  return value
}

function challengeOf(given: GivenParameters): string {
  const challenge = singleOf(given, 'code_challenge')
  const method = singleOf(given, 'code_challenge_method')
  if (challenge === undefined || method === undefined) {
    throw invalid('PKCE flow requires both code_challenge and code_challenge_method')
  }
  if (method.toLowerCase() !== 's256') throw invalid('code_challenge_method must be S256')
  if (!/^[\w-]{43}$/.test(challenge)) throw invalid('code_challenge must be 43 characters of base64url')
  return challenge
}

function thumbprintOf(thumbprint: string | undefined): string | null {
  if (thumbprint === undefined) return null
  if (!/^[\w-]{43}$/.test(thumbprint)) throw invalid('dpop_jkt must be 43 characters of base64url')
  return thumbprint
}

function promptOf(prompt: string | undefined): string | null {
  if (prompt === undefined) return null
  const prompts = prompt.split(' ').filter(Boolean)
  if (!prompts.every((each) => PROMPTS.includes(each))) throw invalid(`prompt must be of ${PROMPTS.join(', ')}`)
  if (prompts.includes('none') && prompts.length > 1) throw invalid('prompt none must be alone')
  return prompts.join(' ')
}

function maxAgeOf(given: string | undefined): number | null {
  if (given === undefined) return null
  if (!/^\d{1,10}$/.test(given) || Number(given) > MAX_AGE) throw invalid('max_age must be a number of seconds')
  return Number(given)
}

const invalid = (message: string) => oauthError('invalid_request', { message })
