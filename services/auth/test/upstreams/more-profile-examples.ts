// Providers whose API describes the account, L to Z.
import { profileEndpoint, tokenEndpoint } from './provider-answers.ts'
import { clientOf, type ProviderExample } from './sign-in-providers.ts'

const SNAPCHAT = 'https://auth.snapchat.com/oauth2/api/user.'

export const MORE_PROFILE_EXAMPLES: Record<string, ProviderExample> = {
  linkedin: {
    authorize: { path: '/oauth/v2/authorization', parameters: { scope: 'r_emailaddress r_liteprofile' } },
    token: { authentication: 'post' },
    profiles: [
      { path: '/v2/me?projection=(id,firstName,lastName,profilePicture(displayImage~:playableStreams))' },
      { path: '/v2/emailAddress?q=members&projection=(elements*(handle~))' },
    ],
    endpoints: {
      ...tokenEndpoint('/oauth/v2/accessToken'),
      ...profileEndpoint('/v2/me', ({ id }) => ({
        id,
        firstName: { localized: { de_DE: 'Lea' }, preferredLocale: { country: 'DE', language: 'de' } },
        lastName: { localized: { de_DE: 'Linked' }, preferredLocale: { country: 'DE', language: 'de' } },
        profilePicture: {
          'displayImage~': {
            elements: [
              { identifiers: [{ identifier: 'https://li.example/small' }] },
              { identifiers: [{ identifier: 'https://li.example/large' }] },
            ],
          },
        },
      })),
      ...profileEndpoint('/v2/emailAddress', ({ email }) => ({
        elements: email ? [{ handle: 'urn:li:emailAddress:1', 'handle~': { emailAddress: email } }] : [],
      })),
    },
    identity: (base) => ({
      iss: `${base}/v2`,
      name: 'Lea Linked',
      full_name: 'Lea Linked',
      picture: 'https://li.example/small',
      avatar_url: 'https://li.example/small',
    }),
    isVerified: true,
  },
  notion: {
    authorize: { path: '/v1/oauth/authorize', parameters: { owner: 'user' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/v1/users/me', headers: { 'notion-version': '2021-08-16' } }],
    endpoints: {
      ...tokenEndpoint('/v1/oauth/token', () => ({ bot_id: 'b', workspace_id: 'w', owner: { type: 'user' } })),
      ...profileEndpoint('/v1/users/me', ({ id, email }) => ({
        object: 'user',
        id: 'the-bot',
        type: 'bot',
        bot: {
          owner: {
            type: 'user',
            user: { object: 'user', id, name: 'Nia Notion', avatar_url: 'https://n.example/nia', person: { email } },
          },
        },
      })),
    },
    identity: (base) => ({
      iss: `${base}/v1`,
      name: 'Nia Notion',
      full_name: 'Nia Notion',
      picture: 'https://n.example/nia',
      avatar_url: 'https://n.example/nia',
    }),
    isVerified: true,
  },
  slack: {
    authorize: { path: '/oauth/authorize', parameters: { scope: 'profile email openid' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/api/openid.connect.userInfo' }],
    endpoints: {
      ...tokenEndpoint('/api/oauth.access', () => ({ ok: true, scope: 'profile,email,openid', token_type: 'user' })),
      ...profileEndpoint('/api/openid.connect.userInfo', ({ id, email }) => ({
        ok: true,
        sub: id,
        'https://slack.com/user_id': id,
        'https://slack.com/team_id': 'T0R7GR',
        email,
        email_verified: true,
        name: 'Sam Slack',
        picture: 'https://s.example/sam',
      })),
    },
    identity: (base) => ({
      iss: `${base}/api`,
      name: 'Sam Slack',
      full_name: 'Sam Slack',
      picture: 'https://s.example/sam',
      avatar_url: 'https://s.example/sam',
      custom_claims: { 'https://slack.com/team_id': 'T0R7GR' },
    }),
    isVerified: true,
  },
  snapchat: {
    authorize: {
      path: '/accounts/oauth2/auth',
      parameters: { scope: ['external_id', 'display_name', 'bitmoji.avatar'].map((name) => SNAPCHAT + name).join(' ') },
    },
    token: { authentication: 'post' },
    profiles: [
      {
        path: `/v1/me?query=${encodeURIComponent('{me{externalId displayName bitmoji{avatar id} email}}')}`,
      },
    ],
    endpoints: {
      ...tokenEndpoint('/accounts/oauth2/token'),
      ...profileEndpoint('/v1/me', ({ id, email }) => ({
        data: {
          me: { externalId: id, displayName: 'Sue Snap', email, bitmoji: { avatar: 'https://b.example/sue', id: '1' } },
        },
        errors: [],
      })),
    },
    identity: (base) => ({
      iss: `${base}/accounts/oauth2/token`,
      name: 'Sue Snap',
      full_name: 'Sue Snap',
      slug: 'Sue Snap',
      picture: 'https://b.example/sue',
      avatar_url: 'https://b.example/sue',
    }),
    isVerified: false,
  },
  spotify: {
    authorize: { path: '/authorize', parameters: { scope: 'user-read-email' } },
    token: { authentication: 'basic' },
    profiles: [{ path: '/v1/me' }],
    endpoints: {
      ...tokenEndpoint('/api/token', () => ({ scope: 'user-read-email' })),
      ...profileEndpoint('/v1/me', ({ id, email }) => ({
        id,
        email,
        display_name: 'Stu Spotify',
        images: [
          { url: 'https://i.example/small', height: 64, width: 64 },
          { url: 'https://i.example/large', height: 300, width: 300 },
        ],
      })),
    },
    identity: (base) => ({
      iss: `${base}/v1`,
      name: 'Stu Spotify',
      full_name: 'Stu Spotify',
      picture: 'https://i.example/large',
      avatar_url: 'https://i.example/large',
    }),
    isVerified: false,
  },
  twitch: {
    authorize: { path: '/oauth2/authorize', parameters: { scope: 'user:read:email' } },
    token: { authentication: 'post' },
    profiles: [{ path: '/helix/users', headers: { 'client-id': clientOf('twitch').id } }],
    endpoints: {
      // A list, where RFC 6749 has a text.
      ...tokenEndpoint('/oauth2/token', () => ({ scope: ['user:read:email'] })),
      ...profileEndpoint('/helix/users', ({ id, email }) => ({
        data: [
          {
            id,
            email,
            login: 'tom_tv',
            display_name: 'Tom TV',
            type: '',
            broadcaster_type: 'partner',
            description: 'Plays',
            profile_image_url: 'https://t.example/tom',
            offline_image_url: 'https://t.example/off',
            view_count: 5980557,
          },
        ],
      })),
    },
    identity: (base) => ({
      iss: `${base}/helix`,
      name: 'tom_tv',
      full_name: 'tom_tv',
      nickname: 'Tom TV',
      slug: 'Tom TV',
      picture: 'https://t.example/tom',
      avatar_url: 'https://t.example/tom',
      custom_claims: {
        broadcaster_type: 'partner',
        description: 'Plays',
        type: '',
        offline_image_url: 'https://t.example/off',
        view_count: 5980557,
      },
    }),
    isVerified: true,
  },
  workos: {
    authorize: { path: '/sso/authorize', parameters: {} },
    token: { authentication: 'post' },
    profiles: [],
    endpoints: {
      ...tokenEndpoint('/sso/token', ({ account: { id, email } }) => ({
        profile: {
          object: 'profile',
          id,
          email,
          connection_id: 'conn_01',
          organization_id: 'org_01',
          connection_type: 'OktaSAML',
          first_name: 'Will',
          last_name: 'Work',
        },
      })),
      // Request for the organization by our key: no profile of the account.
      '/organizations/org_01': {
        step: 'description',
        answer: () => ({ id: 'org_01', domains: [{ domain: 'example.com', state: 'verified' }] }),
      },
    },
    identity: (base) => ({
      iss: base,
      name: 'Will Work',
      full_name: 'Will Work',
      custom_claims: { connection_id: 'conn_01', organization_id: 'org_01' },
    }),
    isVerified: true,
  },
}
