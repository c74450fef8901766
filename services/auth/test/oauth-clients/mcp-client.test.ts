// An MCP client by the official library: it knows the address of an MCP server alone, and finds and registers the rest.
import { auth, type OAuthClientProvider, type OAuthTokens } from '@modelcontextprotocol/client'
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SignedIn, TestService } from '../service.ts'
import { answer, fetchAt, MCP_SERVER, startOAuthServer } from './application.ts'

const ISSUER = 'https://auth.example/auth/v1'

let service: TestService
let url: string
let user: SignedIn
beforeAll(async () => {
  service = await startOAuthServer({ AUTH_API_EXTERNAL_URL: ISSUER }, () => new Date())
  url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  user = await service.signedIn()
})
afterAll(() => service.close())

/** Addresses that the client asks, in order. */
const asked: string[] = []

/** The MCP server's own document (RFC 9728); all else is at the authorization server. */
const fetchFn = async (address: string | URL, init?: RequestInit) => {
  asked.push(String(address).replace(/\?.*/, ''))
  const { hostname, pathname } = new URL(address)
  if (hostname !== 'mcp.example') return fetchAt(url)(address, init)
  const document = {
    resource: MCP_SERVER,
    authorization_servers: [ISSUER],
    scopes_supported: ['openid', 'email', 'offline_access'],
  }
  return pathname === '/.well-known/oauth-protected-resource/mcp'
    ? Response.json(document)
    : new Response('', { status: 404 })
}

/** A command line that listens at a port which it got just now. */
function commandLine(port: number) {
  const kept: { client?: { client_id: string }; tokens?: OAuthTokens; verifier?: string; browser?: URL } = {}
  const provider: OAuthClientProvider = {
    redirectUrl: `http://127.0.0.1:${port}/callback`,
    clientMetadata: {
      client_name: 'Agent',
      redirect_uris: ['http://127.0.0.1/callback'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => {
      kept.tokens = tokens
    },
    redirectToAuthorization: (browser) => {
      kept.browser = browser
    },
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier ?? '',
  }
  return { kept, provider }
}

test('it finds the server, registers itself, and its token is for the MCP server alone', async () => {
  const { kept, provider } = commandLine(49_152)
  expect(await auth(provider, { serverUrl: MCP_SERVER, fetchFn })).toBe('REDIRECT')
  expect(asked).toEqual([
    'https://mcp.example/.well-known/oauth-protected-resource/mcp',
    'https://auth.example/.well-known/oauth-authorization-server/auth/v1',
    `${ISSUER}/oauth/clients/register`,
  ])
  const request = kept.browser ?? expect.fail()
  expect(Object.fromEntries(request.searchParams)).toMatchObject({
    resource: MCP_SERVER,
    code_challenge_method: 'S256',
  })

  const back = await answer(service, user, request)
  expect(back.href).toMatch(/^http:\/\/127\.0\.0\.1:49152\/callback\?code=/)
  const { code = '', iss } = Object.fromEntries(back.searchParams)
  expect(await auth(provider, { serverUrl: MCP_SERVER, authorizationCode: code, iss, fetchFn })).toBe('AUTHORIZED')

  const keys = createRemoteJWKSet(new URL(`${ISSUER}/.well-known/jwks.json`), { [customFetch]: fetchAt(url) })
  const { access_token = '', refresh_token } = kept.tokens ?? {}
  const { payload } = await jwtVerify(access_token, keys, { issuer: ISSUER, audience: MCP_SERVER })
  expect(payload).toMatchObject({ sub: user.userId, aud: MCP_SERVER, client_id: kept.client?.client_id })
  expect((await service.get('/user', { authorization: `Bearer ${access_token}` })).status).not.toBe(200)

  // The next start of the command line refreshes.
  expect(await auth(provider, { serverUrl: MCP_SERVER, fetchFn })).toBe('AUTHORIZED')
  expect(kept.tokens?.refresh_token).not.toBe(refresh_token)
})
