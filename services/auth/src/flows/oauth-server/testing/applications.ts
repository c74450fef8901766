// Applications for tests of the OAuth server, and their way to a code: registration, request, a user's answer. The
// rule: each step is a request of the API.
import { createHash, randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { expect } from 'vitest'
import { queryOf, type TestService } from '../../../../test/service.ts'
import { basicOf, type TestClient } from './clients.ts'

export const CALLBACK = 'https://app.example/callback'

/** Settings of a service whose OAuth server can issue id_tokens. */
export async function oauthSettings(): Promise<Record<string, string>> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const key = { ...(await exportJWK(privateKey)), kid: 'oauth', alg: 'ES256', key_ops: ['sign', 'verify'] }
  return { AUTH_OAUTH_SERVER_ENABLED: 'true', AUTH_JWT_KEYS: JSON.stringify({ keys: [key] }) }
}

/** The same, with the hosted pages to ask the user. */
export const hostedSettings = async (): Promise<Record<string, string>> => ({
  ...(await oauthSettings()),
  AUTH_HOSTED_PAGES_ENABLED: 'true',
  AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '',
})

/** Registers an application. */
export async function registered(service: TestService, client: object = {}): Promise<TestClient> {
  const { status, body } = await service.post(
    '/admin/oauth/clients',
    { redirect_uris: [CALLBACK], client_name: 'App', ...client },
    service.admin,
  )
  expect(status, JSON.stringify(body)).toBe(201)
  const { client_id: clientId, client_secret: secret = '' } = body
  return { clientId, secret, basic: basicOf(clientId, secret) }
}

export function newVerifier() {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export type Parameters = Record<string, string | string[] | undefined>

/** Address of GET /oauth/authorize; undefined removes a parameter, a list repeats one. */
export function authorizePath(clientId: string, parameters: Parameters = {}) {
  const all: Parameters = {
    ...{ client_id: clientId, redirect_uri: CALLBACK, response_type: 'code', state: 'st', scope: 'email' },
    ...{ code_challenge: newVerifier().challenge, code_challenge_method: 'S256' },
    ...parameters,
  }
  const pairs = Object.entries(all).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, each]))
  return `/oauth/authorize?${new URLSearchParams(pairs as [string, string][])}`
}

/** Begins a request; its id. */
export async function begun(service: TestService, clientId: string, parameters: Parameters = {}): Promise<string> {
  const answer = await service.get(authorizePath(clientId, parameters))
  expect(answer.status, answer.text).toBe(302)
  return queryOf(answer).authorization_id ?? expect.fail(String(answer.headers.location))
}

type Auth = { authorization: string }

export const view = (service: TestService, id: string, auth: Auth) => service.get(`/oauth/authorizations/${id}`, auth)

export const decide = (service: TestService, id: string, auth: Auth, action = 'approve') =>
  service.post(`/oauth/authorizations/${id}/consent`, { action }, auth)

/** A user's approval of a new request: code, verifier and what the redirect holds. */
export async function approved(service: TestService, clientId: string, auth: Auth, parameters: Parameters = {}) {
  const { verifier, challenge } = newVerifier()
  const id = await begun(service, clientId, { code_challenge: challenge, ...parameters })
  const seen = await view(service, id, auth)
  const { body } = seen.body.redirect_url ? seen : await decide(service, id, auth)
  const answer = Object.fromEntries(new URL(body.redirect_url).searchParams)
  return { id, verifier, code: String(answer.code), answer }
}
