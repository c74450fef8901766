// Providers beyond the specification's eighteen: names in the types of the public client.
import { keysEndpoint, profileEndpoint, tokenEndpoint } from './provider-answers.ts'
import { clientOf, type ProviderExample } from './sign-in-providers.ts'

const X_FIELDS = 'id,name,username,confirmed_email,profile_image_url,url,created_at'
const pictured = (picture: string) => ({ picture, avatar_url: picture })
const named = (name: string) => ({ name, full_name: name })

export const FURTHER_EXAMPLES: Record<string, ProviderExample> = {
  fly: {
    authorize: { path: '/oauth/authorize', parameters: { scope: 'read' } },
    token: { authentication: 'post' },
    profiles: [{ path: '/oauth/token/info' }],
    endpoints: {
      ...tokenEndpoint('/oauth/token', () => ({ scope: 'read', created_at: 1683733170 })),
      ...profileEndpoint('/oauth/token/info', ({ id, email }) => ({
        resource_owner_id: id,
        user_id: id,
        user_name: 'Flo Fly',
        email,
        organizations: [{ id: 'zd3e5wvkjel6pgqw', role: 'admin' }],
        scope: ['read'],
        expires_in: 7200,
        application: { uid: 'logjam' },
        created_at: 1683740928,
      })),
    },
    identity: (base, { id }) => ({
      iss: base,
      full_name: 'Flo Fly',
      custom_claims: {
        resource_owner_id: id,
        organizations: [{ id: 'zd3e5wvkjel6pgqw', role: 'admin' }],
        application: { uid: 'logjam' },
        scope: ['read'],
        created_at: 1683740928,
      },
    }),
    isVerified: true,
  },
  kakao: {
    authorize: { path: '/oauth/authorize', parameters: { scope: 'account_email profile_image profile_nickname' } },
    token: { authentication: 'post' },
    profiles: [{ path: '/v2/user/me' }],
    endpoints: {
      ...tokenEndpoint('/oauth/token', () => ({ token_type: 'bearer', refresh_token_expires_in: 5184000 })),
      ...profileEndpoint('/v2/user/me', ({ id, email }) => ({
        id: id && Number(id),
        connected_at: '2022-04-11T01:45:28Z',
        kakao_account: {
          profile: { nickname: 'Kim Kakao', profile_image_url: 'https://k.example/kim', is_default_image: false },
          has_email: true,
          email_needs_agreement: false,
          is_email_valid: true,
          is_email_verified: true,
          email,
        },
      })),
      // Keys of the id_tokens of applications: no step of a browser's sign-in.
      '/.well-known/jwks.json': { step: 'description', answer: ({ keys }) => keys },
    },
    identity: (base) => ({
      iss: `${base}/v2`,
      ...named('Kim Kakao'),
      preferred_username: 'Kim Kakao',
      user_name: 'Kim Kakao',
      avatar_url: 'https://k.example/kim',
    }),
    isVerified: true,
  },
  linkedin_oidc: {
    authorize: { path: '/oauth/v2/authorization', parameters: { scope: 'openid email profile' }, nonce: true },
    token: { authentication: 'post' },
    profiles: [],
    endpoints: {
      ...keysEndpoint('/oauth/openid/jwks'),
      ...tokenEndpoint('/oauth/v2/accessToken', async ({ idToken, account, base }) => ({
        scope: 'email,openid,profile',
        // No nonce, although the authorize address has one.
        id_token: await idToken({
          iss: `${base}/oauth`,
          aud: clientOf('linkedin_oidc').id,
          sub: account.id,
          given_name: 'Liv',
          family_name: 'Linked',
          locale: 'en_US',
          picture: 'https://li.example/liv',
          email: account.email,
          email_verified: 'true',
        }),
      })),
    },
    identity: (base) => ({
      iss: `${base}/oauth`,
      ...named('Liv Linked'),
      given_name: 'Liv',
      family_name: 'Linked',
      ...pictured('https://li.example/liv'),
    }),
    isVerified: true,
  },
  slack_oidc: {
    authorize: { path: '/openid/connect/authorize', parameters: { scope: 'profile email openid' }, nonce: true },
    token: { authentication: 'basic' },
    profiles: [{ path: '/api/openid.connect.userInfo' }],
    endpoints: {
      ...keysEndpoint('/openid/connect/keys'),
      ...tokenEndpoint('/api/openid.connect.token', async ({ idToken, account: { id, email }, nonce, base }) => ({
        ok: true,
        id_token: await idToken({
          ...{ iss: base, aud: clientOf('slack_oidc').id, sub: id, nonce, email, email_verified: true },
          ...{ 'https://slack.com/user_id': id, 'https://slack.com/team_id': 'T0R7GR', name: 'Sid Slack' },
        }),
      })),
      ...profileEndpoint('/api/openid.connect.userInfo', ({ id, email }) => ({
        ok: true,
        sub: id,
        'https://slack.com/user_id': id,
        'https://slack.com/team_id': 'T0R7GR',
        email,
        email_verified: true,
        date_email_verified: 1622128723,
        name: 'Sid Slack',
        picture: 'https://s.example/sid',
      })),
    },
    identity: (base) => ({
      iss: base,
      ...named('Sid Slack'),
      ...pictured('https://s.example/sid'),
      custom_claims: { 'https://slack.com/team_id': 'T0R7GR' },
    }),
    isVerified: true,
  },
  vercel_marketplace: {
    authorize: { path: '/oauth/v2/authorization', parameters: {}, nonce: true },
    token: { authentication: 'post' },
    profiles: [],
    endpoints: {
      '/.well-known/openid-configuration': {
        step: 'description',
        answer: ({ base }) => ({
          issuer: base,
          jwks_uri: `${base}/.well-known/jwks`,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        }),
      },
      ...keysEndpoint('/.well-known/jwks'),
      ...tokenEndpoint('/oauth/v2/accessToken', async ({ idToken, account, base }) => ({
        id_token: await idToken({
          iss: base,
          aud: clientOf('vercel_marketplace').id,
          sub: account.id,
          account_id: 'the-team',
          installation_id: 'icfg_01',
          user_id: 'the-user',
          user_role: 'ADMIN',
          user_email: account.email,
          user_name: 'Val Vercel',
          user_avatar_url: 'https://v.example/val',
        }),
      })),
    },
    identity: (base) => ({ iss: base, name: 'Val Vercel', picture: 'https://v.example/val' }),
    isVerified: true,
  },
  x: {
    authorize: {
      path: '/i/oauth2/authorize',
      parameters: { scope: 'users.email tweet.read users.read offline.access' },
      pkce: true,
    },
    token: { authentication: 'basic' },
    profiles: [{ path: `/2/users/me?user.fields=${X_FIELDS}` }],
    endpoints: {
      ...tokenEndpoint('/2/oauth2/token', () => ({ scope: 'users.email tweet.read users.read offline.access' })),
      ...profileEndpoint('/2/users/me', ({ id, email }) => ({
        data: {
          id,
          name: 'Xia X',
          username: 'xia',
          confirmed_email: email,
          profile_image_url: 'https://x.example/xia_normal.jpg',
          url: 'https://t.example/xia',
          created_at: '2013-12-14T04:35:55.000Z',
        },
      })),
    },
    identity: (base) => ({
      iss: `${base}/2`,
      ...named('Xia X'),
      preferred_username: 'xia',
      user_name: 'xia',
      ...pictured('https://x.example/xia_normal.jpg'),
      profile: 'https://x.com/xia',
      website: 'https://t.example/xia',
      custom_claims: { created_at: '2013-12-14T04:35:55.000Z' },
    }),
    isVerified: true,
  },
  zoom: {
    authorize: { path: '/oauth/authorize', parameters: {} },
    token: { authentication: 'basic' },
    profiles: [{ path: '/v2/users/me' }],
    endpoints: {
      ...tokenEndpoint('/oauth/token', () => ({ scope: 'user:read:user', api_url: 'https://api.zoom.us' })),
      ...profileEndpoint('/v2/users/me', ({ id, email }) => ({
        id,
        email,
        first_name: 'Zoe',
        last_name: 'Zoom',
        type: 1,
        verified: 1,
        login_types: [100],
        pic_url: 'https://z.example/zoe',
      })),
    },
    identity: (base) => ({ iss: `${base}/v2`, ...named('Zoe Zoom'), ...pictured('https://z.example/zoe') }),
    isVerified: true,
  },
}
