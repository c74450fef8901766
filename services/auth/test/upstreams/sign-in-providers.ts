// One loopback server that is all sign-in providers, each under its own name, answering as its documentation says.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** The person who signs in; the provider does not report omitted members. */
export interface FarAccount {
  id?: string | undefined
  email?: string | undefined
}

export interface SeenRequest {
  method: string
  /** Path and query as the provider would see them on a host of its own. */
  path: string
  headers: IncomingMessage['headers']
  form: Record<string, string>
}

export type Step = 'request' | 'token' | 'profile' | 'keys' | 'description'

/** State of a provider when it answers. */
export interface Visit {
  account: FarAccount
  base: string
  request: SeenRequest
  /** Parameters of the authorize address the browser was sent to. */
  nonce: string | undefined
  /** An id_token with these claims, or what the test has put in its place. */
  idToken(claims: Record<string, unknown>): Promise<string>
  keys: object
}

/** An endpoint's answer: text as it is, all else as JSON. */
export interface FarEndpoint {
  step: Step
  answer(visit: Visit): unknown
}

/** A provider as it documents itself, and what a sign-in at it must look like from there. */
export interface ProviderExample {
  /** Address the browser is sent to, and parameters beside our id, redirect_uri, response_type and state. */
  authorize: { path: string; parameters: Record<string, string>; pkce?: true; nonce?: true }
  /** Request that redeems the code, and parameters beside grant_type, code, redirect_uri and our id. */
  token: { authentication: 'basic' | 'post' | 'oauth1'; parameters?: Record<string, string> }
  /** Requests after that, in order, with headers beside the access token. */
  profiles: { path: string; headers?: Record<string, string> }[]
  endpoints: Record<string, FarEndpoint>
  /** Parameters of the callback, if not a code. */
  callback?(location: URL, asked: SeenRequest[]): Record<string, string>
  /** identity_data of the account beside its id and address. */
  identity(base: string, account: FarAccount): Record<string, unknown>
  isVerified: boolean
}

/** Another answer; `usual` is what the real one says. */
export type Instead = (response: ServerResponse, usual: string) => void

export type Keys = Awaited<ReturnType<typeof generateKeyPair>>

export interface SignInProviders {
  url: string
  base(name: string): string
  /** Requests to a provider, in order. */
  requests(name: string): SeenRequest[]
  forgetRequests(name: string): void
  /** Variables that enable these providers, here. */
  settings(...names: string[]): Record<string, string>
  /** The browser arrives and the account signs in; returns the parameters of the callback. */
  visit(name: string, location: URL, account: FarAccount): Record<string, string>
  /** Page for real browsers with a button `Go on`, which posts the parameters of the callback. */
  showPage(name: string, account: FarAccount): void
  /** Sets another answer at a step or an address, until changed; undefined: the real one's. */
  answer(name: string, at: Step | `/${string}`, how?: Instead): void
  /** Instead of the id_token it would make. */
  forge(make?: (claims: Record<string, unknown>, keys: Keys) => Promise<string> | string): void
  /** Signs an id_token as a provider does, for ten minutes. */
  idToken(claims: Record<string, unknown>): Promise<string>
  close(): Promise<void>
}

export const CALLBACK = 'https://auth.example/callback'
const KEY_ID = 'the-key'

