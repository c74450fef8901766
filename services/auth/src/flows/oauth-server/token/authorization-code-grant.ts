import { hashAuthorizationCode } from '../../../core/oauth-server/authorizations/authorization-code.ts'
import { type FoundCode, findCode } from '../../../core/oauth-server/tokens/codes.store.ts'
import type { TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import { challengeOf, isVerifierOf } from '../../../core/one-time-tokens/pkce.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type GrantRequest, narrowedResources } from './grant.ts'
import { openSession, refuseUsed, unusable } from './open-session.ts'

export interface CodeFields {
  code?: string | undefined
  code_verifier?: string | undefined
  redirect_uri?: string | undefined
  resources: readonly string[]
}

/**
 * Exchanges a code for tokens (RFC 6749, section 4.1.3; RFC 7636 4.6). A wrong verifier, address or client leaves the
 * code valid, the right ones use it up. A second use ends the session of the first.
 */
export async function exchangeCode(request: GrantRequest, fields: CodeFields): Promise<TokenAnswer> {
  const { code, code_verifier: verifier, resources } = fields
  if (!code) throw oauthError('invalid_request', { message: 'code is required' })
  if (!verifier) throw oauthError('invalid_request', { message: 'code_verifier is required' })
  const hash = hashAuthorizationCode(code)
  const presented = { hash, resources, challenge: challengeOf(verifier), redirectUri: fields.redirect_uri ?? null }
  const opened = await openSession(request, { kind: 'authorization_code', ...presented })
  if (opened) return opened
  const found = requireCode(request, await findCode(request.deps.db, hash), fields)
  requireKey(request, found)
  narrowedResources(found.resources, resources)
  throw await refuseUsed(request, found)
}

/** Throws invalid_grant for the code of another request. */
function requireCode(
  { client }: GrantRequest,
  found: FoundCode | undefined,
  { code_verifier: verifier = '', redirect_uri: redirectUri }: CodeFields,
): FoundCode {
  if (!found || found.client_id !== client.id) throw unusable()
  if (!isVerifierOf({ challenge: found.code_challenge, method: 's256' }, verifier)) {
    throw oauthError('invalid_grant', { message: 'PKCE verification failed' })
  }
  if (redirectUri !== undefined && redirectUri !== found.redirect_uri) {
    throw oauthError('invalid_grant', { message: 'redirect_uri is not that of the request' })
  }
  return found
}

/** The key that a request named beforehand is the one of its tokens (RFC 9449, section 10). */
function requireKey({ thumbprint }: GrantRequest, { dpop_thumbprint: key }: FoundCode): void {
  if (key === null || key === thumbprint) return
  throw oauthError('invalid_grant', { message: 'The DPoP key is not that of the request' })
}
