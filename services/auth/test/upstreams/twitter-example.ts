// Twitter, which accepts a request by its signature (RFC 5849), computed here again from the received request.
import { createHmac } from 'node:crypto'
import { ACCESS_TOKEN, clientOf, type ProviderExample, type SeenRequest, type Visit } from './sign-in-providers.ts'

const REQUEST_TOKEN = { token: 'a-request-token', secret: 'secret-of-the-request-token' }
const ACCESS_SECRET = 'secret-of-the-access-token'
const VERIFIER = 'a-verifier'

/** The `oauth_…` parameters of a request. */
export const oauthParameters = ({ headers }: SeenRequest): Record<string, string> =>
  Object.fromEntries(
    [...(headers.authorization ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value = '']) => [
      name,
      decodeURIComponent(value),
    ]),
  )

function isSigned({ request, base }: Visit, tokenSecret: string): boolean {
  const { oauth_signature, ...parameters } = oauthParameters(request)
  const url = new URL(base + request.path)
  const pairs = Object.entries({ ...Object.fromEntries(url.searchParams), ...parameters })
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
  const text = [request.method, url.origin + url.pathname, pairs.join('&')]
  const key = `${encodeURIComponent(clientOf('twitter').secret)}&${tokenSecret}`
  return createHmac('sha1', key).update(text.map(encodeURIComponent).join('&')).digest('base64') === oauth_signature
}

const isFromUs = (visit: Visit, token: string | undefined, secret: string) =>
  oauthParameters(visit.request).oauth_consumer_key === clientOf('twitter').id &&
  oauthParameters(visit.request).oauth_token === token &&
  isSigned(visit, secret)

export const TWITTER_EXAMPLE: ProviderExample = {
  authorize: { path: '/oauth/authenticate', parameters: { oauth_token: REQUEST_TOKEN.token } },
  token: { authentication: 'oauth1' },
  profiles: [
    { path: '/1.1/account/verify_credentials.json?include_entities=false&skip_status=true&include_email=true' },
  ],
  endpoints: {
    '/oauth/request_token': {
      step: 'request',
      answer: (visit) =>
        isFromUs(visit, undefined, '')
          ? `oauth_token=${REQUEST_TOKEN.token}&oauth_token_secret=${REQUEST_TOKEN.secret}&oauth_callback_confirmed=true`
          : 'Could not authenticate you.',
    },
    '/oauth/access_token': {
      step: 'token',
      answer: (visit) =>
        isFromUs(visit, REQUEST_TOKEN.token, REQUEST_TOKEN.secret) &&
        oauthParameters(visit.request).oauth_verifier === VERIFIER
          ? `oauth_token=${ACCESS_TOKEN}&oauth_token_secret=${ACCESS_SECRET}&user_id=1&screen_name=tia`
          : 'Invalid request token.',
    },
    '/1.1/account/verify_credentials.json': {
      step: 'profile',
      answer: (visit) =>
        isFromUs(visit, ACCESS_TOKEN, ACCESS_SECRET)
          ? {
              id_str: visit.account.id,
              email: visit.account.email,
              name: 'Tia Twitter',
              screen_name: 'tia',
              profile_image_url_https: 'https://pbs.example/tia',
            }
          : { errors: [{ code: 32, message: 'Could not authenticate you.' }] },
    },
  },
  callback: (location, asked) => {
    const returnTo = new URL(oauthParameters(asked[0] as SeenRequest).oauth_callback as string)
    return {
      ...Object.fromEntries(returnTo.searchParams),
      oauth_token: location.searchParams.get('oauth_token') ?? '',
      oauth_verifier: VERIFIER,
    }
  },
  identity: (base) => ({
    iss: base,
    name: 'Tia Twitter',
    full_name: 'Tia Twitter',
    preferred_username: 'tia',
    user_name: 'tia',
    picture: 'https://pbs.example/tia',
    avatar_url: 'https://pbs.example/tia',
  }),
  isVerified: true,
}