export async function startSignInProviders(examples: Record<string, ProviderExample>): Promise<SignInProviders> {
  const keys = await generateKeyPair('RS256', { extractable: true })
  const jwks = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: KEY_ID, alg: 'RS256', use: 'sig' }] }
  const requests = new Map<string, SeenRequest[]>()
  const visitors = new Map<string, { account: FarAccount; nonce: string | undefined }>()
  const others = new Map<string, Instead>()
  const pages = new Map<string, FarAccount>()
  let forge: Parameters<SignInProviders['forge']>[0]

  async function idToken(claims: Record<string, unknown>): Promise<string> {
    const seconds = Math.floor(Date.now() / 1000)
    const all = { iat: seconds, exp: seconds + 600, ...claims }
    return forge ? forge(all, keys) : sign(all, keys)
  }

  function visit(name: string, location: URL, account: FarAccount): Record<string, string> {
    const { state = '', nonce } = Object.fromEntries(location.searchParams)
    visitors.set(name, { account, nonce })
    return examples[name]?.callback?.(location, requests.get(name) ?? []) ?? { code: codeOf(name), state }
  }

  const server = createFarServer(
    async (incoming, response) => {
      const [, name = '', path = ''] = /^\/([a-z_]+)(.*)$/.exec(incoming.url ?? '') ?? []
      const request = await read(incoming, path).catch(() => undefined)
      // A caller that gave up in the middle of its request.
      if (!request) return
      requests.set(name, [...(requests.get(name) ?? []), request])
      const [pathname = ''] = path.split('?')
      const pageOf = pages.get(name)
      if (pageOf && pathname === examples[name]?.authorize.path) {
        const location = new URL(url + incoming.url)
        return void response
          .setHeader('content-type', 'text/html')
          .end(answerPage(location, visit(name, location, pageOf)))
      }
      const endpoint = examples[name]?.endpoints[pathname]
      if (!endpoint) return void response.writeHead(404).end()
      const { account, nonce } = visitors.get(name) ?? { account: {}, nonce: undefined }
      const base = `${url}/${name}`
      const answer = await endpoint.answer({ account, nonce, base, request, idToken, keys: jwks })
      const usual = typeof answer === 'string' ? answer : JSON.stringify(answer)
      const other = others.get(`${name} ${endpoint.step}`) ?? others.get(`${name} ${pathname}`)
      if (other) return other(response, usual)
      const contentType = typeof answer === 'string' ? 'text/plain' : 'application/json'
      response.writeHead(200, { 'content-type': contentType }).end(usual)
    },
    { maxHeaderSize: 64 * 1024 },
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    url,
    base: (name) => `${url}/${name}`,
    requests: (name) => requests.get(name) ?? [],
    forgetRequests: (name) => void requests.delete(name),
    settings: (...names) =>
      Object.assign(
        {},
        ...names.map((name) => ({
          [`AUTH_EXTERNAL_${name.toUpperCase()}_ENABLED`]: 'true',
          [`AUTH_EXTERNAL_${name.toUpperCase()}_CLIENT_ID`]: clientOf(name).id,
          [`AUTH_EXTERNAL_${name.toUpperCase()}_SECRET`]: clientOf(name).secret,
          [`AUTH_EXTERNAL_${name.toUpperCase()}_REDIRECT_URI`]: CALLBACK,
          [`AUTH_EXTERNAL_${name.toUpperCase()}_URL`]: `${url}/${name}`,
        })),
      ),
    visit,
    showPage: (name, account) => void pages.set(name, account),
    answer(name, at, how) {
      if (how) others.set(`${name} ${at}`, how)
      else others.delete(`${name} ${at}`)
    },
    forge: (make) => {
      forge = make
    },
    idToken,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Our credentials at a provider, with characters that some of them have. */
export const clientOf = (name: string) => ({ id: `${name}-client_1`, secret: `${name}/secret-of_1` })

export const ACCESS_TOKEN = 'an-access-token-of-the-provider'

export const codeOf = (name: string) => `code-of-${name}`

export const sign = (claims: Record<string, unknown>, { privateKey }: Keys) =>
  new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: KEY_ID }).sign(privateKey)

function answerPage(location: URL, form: Record<string, string>): string {
  const fields = Object.entries(form).map(([name, value]) => `<input name="${name}" value="${value}">`)
  const target = location.searchParams.get('redirect_uri')
  return `<!doctype html><title>Provider</title><form method="post" action="${target}">${fields.join('')}<button>Go on</button></form>`
}

async function read(incoming: IncomingMessage, path: string): Promise<SeenRequest> {
  let body = ''
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk
  const { method = '', headers } = incoming
  return { method, path, headers, form: Object.fromEntries(new URLSearchParams(body)) }
}
