import type { JWTPayload } from 'jose'
import { findClient, publicIdOf } from '../../../core/oauth-server/find-client.ts'
import type { Introspected } from '../../../core/oauth-server/tokens/introspected.store.ts'
import { parseRefreshToken, type RefreshToken } from '../../../core/sessions/refresh-token.ts'
import { whyEnded } from '../../../core/sessions/session-limits.ts'
import { isBanned } from '../../../core/users/is-banned.ts'
import type { OAuthClient } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { oauthError } from '../../../oauth-errors.ts'

export type Introspection = { active: boolean } & Record<string, unknown>

const INACTIVE: Introspection = { active: false }

/** Finds the client that asks, and what its token names, in one statement: resource servers ask at each request. */
export async function findNamed(
  deps: Deps,
  clientId: string,
  named: Named,
  countUnknown: () => Promise<void>,
): Promise<Introspected> {
  const isUuid = UUID.test(clientId)
  const found = await deps.findIntrospected({
    clientId: isUuid ? clientId : null,
    sessionId: sessionIdOf(named) ?? null,
    machineId: machineOf(named) ?? null,
  })
  // Clients of a metadata document are known by its address alone.
  const isKnown = isUuid && found.client?.registration_type !== 'metadata_document'
  return isKnown ? found : { ...found, client: await findClient(deps, clientId, countUnknown) }
}

/**
 * Describes a token to a confidential client (RFC 7662): one of its own, or one for a resource that an administrator
 * registered for it.
 */
export function describeToken(
  deps: Deps,
  client: OAuthClient,
  named: Named,
  { session, hasMachine }: Omit<Introspected, 'client'>,
): Introspection {
  if (client.client_type !== 'confidential') {
    throw oauthError('invalid_client', { message: 'Introspection needs a confidential client' })
  }
  const isLive = session ? isLiveSession(deps, session) : hasMachine
  if (!named || !isLive) return INACTIVE
  if (isRefreshToken(named)) return describeRefreshToken(client, named, session)
  const isOwn = session ? session.oauth_client_id === client.id : named.client_id === publicIdOf(client)
  const isForResource = [named.aud ?? []].flat().some((audience) => client.introspects.includes(audience))
  if (!isOwn && !isForResource) return INACTIVE
  return { active: true, token_type: named.cnf ? 'DPoP' : 'bearer', ...named }
}

/** Reads a refresh token, or an access token of a client; undefined for anything else. */
export async function readToken(deps: Deps, token: string): Promise<RefreshToken | JWTPayload | undefined> {
  const refreshToken = parseRefreshToken(deps.refreshTokenKey, token)
  if (refreshToken) return refreshToken
  const claims = await deps.keys.verify(token, deps.now())
  return typeof claims?.client_id === 'string' ? claims : undefined
}

type Named = Awaited<ReturnType<typeof readToken>>

const isRefreshToken = (named: RefreshToken | JWTPayload): named is RefreshToken => Object.hasOwn(named, 'sessionId')

function sessionIdOf(named: Named): string | undefined {
  if (!named) return undefined
  return uuidIn(isRefreshToken(named) ? named.sessionId : named.session_id)
}

const machineOf = (named: Named): string | undefined =>
  named && !isRefreshToken(named) && named.session_id === undefined ? uuidIn(named.client_id) : undefined

const uuidIn = (value: unknown): string | undefined =>
  typeof value === 'string' && UUID.test(value) ? value : undefined

function isLiveSession(deps: Deps, session: NonNullable<Introspected['session']>): boolean {
  const now = deps.now()
  return session.oauth_client_id !== null && !isBanned(session, now) && !whyEnded(session, deps.config.sessions, now)
}

/** A refresh token is its client's business alone, and the newest one is active. */
function describeRefreshToken(
  client: OAuthClient,
  { counter }: RefreshToken,
  session: Introspected['session'],
): Introspection {
  if (session?.oauth_client_id !== client.id || session.refresh_counter !== counter) return INACTIVE
  const scope = session.scopes?.join(' ')
  return { active: true, client_id: publicIdOf(client), sub: session.user_id, scope }
}
