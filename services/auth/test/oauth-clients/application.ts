// An application of others, as its developers write it: it knows the issuer, its id and its secret. The user beside it
// answers at the consent page.
import { expect } from 'vitest'
import {
  authorizePath,
  CALLBACK,
  decide,
  newVerifier,
  oauthSettings,
  type Parameters,
  registered,
  view,
} from '../../src/flows/oauth-server/testing/applications.ts'
import { locationOf, queryOf, type SignedIn, startTestService, type TestService } from '../service.ts'

export const ISSUER = 'https://auth.example'

/** Resources that exist beside the service. */
export const API = 'https://api.example/v1'
export const MCP_SERVER = 'https://mcp.example/mcp'

export const ALL_SCOPES = 'openid profile email phone offline_access'

/** A service that is an OAuth server for all kinds of clients, with hosted pages and a consent page of its own. */
export const startOAuthServer = async (settings: Record<string, string> = {}, machineNow?: () => Date) =>
  startTestService(
    {
      ...(await oauthSettings()),
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_OAUTH_SERVER_RESOURCES: `${API},${MCP_SERVER}`,
      AUTH_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
      AUTH_RATE_LIMIT_TOKEN_REFRESH: '100000',
      ...settings,
    },
    undefined,
    machineNow,
  )

export interface Application {
  id: string
  /** Empty for a public client. */
  secret: string
  /** Headers by which a confidential client authenticates with its secret. */
  headers: Record<string, string>
  /** Fields of a token request by which a public client names itself. */
  fields: Record<string, string>
}

/** Registers a confidential client, or a public one with `token_endpoint_auth_method: 'none'`. */
export async function application(service: TestService, client: object = {}): Promise<Application> {
  const { clientId: id, secret } = await registered(service, client)
  const basic = Buffer.from(`${id}:${secret}`).toString('base64')
  return {
    ...{ id, secret },
    headers: secret === '' ? {} : { authorization: `Basic ${basic}` },
    fields: secret === '' ? { client_id: id } : {},
  }
}

export const publicApplication = (service: TestService, client: object = {}) =>
  application(service, { token_endpoint_auth_method: 'none', ...client })

/** Sends a user to the address of a request, as a browser would; the address that the answer leads to. */
export async function answer(
  service: TestService,
  user: Pick<SignedIn, 'auth'>,
  request: string | URL,
  action: 'approve' | 'deny' = 'approve',
): Promise<URL> {
  const { pathname, search } = new URL(request, ISSUER)
  const begun = await service.get(pathname + search)
  expect(begun.status, begun.text).toBe(302)
  const { authorization_id: id } = queryOf(begun)
  if (id === undefined) return new URL(locationOf(begun))
  const seen = await view(service, id, user.auth)
  expect(seen.status, seen.text).toBe(200)
  const { body } = seen.body.redirect_url ? seen : await decide(service, id, user.auth, action)
  return new URL(body.redirect_url)
}

export interface Code {
  code: string
  verifier: string
}

/** A user's approval of a new request of the application. */
export async function codeFor(
  service: TestService,
  { id }: Application,
  user: Pick<SignedIn, 'auth'>,
  parameters: Parameters = {},
): Promise<Code> {
  const { verifier, challenge } = newVerifier()
  const back = await answer(service, user, authorizePath(id, { code_challenge: challenge, ...parameters }))
  return { code: back.searchParams.get('code') ?? expect.fail(back.href), verifier }
}

/** A token request with the application's own authentication. */
export const askTokens = (
  service: TestService,
  { headers, fields }: Pick<Application, 'headers' | 'fields'>,
  form: Record<string, string>,
) => service.submit('/oauth/token', { ...fields, ...form }, headers)

export const redeem = (
  service: TestService,
  by: Pick<Application, 'headers' | 'fields'>,
  { code, verifier }: Code,
  form: Record<string, string> = {},
) =>
  askTokens(service, by, {
    ...{ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK },
    ...form,
  })

export const refresh = (
  service: TestService,
  by: Pick<Application, 'headers' | 'fields'>,
  token: string,
  form: Record<string, string> = {},
) => askTokens(service, by, { grant_type: 'refresh_token', refresh_token: token, ...form })

/** Tokens for a user's approval; `scope` has all standard scopes unless given. */
export async function tokensFor(
  service: TestService,
  by: Application,
  user: Pick<SignedIn, 'auth'>,
  parameters: Parameters = {},
) {
  const given = await redeem(service, by, await codeFor(service, by, user, { scope: ALL_SCOPES, ...parameters }))
  expect(given.status, given.text).toBe(200)
  return given.body as { access_token: string; refresh_token: string; id_token: string; scope: string }
}

export const bearerOf = (token: string) => ({ authorization: `Bearer ${token}` })

export const introspect = (service: TestService, by: Application, token: string) =>
  service.submit('/oauth/introspect', { ...by.fields, token }, by.headers)

/** Fetches of a client that knows the issuer alone; they arrive at the port that the service listens on. */
export const fetchAt =
  (url: string) =>
  (address: string | URL | Request, init?: RequestInit): Promise<Response> =>
    fetch(String(address).replace(ISSUER, url), init)
