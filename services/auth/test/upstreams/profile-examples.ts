// Providers whose API describes the account, A to K; the others are in more-profile-examples.ts.
import { createHmac } from 'node:crypto'
import { keysEndpoint, profileEndpoint, tokenEndpoint } from './provider-answers.ts'
import { ACCESS_TOKEN, clientOf, type ProviderExample } from './sign-in-providers.ts'

const FACEBOOK_PROOF = createHmac('sha256', clientOf('facebook').secret).update(ACCESS_TOKEN).digest('hex')

export const PROFILE_EXAMPLES: Record<string, ProviderExample> = {
  bitbucket: {
    authorize: { path: '/site/oauth2/authorize', parameters: { scope: 'account email' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/2.0/user' }, { path: '/2.0/user/emails' }],
    endpoints: {
      ...tokenEndpoint('/site/oauth2/access_token', () => ({ scopes: 'account email', state: 'authorization_code' })),
      ...profileEndpoint('/2.0/user', ({ id }) => ({
        uuid: id && `{${id}}`,
        display_name: 'Bea Bitbucket',
        links: { avatar: { href: 'https://avatars.example/bea' } },
      })),
      ...profileEndpoint('/2.0/user/emails', ({ email }) => ({
        values: email
          ? [
              { email, is_primary: true, is_confirmed: true, type: 'email' },
              { email: 'unconfirmed@bitbucket.example', is_primary: false, is_confirmed: false, type: 'email' },
            ]
          : [],
      })),
    },
    identity: (base, { id }) => ({
      iss: `${base}/2.0`,
      sub: `{${id}}`,
      provider_id: `{${id}}`,
      name: 'Bea Bitbucket',
      full_name: 'Bea Bitbucket',
      picture: 'https://avatars.example/bea',
      avatar_url: 'https://avatars.example/bea',
    }),
    isVerified: true,
  },
  discord: {
    authorize: { path: '/api/oauth2/authorize', parameters: { scope: 'email identify' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/api/users/@me' }],
    endpoints: {
      ...tokenEndpoint('/api/oauth2/token'),
      ...profileEndpoint('/api/users/@me', ({ id, email }) => ({
        id,
        username: 'dora',
        discriminator: '1337',
        global_name: 'Dora',
        avatar: 'a_8342729096ea',
        verified: true,
        email,
      })),
    },
    identity: (base, { id }) => ({
      iss: `${base}/api`,
      name: 'dora#1337',
      full_name: 'dora',
      picture: `https://cdn.discordapp.com/avatars/${id}/a_8342729096ea.gif`,
      avatar_url: `https://cdn.discordapp.com/avatars/${id}/a_8342729096ea.gif`,
      custom_claims: { global_name: 'Dora' },
    }),
    isVerified: true,
  },
  facebook: {
    authorize: { path: '/dialog/oauth', parameters: { scope: 'email' } },
    token: { authentication: 'post' },
    profiles: [{ path: `/me?fields=email,first_name,last_name,name,picture&appsecret_proof=${FACEBOOK_PROOF}` }],
    endpoints: {
      ...tokenEndpoint('/oauth/access_token'),
      ...profileEndpoint('/me', ({ id, email }) => ({
        id,
        email,
        first_name: 'Fay',
        last_name: 'Facebook',
        name: 'Fay F.',
        picture: { data: { height: 50, is_silhouette: false, url: 'https://fb.example/fay', width: 50 } },
      })),
    },
    identity: (base) => ({
      iss: base,
      name: 'Fay Facebook',
      full_name: 'Fay Facebook',
      nickname: 'Fay F.',
      slug: 'Fay F.',
      picture: 'https://fb.example/fay',
      avatar_url: 'https://fb.example/fay',
    }),
    isVerified: true,
  },
  figma: {
    authorize: { path: '/oauth', parameters: { scope: 'current_user:read' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/v1/me' }],
    endpoints: {
      ...tokenEndpoint('/v1/oauth/token', ({ account }) => ({ user_id_string: account.id })),
      ...profileEndpoint('/v1/me', ({ id, email }) => ({
        id,
        email,
        handle: 'Fred Figma',
        img_url: 'https://figma.example/fred',
      })),
    },
    identity: (base) => ({
      iss: `${base}/v1`,
      name: 'Fred Figma',
      full_name: 'Fred Figma',
      avatar_url: 'https://figma.example/fred',
    }),
    isVerified: false,
  },
  github: {
    authorize: { path: '/login/oauth/authorize', parameters: { scope: 'user:email' }, pkce: true },
    token: { authentication: 'post' },
    profiles: [{ path: '/api/v3/user' }, { path: '/api/v3/user/emails' }],
    endpoints: {
      // A form, its answer to requests that do not accept JSON.
      '/login/oauth/access_token': {
        step: 'token',
        answer: () => `access_token=${ACCESS_TOKEN}&scope=user%3Aemail&token_type=bearer`,
      },
      ...profileEndpoint('/api/v3/user', ({ id }) => ({
        id: id && Number(id),
        login: 'octo',
        name: 'Octo Cat',
        avatar_url: 'https://github.example/octo',
        email: null,
      })),
      ...profileEndpoint('/api/v3/user/emails', ({ email }) =>
        email
          ? [
              { email: 'old@github.example', primary: false, verified: false, visibility: null },
              { email, primary: true, verified: true, visibility: 'private' },
            ]
          : [],
      ),
    },
    identity: (base) => ({
      iss: `${base}/api/v3`,
      name: 'Octo Cat',
      full_name: 'Octo Cat',
      preferred_username: 'octo',
      user_name: 'octo',
      avatar_url: 'https://github.example/octo',
    }),
    isVerified: true,
  },
  gitlab: {
    authorize: { path: '/oauth/authorize', parameters: { scope: 'read_user' }, pkce: true },
    token: { authentication: 'post' },
    profiles: [{ path: '/api/v4/user' }, { path: '/api/v4/user/emails' }],
    endpoints: {
      ...tokenEndpoint('/oauth/token', () => ({ created_at: 1607635748 })),
      ...profileEndpoint('/api/v4/user', ({ id, email }) => ({
        id: id && Number(id),
        email,
        username: 'gil',
        name: 'Gil Gitlab',
        avatar_url: 'https://gitlab.example/gil',
        confirmed_at: '2012-05-23T09:05:22.000Z',
      })),
      ...profileEndpoint('/api/v4/user/emails', () => []),
    },
    identity: (base) => ({
      iss: `${base}/api/v4`,
      name: 'Gil Gitlab',
      full_name: 'Gil Gitlab',
      picture: 'https://gitlab.example/gil',
      avatar_url: 'https://gitlab.example/gil',
    }),
    isVerified: true,
  },
  keycloak: {
    authorize: {
      path: '/protocol/openid-connect/auth',
      parameters: { scope: 'openid profile email' },
      pkce: true,
      nonce: true,
    },
    token: { authentication: 'basic' },
    profiles: [{ path: '/protocol/openid-connect/userinfo' }],
    endpoints: {
      ...keysEndpoint('/protocol/openid-connect/certs'),
      ...tokenEndpoint('/protocol/openid-connect/token', async ({ idToken, account: { id, email }, nonce, base }) => ({
        'not-before-policy': 0,
        scope: 'openid profile email',
        session_state: 'a-session-of-the-realm',
        id_token: await idToken({
          ...{ iss: base, aud: clientOf('keycloak').id, azp: clientOf('keycloak').id, sub: id, typ: 'ID', nonce },
          ...{ sid: 'a-session-of-the-realm', acr: '1', preferred_username: 'kay', email, email_verified: true },
        }),
      })),
      ...profileEndpoint('/protocol/openid-connect/userinfo', ({ id, email }) => ({
        sub: id,
        email,
        email_verified: true,
        name: 'Kay Keycloak',
        given_name: 'Kay',
        family_name: 'Keycloak',
        preferred_username: 'kay',
        groups: ['staff'],
      })),
    },
    identity: (base) => ({
      iss: base,
      name: 'Kay Keycloak',
      full_name: 'Kay Keycloak',
      given_name: 'Kay',
      family_name: 'Keycloak',
      preferred_username: 'kay',
      custom_claims: { groups: ['staff'] },
    }),
    isVerified: true,
  },
}
