// Signing in by OAuth 1.0a (RFC 5849), which one provider still requires. A callback counts only together with the
// request token that the browser was sent with, whose secret stays here.
import { randomBytes } from 'node:crypto'
import { apiError } from '../../errors.ts'
import { cleanAccount } from './clean-account.ts'
import { oauth1Authorization } from './oauth1-signature.ts'
import type { OAuth1Provider, ProviderJson } from './provider.ts'
import type { ClientSettings, SignInClient } from './sign-in-client.ts'
import { boundedFetch, fitsAddress, type UpstreamFetch, upstreamFailed } from './upstream.ts'

interface Token {
  token: string
  secret: string
}

const NO_TOKEN: Token = { token: '', secret: '' }

export function createOAuth1Client(provider: OAuth1Provider, settings: ClientSettings): SignInClient {
  const [consumerKey = ''] = settings.clientIds
  const endpoints = provider.endpoints(settings.url)

  /** Sends a signed request and returns its text; throws unless the status is 2xx. */
  async function ask(
    fetchUpstream: UpstreamFetch,
    { method, url, more }: { method: 'GET' | 'POST'; url: string; more?: Record<string, string> },
    { token, secret }: Token,
  ): Promise<string> {
    const parameters = {
      oauth_consumer_key: consumerKey,
      oauth_nonce: randomBytes(16).toString('hex'),
      oauth_signature_method: 'HMAC-SHA1',
      oauth_timestamp: String(Math.floor(Date.now() / 1000)),
      oauth_version: '1.0',
      ...(token && { oauth_token: token }),
      ...more,
    }
    const authorization = oauth1Authorization(
      { method, url, parameters },
      { consumer: settings.openSecret(), token: secret },
    )
    const response = await fetchUpstream(url, { method, headers: { authorization, accept: '*/*' } })
    if (!response.ok) throw new Error(`the provider answered ${response.status}`)
    return response.text()
  }

  return {
    asksFirst: true,
    async begin({ state }) {
      const callback = new URL(settings.redirectUri)
      callback.searchParams.set('state', state)
      const request = { method: 'POST', url: endpoints.requestToken, more: { oauth_callback: callback.href } } as const
      const requestToken = await ask(boundedFetch(settings.withinMs), request, NO_TOKEN)
        .then(parseToken)
        .catch((cause: unknown) => {
          throw apiError('provider_unavailable', { cause, retryAfterSeconds: 5 })
        })
      const url = new URL(endpoints.authorize)
      url.searchParams.set('oauth_token', requestToken.token)
      return { url: url.href, secrets: { requestToken } }
    },

    async finish({ denied, oauth_token, oauth_verifier }, { requestToken }) {
      if (denied) throw apiError('bad_oauth_callback', { status: 403, message: 'The user denied access' })
      if (!oauth_verifier || !requestToken || oauth_token !== requestToken.token) {
        throw apiError('bad_oauth_callback', {
          message: 'OAuth callback with missing or wrong oauth_token or oauth_verifier',
        })
      }
      const fetchUpstream = boundedFetch(settings.withinMs)
      const exchange = { method: 'POST', url: endpoints.accessToken, more: { oauth_verifier } } as const
      const access = await ask(fetchUpstream, exchange, requestToken)
        .then(parseToken)
        .catch((cause: unknown) => {
          throw upstreamFailed('Unable to retrieve access token', cause)
        })
      try {
        const profile: ProviderJson = JSON.parse(
          await ask(fetchUpstream, { method: 'GET', url: endpoints.profile }, access),
        )
        const account = cleanAccount(provider.identify(profile, endpoints))
        return { account, accessToken: access.token, refreshToken: undefined }
      } catch (cause) {
        throw upstreamFailed('Error getting user profile from external provider', cause)
      }
    },
  }
}

/** Reads a token from a form; both kinds have the same (RFC 5849 2.1 and 2.3). */
function parseToken(text: string): Token {
  const form = new URLSearchParams(text)
  const token = form.get('oauth_token')
  const secret = form.get('oauth_token_secret')
  if (!token || !secret) throw new Error('the provider answered without a token')
  if (!fitsAddress(token)) throw new Error('the provider answered with a token too long for a URL')
  return { token, secret }
}
