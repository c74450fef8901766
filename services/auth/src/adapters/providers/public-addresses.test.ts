import { describe, expect, test } from 'vitest'
import type { ExternalProvider } from '../../config/external-providers.ts'
import { PROVIDERS } from './index.ts'

/** Without EXTERNAL_<P>_URL: contract/auth-external.md 1.3. */
const ADDRESSES: Record<Exclude<ExternalProvider, 'google' | 'keycloak' | 'twitter'>, [string, string, string]> = {
  apple: [
    'https://appleid.apple.com/auth/authorize',
    'https://appleid.apple.com/auth/token',
    'https://appleid.apple.com',
  ],
  azure: [
    'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    'https://login.microsoftonline.com/common',
  ],
  bitbucket: [
    'https://bitbucket.org/site/oauth2/authorize',
    'https://bitbucket.org/site/oauth2/access_token',
    'https://api.bitbucket.org/2.0',
  ],
  discord: [
    'https://discord.com/api/oauth2/authorize',
    'https://discord.com/api/oauth2/token',
    'https://discord.com/api',
  ],
  facebook: [
    'https://www.facebook.com/dialog/oauth',
    'https://graph.facebook.com/oauth/access_token',
    'https://graph.facebook.com',
  ],
  figma: ['https://www.figma.com/oauth', 'https://api.figma.com/v1/oauth/token', 'https://api.figma.com/v1'],
  github: [
    'https://github.com/login/oauth/authorize',
    'https://github.com/login/oauth/access_token',
    'https://api.github.com',
  ],
  gitlab: ['https://gitlab.com/oauth/authorize', 'https://gitlab.com/oauth/token', 'https://gitlab.com/api/v4'],
  linkedin: [
    'https://api.linkedin.com/oauth/v2/authorization',
    'https://api.linkedin.com/oauth/v2/accessToken',
    'https://api.linkedin.com/v2',
  ],
  notion: [
    'https://api.notion.com/v1/oauth/authorize',
    'https://api.notion.com/v1/oauth/token',
    'https://api.notion.com/v1',
  ],
  slack: ['https://slack.com/oauth/authorize', 'https://slack.com/api/oauth.access', 'https://slack.com/api'],
  snapchat: [
    'https://accounts.snapchat.com/accounts/oauth2/auth',
    'https://accounts.snapchat.com/accounts/oauth2/token',
    'https://kit.snapchat.com/v1',
  ],
  spotify: [
    'https://accounts.spotify.com/authorize',
    'https://accounts.spotify.com/api/token',
    'https://api.spotify.com/v1',
  ],
  twitch: ['https://id.twitch.tv/oauth2/authorize', 'https://id.twitch.tv/oauth2/token', 'https://api.twitch.tv/helix'],
  fly: ['https://api.fly.io/oauth/authorize', 'https://api.fly.io/oauth/token', 'https://api.fly.io'],
  kakao: [
    'https://kauth.kakao.com/oauth/authorize',
    'https://kauth.kakao.com/oauth/token',
    'https://kapi.kakao.com/v2',
  ],
  linkedin_oidc: [
    'https://www.linkedin.com/oauth/v2/authorization',
    'https://www.linkedin.com/oauth/v2/accessToken',
    'https://www.linkedin.com',
  ],
  slack_oidc: [
    'https://slack.com/openid/connect/authorize',
    'https://slack.com/api/openid.connect.token',
    'https://slack.com/api/openid.connect.userInfo',
  ],
  vercel_marketplace: [
    'https://api.vercel.com/oauth/v2/authorization',
    'https://api.vercel.com/oauth/v2/accessToken',
    'https://api.vercel.com',
  ],
  x: ['https://x.com/i/oauth2/authorize', 'https://api.x.com/2/oauth2/token', 'https://api.x.com/2'],
  zoom: ['https://zoom.us/oauth/authorize', 'https://zoom.us/oauth/token', 'https://api.zoom.us/v2'],
  workos: ['https://api.workos.com/sso/authorize', 'https://api.workos.com/sso/token', 'https://api.workos.com'],
}

test.each(Object.entries(ADDRESSES))('%s is asked at its public addresses', (name, [authorize, token, api]) => {
  expect(PROVIDERS[name as ExternalProvider].endpoints(undefined)).toMatchObject({ authorize, token, api })
})

test('google is asked where it is', () => {
  expect(PROVIDERS.google.endpoints(undefined)).toEqual({ discover: 'https://accounts.google.com' })
})

test('twitter is asked at its public addresses', () => {
  const [api, profile] = ['https://api.twitter.com', 'https://api.twitter.com/1.1/account/verify_credentials.json']
  expect(PROVIDERS.twitter.endpoints(undefined)).toEqual({
    requestToken: `${api}/oauth/request_token`,
    authorize: `${api}/oauth/authenticate`,
    accessToken: `${api}/oauth/access_token`,
    profile: `${profile}?include_entities=false&skip_status=true&include_email=true`,
    issuer: api,
  })
})

describe('keys and issuer of id_tokens', () => {
  test.each([
    ['apple', 'https://appleid.apple.com/auth/keys', 'https://account.apple.com'],
    ['facebook', 'https://www.facebook.com/.well-known/oauth/openid/jwks/', 'https://www.facebook.com'],
    ['kakao', 'https://kauth.kakao.com/.well-known/jwks.json', 'https://kauth.kakao.com'],
    ['linkedin_oidc', 'https://www.linkedin.com/oauth/openid/jwks', 'https://www.linkedin.com/oauth'],
    ['linkedin_oidc', 'https://www.linkedin.com/oauth/openid/jwks', 'https://www.linkedin.com'],
    ['slack_oidc', 'https://slack.com/openid/connect/keys', 'https://slack.com'],
    ['vercel_marketplace', { discover: 'https://marketplace.vercel.com' }, 'https://marketplace.vercel.com'],
    ['snapchat', { discover: 'https://accounts.snapchat.com' }, 'https://accounts.snapchat.com'],
  ] as const)('%s', (name, jwks, issuer) => {
    const endpoints = PROVIDERS[name].endpoints(undefined)
    const rules = 'idTokens' in endpoints ? endpoints.idTokens : undefined
    expect(rules?.jwks).toEqual(jwks)
    expect(rules?.isIssuer(issuer)).toBe(true)
    expect(rules?.isIssuer(`${issuer}.evil.example`)).toBe(false)
  })
})
