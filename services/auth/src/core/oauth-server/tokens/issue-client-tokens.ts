import type { Kysely } from 'kysely'
import { type Static, Type } from 'typebox'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { customClaims } from '../../hooks/custom-claims.ts'
import type { Asking } from '../../hooks/questions.ts'
import type { TokenSession } from '../../sessions/access-token.ts'
import type { SessionDeps } from '../../sessions/issue-tokens.ts'
import { formatRefreshToken } from '../../sessions/refresh-token.ts'
import type { User } from '../../users/users.store.ts'
import { type OAuthScope, STANDARD_SCOPES } from '../oauth-scopes.ts'
import { listOwnScopes } from '../own-scopes.ts'
import { clientClaims, type Grant } from './client-claims.ts'
import { signIdToken } from './id-token.ts'

/** Answer of the token endpoint (RFC 6749, section 5.1). */
export const TokenAnswer = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.String({ description: '`bearer`, or `DPoP` for a token that is bound to a key (RFC 9449).' }),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    refresh_token: Type.Optional(Type.String()),
    id_token: Type.Optional(Type.String()),
    scope: Type.String({ description: 'Scopes of the token, separated by spaces.' }),
  },
  { title: 'OAuthTokens' },
)

export type TokenAnswer = Static<typeof TokenAnswer>

export interface ClientTokenDeps extends SessionDeps {
  config: SessionDeps['config'] & Pick<Config, 'oauthServer'>
}

export interface Issue extends Grant {
  user: User
  session: TokenSession & { refresh_counter: number }
  client: OAuthClient
  /** Scopes of the session, of which a request may take fewer. */
  granted: readonly string[]
  /** Name of the proof, for the token hook. */
  method: string
  /** Present where an id_token belongs to the answer. */
  signIn?: { authenticatedAt: Date; nonce: string | null }
}

/** Issues the tokens of a client's session. */
export async function issueClientTokens(
  deps: Asking<ClientTokenDeps>,
  db: Kysely<DB>,
  { granted, method, signIn, ...issue }: Issue,
): Promise<TokenAnswer> {
  const { client, session, scopes, thumbprint } = issue
  const ownScopes = await ownScopesOf(deps, db, scopes)
  const claims = await customClaims(deps, db, clientClaims(deps, issue, issue, ownScopes), method)
  const accessToken = await deps.keys.sign(claims)
  const idToken =
    signIn && scopes.includes('openid')
      ? await signIdToken(deps, { ...issue, ...signIn }, accessToken, ownScopes)
      : undefined
  const refreshToken = { sessionId: session.id, counter: session.refresh_counter }
  return {
    access_token: accessToken,
    token_type: tokenType(thumbprint),
    expires_in: claims.exp - claims.iat,
    ...(mayRefresh(client, granted) && { refresh_token: formatRefreshToken(deps.refreshTokenKey, refreshToken) }),
    ...(idToken !== undefined && { id_token: idToken }),
    scope: scopes.join(' '),
  }
}

export const tokenType = (thumbprint: string | null): string => (thumbprint === null ? 'bearer' : 'DPoP')

/** Reads the operator's scopes only where a token has one. */
const ownScopesOf = async (
  deps: Pick<ClientTokenDeps, 'config'>,
  db: Kysely<DB>,
  scopes: readonly string[],
): Promise<OAuthScope[]> =>
  scopes.every((scope) => STANDARD_SCOPES.includes(scope)) ? [] : listOwnScopes({ ...deps, db })

/** Clients of the reference name no scope at their registration, and expect a refresh token always. */
const mayRefresh = ({ grant_types: grants, scope }: OAuthClient, granted: readonly string[]): boolean =>
  grants.includes('refresh_token') && (scope === null || granted.includes('offline_access'))
