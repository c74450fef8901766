// A real OpenID provider on a real port (oidc-provider, certified), and a browser's way through it: redirects and
// cookies.
import type { webcrypto } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createFarServer } from '@services/common/testing/http/far-server'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { Provider } from 'oidc-provider'
import { type Answer, locationOf, type TestService } from './service.ts'

export interface ProviderAccount {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
  /** Claims that the profile has otherwise than the id_token. */
  inProfile?: object
  [claim: string]: unknown
}

export interface OpenIdProvider {
  issuer: string
  /** Settings of the service for a provider of this name, e.g. `GOOGLE` or `OIDC_CORP`. */
  settings(name: string): Record<string, string>
  /** The person who signs in next; `denied` refuses its consent. A `password` is asked for by a page. */
  next(account: ProviderAccount | 'denied', password?: string): void
  /** A token for the client, as an application gets it that knows the provider itself. */
  idToken(claims: JWTPayload & { sub: string }, options?: TokenOptions): Promise<string>
  /** Other keys from now on; the old ones are gone. */
  rotateKeys(): Promise<void>
  /** Walks through the provider's pages from its authorize address to our callback; the callback's address. */
  visit(url: string): Promise<URL>
  close(): Promise<void>
}

const CALLBACK = 'https://auth.example/callback'
const CLIENT = { client_id: 'our-client', client_secret: 'a-secret-of-the-client' }

interface TokenOptions {
  /** Instead of the provider's key and its algorithm. */
  key?: webcrypto.CryptoKey | Uint8Array
  header?: { alg: string; kid?: string }
}

const LOGIN_PAGE = `<!doctype html><title>Provider</title><form method="post">
<label>Password <input name="password" type="password"></label><button>Sign in</button></form>`

const typed = (request: IncomingMessage) => (request.method === 'POST' ? text(request) : '')

type Routes = Partial<Record<'authorization' | 'token' | 'userinfo' | 'jwks', string>>

export async function startOpenIdProvider(routes: Routes = {}, callback = CALLBACK): Promise<OpenIdProvider> {
  let who: ProviderAccount | 'denied' = { sub: 'nobody' }
  let password: string | undefined
  let signing: { key: webcrypto.CryptoKey; header: { alg: string; kid: string } }
  const accounts = new Map<string, ProviderAccount>()
  let handle: ReturnType<Provider['callback']>
  const server = createFarServer((request, response) => handle(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function renew(): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const key: JWK = { ...(await exportJWK(privateKey)), kid: `key-${Math.random()}`, alg: 'RS256', use: 'sig' }
    signing = { key: privateKey, header: { alg: 'RS256', kid: key.kid as string } }
    const provider = new Provider(issuer, {
      clients: [
        { ...CLIENT, redirect_uris: [callback], token_endpoint_auth_method: 'client_secret_post' },
        { client_id: 'public-client', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
      ],
      jwks: { keys: [key] },
      routes,
      cookies: { keys: ['of the tests'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture', 'hd', 'department'] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
      findAccount: (_context, accountId) => ({
        accountId,
        claims: async (use) => {
          const { inProfile, ...claims } = accounts.get(accountId) ?? {}
          return { ...claims, ...(use === 'userinfo' && inProfile), sub: accountId }
        },
      }),
      // Tests advance the clock of the service, not the provider's.
      ttl: { AccessToken: 600, IdToken: 86_400, Grant: 600, Interaction: 600, Session: 600 },
    })
    provider.use(async (context, next) => {
      if (!context.path.startsWith('/interaction/')) return next()
      const { prompt, params, grantId } = await provider.interactionDetails(context.req, context.res)
      if (who === 'denied') {
        const refusal = { error: 'access_denied', error_description: 'The user said no' }
        return provider.interactionFinished(context.req, context.res, refusal)
      }
      if (prompt.name === 'login') {
        if (password !== undefined && !(await typed(context.req)).includes(`password=${password}`)) {
          context.type = 'text/html'
          context.body = LOGIN_PAGE
          return
        }
        return provider.interactionFinished(context.req, context.res, { login: { accountId: who.sub } })
      }
      const grant = grantId
        ? await provider.Grant.find(grantId)
        : new provider.Grant({ accountId: who.sub, clientId: String(params.client_id) })
      grant?.addOIDCScope(String(params.scope))
      return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant?.save() } })
    })
    handle = provider.callback()
  }
  await renew()

  return {
    issuer,
    settings: (name) => ({
      [`AUTH_EXTERNAL_${name}_ENABLED`]: 'true',
      [`AUTH_EXTERNAL_${name}_CLIENT_ID`]: CLIENT.client_id,
      [`AUTH_EXTERNAL_${name}_SECRET`]: CLIENT.client_secret,
      [`AUTH_EXTERNAL_${name}_REDIRECT_URI`]: callback,
      [name.startsWith('OIDC_') ? `AUTH_EXTERNAL_${name}_ISSUER` : `AUTH_EXTERNAL_${name}_URL`]: issuer,
    }),
    next: (account, asked) => {
      who = account
      password = asked
      if (account !== 'denied') accounts.set(account.sub, account)
    },
    idToken: (claims, { key = signing.key, header = signing.header } = {}) =>
      new SignJWT({ iss: issuer, aud: CLIENT.client_id, ...claims })
        .setProtectedHeader(header)
        .setIssuedAt(claims.iat)
        .setExpirationTime(claims.exp ?? '5m')
        .sign(key),
    rotateKeys: renew,
    async visit(url) {
      const cookies = new Map<string, string>()
      let next = new URL(url)
      for (let steps = 0; next.origin === issuer; steps++) {
        if (steps > 10) throw new Error('the provider goes round in circles')
        const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
        const answer = await fetch(next, { redirect: 'manual', headers: { cookie } })
        const location = answer.headers.get('location')
        if (!location) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
        for (const set of answer.headers.getSetCookie()) {
          const [name = '', value = ''] = (set.split(';', 1)[0] as string).split('=')
          cookies.set(name, value)
        }
        next = new URL(location, next)
      }
      return next
    },
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Walks a browser from our address to the provider, through its pages and back; returns our answer. */
export async function signInAt(
  service: Pick<TestService, 'get' | 'submit'>,
  provider: OpenIdProvider,
  path: string,
): Promise<Answer> {
  const callback = await visitFrom(service, provider, path)
  return service.get(callback.pathname + callback.search)
}

/** The same without the last step: the callback's address, which the browser has not been to yet. */
export async function visitFrom(
  service: Pick<TestService, 'get' | 'submit'>,
  provider: OpenIdProvider,
  address: string,
): Promise<URL> {
  const { pathname, search } = new URL(address, CALLBACK)
  const opened = await service.get(pathname + search)
  const begun = opened.status === 200 ? await pressButton(service, opened) : opened
  return provider.visit(String(begun.headers.location))
}

/** Body that the button of the linking page posts. */
export const fieldsOf = ({ text }: Pick<Answer, 'text'>): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/name="(\w+)" value="([^"]+)"/g)].map(([, name, value]) => [name, value]))

/** Presses that button. The answer is a page that goes on by itself, as if by a `Location`. */
export async function pressButton(service: Pick<TestService, 'submit'>, page: Pick<Answer, 'text'>): Promise<Answer> {
  const answer = await service.submit('/callback?', fieldsOf(page))
  return { ...answer, headers: { ...answer.headers, location: locationOf(answer) } }
}
