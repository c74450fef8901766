import { MAX_COUNTED } from '@services/common/database/counted-page'
import type { ApiDocs } from '@services/common/http/api-docs'
import type { Config } from './config.ts'
import { VERSION } from './version.ts'

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d5fd6"/><circle cx="16" cy="12.5" r="4.5" fill="none" stroke="#fff" stroke-width="3"/><path d="M16 17v9m0-4h4" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`

const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }

const PASSKEY_ANSWER = { challenge_id: '00000000-0000-7000-8000-000000000000', credential: { type: 'public-key' } }

/** One example body per operation with a body; those of one user fit together. */
const EXAMPLES = {
  'POST /signup': { ...ADA, data: { name: 'Ada' } },
  'POST /token': ADA,
  'POST /verify': { type: 'signup', email: ADA.email, token: '123456' },
  'POST /otp': { email: ADA.email, create_user: true },
  'POST /magiclink': { email: ADA.email },
  'POST /recover': { email: ADA.email },
  'POST /resend': { type: 'signup', email: ADA.email },
  'PUT /user': { data: { name: 'Ada Lovelace' } },
  'DELETE /user': { current_password: ADA.password },
  'DELETE /user/identities/{identity_id}': {},
  'POST /passkeys/authentication/options': {},
  'POST /passkeys/authentication/verify': PASSKEY_ANSWER,
  'POST /passkeys/signup/options': { data: { name: 'Ada' } },
  'POST /passkeys/signup/verify': { ...PASSKEY_ANSWER, data: { name: 'Ada' } },
  'POST /passkeys/registration/options': {},
  'POST /passkeys/registration/verify': PASSKEY_ANSWER,
  'PATCH /passkeys/{passkey_id}': { friendly_name: 'Blue key' },
  'DELETE /passkeys/{passkey_id}': {},
  'POST /factors': { factor_type: 'totp', friendly_name: 'Phone' },
  'POST /factors/{factor_id}/challenge': {},
  'POST /factors/{factor_id}/verify': { challenge_id: '00000000-0000-4000-8000-000000000000', code: '123456' },
  'DELETE /factors/{factor_id}': {},
  'POST /factors/recovery-codes': {},
  'DELETE /factors/recovery-codes': {},
  'POST /factors/recovery-codes/regenerate': {},
  'POST /factors/recovery-codes/verify': { code: 'abcd-efgh' },
  'POST /factors/trusted-devices': { name: 'My laptop' },
  'POST /admin/users': { ...ADA, email: 'grace@example.com', email_confirm: true, user_metadata: { name: 'Grace' } },
  'POST /admin/users/{user_id}': { ...ADA, email: 'linus@example.com', email_confirm: true },
  'PUT /admin/users/{user_id}': { user_metadata: { name: 'Grace Hopper' } },
  'DELETE /admin/users/{user_id}': { should_soft_delete: false },
  'POST /admin/custom-providers': {
    ...{ provider_type: 'oidc', identifier: 'custom:acme', name: 'Acme', issuer: 'https://login.acme.example' },
    ...{ client_id: 'our-application', client_secret: 'its-secret', scopes: ['openid', 'email'] },
  },
  'PUT /admin/custom-providers/{identifier}': { enabled: false },
  'POST /oauth/token': { grant_type: 'refresh_token', refresh_token: 'a-refresh-token' },
  'POST /oauth/introspect': { token: 'an-access-token' },
  'POST /oauth/device_authorization': { client_id: '00000000-0000-4000-8000-000000000000', scope: 'email' },
  'POST /oauth/logout': { client_id: '00000000-0000-4000-8000-000000000000' },
  'POST /oauth/revoke': { token: 'a-refresh-token', client_id: '00000000-0000-4000-8000-000000000000' },
  'POST /admin/oauth/clients': { client_name: 'Reports', redirect_uris: ['https://reports.example.com/callback'] },
  'PUT /admin/oauth/clients/{client_id}': { client_name: 'Monthly reports' },
  'POST /admin/oauth/scopes': { name: 'reports:read', description: 'Read reports' },
  'PUT /admin/oauth/scopes/{name}': { description: 'Read monthly reports' },
  'POST /oauth/clients/register': { client_name: 'Reports', redirect_uris: ['http://127.0.0.1/callback'] },
  'POST /oauth/par': {
    ...{ client_id: '00000000-0000-4000-8000-000000000000', redirect_uri: 'http://127.0.0.1/callback' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256', scope: 'email' },
  },
  'POST /oauth/authorizations/{authorization_id}/consent': { action: 'approve' },
  'POST /invite': { email: 'edsger@example.com', data: { name: 'Edsger' } },
  'POST /admin/webhooks': { url: 'https://app.example.com/events', events: ['user.*', 'session.created'] },
  'PUT /admin/webhooks/{webhook_id}': { enabled: false },
  'POST /admin/mail-templates/{kind}/send': { language: 'en' },
  'POST /admin/generate_link': { type: 'magiclink', email: ADA.email },
  'PUT /admin/users/{user_id}/factors/{factor_id}': { friendly_name: 'Old phone' },
}

const HEADERS_OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  405: ['Allow'],
  415: ['Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const text = (description: string) => ({ description, schema: { type: 'string' } })

/** Parts of /docs and /openapi.json that no route's schema has. */
export const apiDocs = ({ server, siteUrl }: Pick<Config, 'server' | 'siteUrl'>): ApiDocs => ({
  title: 'Auth',
  version: VERSION,
  description: 'User management and authentication. Errors have two forms, chosen by `X-Supabase-Api-Version`.',
  baseUrl: server.externalUrl,
  contact: { name: new URL(siteUrl).host, url: siteUrl },
  securitySchemes: {
    user: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    admin: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'Token with the role claim of an admin.',
    },
  },
  tags: [
    ...[
      'sign-up',
      'verify',
      'sign-in',
      'external sign-in',
      'passkeys',
      'account',
      'second factors',
      'OAuth server',
      'admin',
      'service',
    ],
  ],
  requestHeaders: {
    'X-Supabase-Api-Version': text('Date-based API version; errors have the newer form since `2024-01-01`.'),
    'X-JWT-AUD': text('Audience of the token, where more than one is configured.'),
    'x-device-token': text('Token of a trusted device, which replaces the second factor.'),
    DPoP: text('Proof of possession of the key that tokens are bound to (RFC 9449).'),
    'If-Match': text('Version of the user that is to be changed, as its `ETag`; another one is 412.'),
  },
  readEverywhere: ['X-Supabase-Api-Version'],
  answerHeaders: {
    'Accept-Encoding': text('`identity`: bodies must not be compressed.'),
    Allow: text('Methods of the address.'),
    Deprecation: { ...text('Date of deprecation (RFC 9745).'), required: true },
    ETag: text('Version of the own fields of the user, for `If-Match`: its `updated_at` in quotes.'),
    Link: text('Addresses of the next and the last page (RFC 8288).'),
    Location: { ...text('Target of the redirect.'), required: true },
    'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer' } },
    'WWW-Authenticate': text('Required authentication scheme (RFC 9110 11.6.1).'),
    'X-Supabase-Api-Version': text('Version of the newer form; absent with the older one.'),
    'X-Total-Count': {
      description: `Number of entries on all pages; exact up to ${MAX_COUNTED}, else an estimate.`,
      schema: { type: 'integer' },
    },
    'X-Total-Count-Estimated': text('`true` if the total is an estimate.'),
    'x-device-token': text('Next token of the trusted device, in place of the presented one.'),
    'x-device-token-expires-at': { description: 'End of the trust.', schema: { type: 'string', format: 'date-time' } },
    'x-sb-error-code': { ...text('Error code, in both forms.'), required: true },
  },
  nullIsAbsent: true,
  errors: {
    everywhere: [400, 408, 415, 431],
    headers: (status) => ['x-sb-error-code', 'X-Supabase-Api-Version', ...(HEADERS_OF_STATUS[status] ?? [])],
    otherForms: {},
  },
  examples: EXAMPLES,
  icon: ICON,
})
