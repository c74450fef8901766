// The end of a sign-in at the request of an application (OpenID Connect RP-Initiated Logout 1.0). The rule: only an
// id_token of this service proves a session, and the browser goes to registered addresses alone.
import type { OAuthClient } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import { apiError } from '../../../errors.ts'
import type { SigningKeys } from '../../keys/signing-keys.ts'
import { withQuery } from '../../redirects/redirect-url.ts'
import { type FindClientDeps, findClient } from '../find-client.ts'

export interface LogoutDeps extends FindClientDeps {
  keys: Pick<SigningKeys, 'readIdToken'>
}

/** Parameters by name; others are ignored. */
export type LogoutParameters = Readonly<
  Partial<Record<'id_token_hint' | 'client_id' | 'post_logout_redirect_uri' | 'state', string>>
>

export interface LogoutRequest {
  client: OAuthClient | undefined
  /** Address that the browser goes to afterwards. */
  location: string | undefined
  /** User and session that an id_token names. */
  proven: { userId: string; sessionId: string } | undefined
}

/** Reads a request. Throws validation_failed and oauth_client_not_found. */
export async function readLogout(deps: LogoutDeps, given: LogoutParameters): Promise<LogoutRequest> {
  const { id_token_hint: token, client_id, post_logout_redirect_uri: address, state } = given
  const hint = token ? await readHint(deps, token) : undefined
  const clientId = client_id || hint?.clientId
  if (hint && hint.clientId !== clientId) throw invalid('client_id is not that of id_token_hint')
  const client = clientId ? await findClient(deps, clientId) : undefined
  if (clientId && !client) throw apiError('oauth_client_not_found', { status: 400, message: 'invalid client_id' })
  if (address && !client?.post_logout_redirect_uris.includes(address)) {
    throw invalid('invalid post_logout_redirect_uri')
  }
  const location = address && state ? withQuery(address, { state }) : address
  return { client, location: location || undefined, proven: hint }
}

/** Reads an id_token, which may have expired. One that does not verify proves nothing. */
async function readHint({ keys }: LogoutDeps, token: string) {
  const claims = await keys.readIdToken(token)
  const { sub, aud, sid } = claims ?? {}
  const clientId = [aud].flat()[0]
  if (typeof sub !== 'string' || typeof sid !== 'string' || typeof clientId !== 'string') return undefined
  return UUID.test(sub) && UUID.test(sid) ? { userId: sub, sessionId: sid, clientId } : undefined
}

const invalid = (message: string) => apiError('validation_failed', { message })
