import { createHash, randomBytes } from 'node:crypto'
import { jsonb } from '@services/common/database/pool'
import { decodeJwt, type JWTPayload } from 'jose'
import { expect } from 'vitest'
import type { Answer, SignedIn, TestService } from '../../../../test/service.ts'
import { CALLBACK, type TestClient } from './clients.ts'

export const VERIFIER = 'v'.repeat(43)
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')

/** Scopes, resources and what else a request named. */
export interface Approved {
  scopes?: string[]
  resources?: string[]
  nonce?: string
  aal?: 'aal1' | 'aal2'
  thumbprint?: string
  /** Time from now on in which the code is valid. */
  seconds?: number
}

/** Has a user approve a request of the client; returns the code. */
export async function approved(
  service: TestService,
  client: TestClient,
  user: SignedIn,
  { scopes = ['email'], resources = [], nonce, aal = 'aal1', thumbprint, seconds = 60 }: Approved = {},
): Promise<string> {
  const code = randomBytes(32).toString('base64url')
  const now = service.clock.now()
  const later = new Date(now.getTime() + seconds * 1000)
  await service.deps.db
    .insertInto('oauth_authorizations')
    .values({
      id: randomBytes(16).toString('hex'),
      client_id: client.id,
      redirect_uri: CALLBACK,
      response_mode: 'query',
      scopes: jsonb(scopes) as never,
      resources: jsonb(resources) as never,
      nonce: nonce ?? null,
      code_challenge: challengeOf(VERIFIER),
      dpop_thumbprint: thumbprint ?? null,
      status: 'approved',
      user_id: user.userId,
      session_id: String(decodeJwt(user.accessToken).session_id),
      authenticated_at: now,
      aal,
      code_hash: createHash('sha256').update(code).digest(),
      code_expires_at: later,
      expires_at: later,
      created_at: now,
    } as never)
    .execute()
  return code
}

/** Sends a request to the token endpoint. */
export const askForTokens = (
  service: Pick<TestService, 'submit'>,
  { id, secret }: TestClient,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const credentials = { client_id: id, ...(secret && { client_secret: secret }) }
  return service.submit('/oauth/token', { ...credentials, ...form }, headers)
}

/** Exchanges a code. */
export const exchange = (
  service: Pick<TestService, 'submit'>,
  client: TestClient,
  code: string,
  form: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const usual = { grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: CALLBACK }
  return askForTokens(service, client, { ...usual, ...form }, headers)
}

/** Refreshes a client's session. */
export const refresh = (
  service: Pick<TestService, 'submit'>,
  client: TestClient,
  refreshToken: string,
  form: Record<string, string> = {},
): Promise<Answer> =>
  askForTokens(service, client, { grant_type: 'refresh_token', refresh_token: refreshToken, ...form })

/** Tokens of a client for a user who approved its request. */
export async function tokensOf(
  service: TestService,
  client: TestClient,
  user: SignedIn,
  request: Approved = {},
): Promise<{ access_token: string; refresh_token: string; claims: JWTPayload; sessionId: string }> {
  const { status, body } = await exchange(service, client, await approved(service, client, user, request))
  expect([status, body]).toEqual([200, expect.anything()])
  const claims = decodeJwt(body.access_token)
  return { ...body, claims, sessionId: String(claims.session_id) }
}
