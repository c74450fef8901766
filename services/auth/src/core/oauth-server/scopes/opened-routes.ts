// Scopes by route of this service, for tokens of clients: of people and of machines alike. The rule: a route is closed
// to them unless a scope of its row is in the token. Tests: opened-routes.test.ts, where a route without a row fails.

type Route = `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`

/** Scopes of which one is enough; an empty list opens the route to no client. */
type Row = readonly [route: Route, scopes: readonly string[]]

const opened = (scopes: readonly string[], ...routes: Route[]): Row[] => routes.map((route) => [route, scopes])
const closed = (...routes: Route[]): Row[] => opened([], ...routes)

/** Scopes of userinfo, whose answer is cut to them. */
const USERINFO = ['openid', 'email', 'phone', 'profile']

/** Scopes of GET /user, whose answer is cut to them. */
export const READS_USER = ['account:read', 'email', 'phone', 'profile']

const ROWS: Row[] = [
  ...opened(USERINFO, 'GET /oauth/userinfo', 'POST /oauth/userinfo'),

  // The account of the token
  ...opened(READS_USER, 'GET /user'),
  ...opened(['account:read'], 'GET /user/sessions', 'GET /factors/recovery-codes', 'GET /factors/trusted-devices'),
  ...opened(['account:read'], 'GET /user/oauth/grants'),
  // `data` alone
  ...opened(['account:write'], 'PUT /user'),
  ...closed('DELETE /user', 'GET /user/export', 'GET /reauthenticate', 'POST /logout'),
  ...closed('DELETE /user/sessions/:session_id'),
  ...closed('GET /user/identities/authorize', 'DELETE /user/identities/:identity_id'),
  ...closed('POST /factors', 'DELETE /factors/:factor_id'),
  ...closed('POST /factors/:factor_id/challenge', 'POST /factors/:factor_id/verify'),
  ...closed('POST /factors/recovery-codes', 'DELETE /factors/recovery-codes'),
  ...closed('POST /factors/recovery-codes/regenerate', 'POST /factors/recovery-codes/verify'),
  ...closed('POST /factors/trusted-devices', 'DELETE /factors/trusted-devices'),
  ...closed('DELETE /factors/trusted-devices/:device_id'),
  ...closed('POST /passkeys/registration/options', 'POST /passkeys/registration/verify'),
  ...closed('GET /passkeys', 'GET /passkeys/signal', 'PATCH /passkeys/:passkey_id', 'DELETE /passkeys/:passkey_id'),

  // A client must neither agree to another one nor end it
  ...closed('DELETE /user/oauth/grants'),
  ...closed('GET /oauth/authorizations/:authorization_id', 'POST /oauth/authorizations/:authorization_id/consent'),

  // Users, to an administrator or a machine
  ...opened(['users:read'], 'GET /admin/users', 'GET /admin/users/:user_id', 'GET /admin/users/:user_id/export'),
  ...opened(['users:read'], 'GET /admin/users/:user_id/sessions', 'GET /admin/users/:user_id/factors'),
  ...opened(['users:read'], 'GET /admin/users/:user_id/trusted-devices', 'GET /admin/users/:user_id/passkeys'),
  ...opened(['users:read'], 'GET /admin/users/:user_id/oauth/grants'),
  // Neither roles nor passwords, and no administrator: scoped-changes.ts
  ...opened(['users:write'], 'POST /admin/users', 'POST /admin/users/:user_id'),
  ...opened(['users:write'], 'PUT /admin/users/:user_id', 'DELETE /admin/users/:user_id'),
  ...opened(['users:write'], 'DELETE /admin/users/:user_id/sessions'),
  ...opened(['users:write'], 'DELETE /admin/users/:user_id/sessions/:session_id'),
  ...opened(['users:write'], 'DELETE /admin/users/:user_id/oauth/grants/:client_id'),
  ...closed('PUT /admin/users/:user_id/factors/:factor_id', 'DELETE /admin/users/:user_id/factors/:factor_id'),
  ...closed('DELETE /admin/users/:user_id/trusted-devices'),
  ...closed('DELETE /admin/users/:user_id/trusted-devices/:device_id'),
  ...closed('DELETE /admin/users/:user_id/passkeys/:passkey_id'),
  ...closed('POST /admin/users/:user_id/recover', 'POST /invite', 'POST /admin/generate_link'),

  // The rest of the admin API
  ...opened(['audit:read'], 'GET /admin/audit', 'GET /admin/audit/export'),
  ...opened(['messages:read'], 'GET /admin/messages'),
  ...opened(['messages:write'], 'POST /admin/messages/:message_id/retry'),
  ...closed('GET /admin/statistics', 'GET /admin/settings', 'GET /admin/keys', 'GET /admin/hooks'),
  ...closed('GET /admin/custom-providers', 'POST /admin/custom-providers'),
  ...closed('GET /admin/custom-providers/:identifier', 'PUT /admin/custom-providers/:identifier'),
  ...closed('DELETE /admin/custom-providers/:identifier'),
  ...closed('GET /admin/oauth/clients', 'POST /admin/oauth/clients'),
  ...closed('GET /admin/oauth/clients/:client_id', 'PUT /admin/oauth/clients/:client_id'),
  ...closed('DELETE /admin/oauth/clients/:client_id', 'POST /admin/oauth/clients/:client_id/regenerate_secret'),
  ...closed('GET /admin/oauth/clients/:client_id/statistics'),
  ...closed('GET /admin/oauth/scopes', 'POST /admin/oauth/scopes', 'GET /admin/oauth/scopes/:name'),
  ...closed('PUT /admin/oauth/scopes/:name', 'DELETE /admin/oauth/scopes/:name'),
  ...closed('GET /admin/providers', 'POST /admin/providers/:provider/test', 'GET /admin/providers/tests/:test_id'),
  ...closed('GET /admin/webhooks', 'POST /admin/webhooks', 'GET /admin/webhooks/:webhook_id'),
  ...closed('PUT /admin/webhooks/:webhook_id', 'DELETE /admin/webhooks/:webhook_id'),
  ...closed('POST /admin/webhooks/:webhook_id/rotate-secret', 'POST /admin/webhooks/:webhook_id/test'),
  ...closed('GET /admin/webhooks/:webhook_id/deliveries'),
  ...closed('POST /admin/webhooks/:webhook_id/deliveries/:delivery_id/retry'),
  ...closed('GET /admin/mail-templates', 'GET /admin/mail-templates/:kind', 'POST /admin/mail-templates/:kind/send'),
]

/** Scopes by route, as `METHOD /path/:parameter`. */
export const SCOPES_BY_ROUTE: ReadonlyMap<string, readonly string[]> = new Map(ROWS)

/** Returns the scopes that open a route; none for a route without a row, such as one that no token is needed for. */
export const scopesOpening = (method: string, url = ''): readonly string[] =>
  SCOPES_BY_ROUTE.get(`${method === 'HEAD' ? 'GET' : method} ${url}`) ?? []
