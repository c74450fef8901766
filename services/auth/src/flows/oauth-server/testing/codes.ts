// Codes and tokens of applications in tests. The rule: each step is a request of the API.
import { createHash } from 'node:crypto'
import { decodeJwt, type JWTPayload } from 'jose'
import { expect } from 'vitest'
import type { Answer, SignedIn, TestService } from '../../../../test/service.ts'
import { approved, CALLBACK, type Parameters } from './applications.ts'
import type { TestClient } from './clients.ts'

export const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

/** Has a user approve a request of the client; returns the code. */
export async function codeOf(
  service: TestService,
  { clientId }: TestClient,
  user: SignedIn,
  parameters: Parameters = {},
): Promise<string> {
  return (await approved(service, clientId, user.auth, { code_challenge: CHALLENGE, ...parameters })).code
}

/** Sends a request to the token endpoint. */
export const askForTokens = (
  service: Pick<TestService, 'submit'>,
  { clientId, secret }: TestClient,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const credentials = { client_id: clientId, ...(secret && { client_secret: secret }) }
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
  parameters: Parameters = {},
): Promise<{ access_token: string; refresh_token: string; claims: JWTPayload; sessionId: string }> {
  const { status, body } = await exchange(service, client, await codeOf(service, client, user, parameters))
  expect([status, body]).toEqual([200, expect.anything()])
  const claims = decodeJwt(body.access_token)
  return { ...body, claims, sessionId: String(claims.session_id) }
}
