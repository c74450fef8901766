// Providers whose id_token describes the account.
import { keysEndpoint, tokenEndpoint } from './provider-answers.ts'
import { clientOf, type ProviderExample } from './sign-in-providers.ts'

const TENANT = '11111111-2222-3333-4444-555555555555'

export const ID_TOKEN_EXAMPLES: Record<string, ProviderExample> = {
  apple: {
    authorize: {
      path: '/auth/authorize',
      parameters: { scope: 'email name', response_mode: 'form_post' },
      nonce: true,
    },
    token: { authentication: 'post', parameters: { secret: clientOf('apple').secret } },
    profiles: [],
    endpoints: {
      ...keysEndpoint('/auth/keys'),
      ...tokenEndpoint('/auth/token', async ({ idToken, account, nonce }) => ({
        id_token: await idToken({
          iss: 'https://appleid.apple.com',
          aud: clientOf('apple').id,
          sub: account.id,
          email: account.email,
          email_verified: 'true',
          is_private_email: 'true',
          auth_time: 1700000000,
          nonce,
          nonce_supported: true,
        }),
      })),
    },
    identity: () => ({
      iss: 'https://appleid.apple.com',
      custom_claims: { is_private_email: true, auth_time: 1700000000 },
    }),
    isVerified: true,
  },
  azure: {
    authorize: {
      path: '/oauth2/v2.0/authorize',
      parameters: { scope: 'openid email profile' },
      pkce: true,
      nonce: true,
    },
    token: { authentication: 'post' },
    profiles: [],
    endpoints: {
      ...keysEndpoint('/discovery/v2.0/keys'),
      ...tokenEndpoint('/oauth2/v2.0/token', async ({ idToken, account, nonce, base }) => ({
        scope: 'openid email profile',
        ext_expires_in: 3600,
        id_token: await idToken({
          aud: clientOf('azure').id,
          iss: `${base}/v2.0`,
          nbf: 1700000000,
          aio: 'AVQAq/8TAAAA',
          sub: account.id,
          email: account.email,
          xms_edov: true,
          name: 'Ann Azure',
          preferred_username: 'ann@contoso.example',
          nonce,
          oid: '00000000-0000-0000-66f3-3332eca7ea81',
          rh: '0.AX0A',
          tid: TENANT,
          uti: 'abc',
          ver: '2.0',
        }),
      })),
    },
    identity: (base, { email }) => ({
      iss: `${base}/v2.0`,
      full_name: 'Ann Azure',
      preferred_username: 'ann@contoso.example',
      custom_claims: { oid: '00000000-0000-0000-66f3-3332eca7ea81', tid: TENANT, xms_edov: true, email },
    }),
    isVerified: true,
  },
  google: {
    authorize: { path: '/o/oauth2/v2/auth', parameters: { scope: 'openid email profile' }, pkce: true, nonce: true },
    token: { authentication: 'post' },
    profiles: [],
    endpoints: {
      '/.well-known/openid-configuration': {
        step: 'description',
        answer: ({ base }) => ({
          issuer: base,
          authorization_endpoint: `${base}/o/oauth2/v2/auth`,
          token_endpoint: `${base}/token`,
          userinfo_endpoint: `${base}/v1/userinfo`,
          jwks_uri: `${base}/oauth2/v3/certs`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        }),
      },
      ...keysEndpoint('/oauth2/v3/certs'),
      ...tokenEndpoint('/token', async ({ idToken, account, nonce, base }) => ({
        id_token: await idToken({
          iss: base,
          azp: clientOf('google').id,
          aud: clientOf('google').id,
          sub: account.id,
          hd: 'example.com',
          email: account.email,
          email_verified: true,
          nonce,
          name: 'Gus Google',
          picture: 'https://lh3.example/gus',
        }),
      })),
    },
    identity: (base) => ({
      iss: base,
      name: 'Gus Google',
      full_name: 'Gus Google',
      picture: 'https://lh3.example/gus',
      avatar_url: 'https://lh3.example/gus',
      custom_claims: { hd: 'example.com' },
    }),
    isVerified: true,
  },
}
