import type { ColumnType, Generated, JSONColumnType, RawBuilder, Selectable } from 'kysely'

/** Tables as Kysely sees them; `migrations/` is the truth. All times are the service's (database-clock.ts). */
export interface DB {
  users: UsersTable
  identities: IdentitiesTable
  sessions: SessionsTable
  one_time_tokens: OneTimeTokensTable
  earlier_links: EarlierLinksTable
  auth_codes: AuthCodesTable
  flow_states: FlowStatesTable
  audit_log_entries: { id: string; payload: MetadataColumn; ip_address: Generated<string>; created_at: Date }
  hook_failures: HookFailuresTable
  send_gaps: { key: Buffer; sent_at: Date; expires_at: Date }
  decoy_rows: { key: Buffer; written_at: Date }
  rate_limits: { key: string; points: number; expire: number | null }
  messages: MessagesTable
  factors: FactorsTable
  factor_challenges: FactorChallengesTable
  recovery_codes: RecoveryCodesTable
  trusted_devices: TrustedDevicesTable
  sealed_row_counts: {
    id: Generated<boolean>
    counts: ColumnType<SealedRows[] | null, unknown, unknown>
    claimed_at: Date
  }
  address_claims: AddressClaimsTable
  shared_runs: { kind: string; due_at: Date }
  used_web3_messages: { key: Buffer; expires_at: Date }
  passkeys: PasskeysTable
  used_passkey_challenges: { id: string; expires_at: Date }
  custom_providers: CustomProvidersTable
  oauth_clients: OAuthClientsTable
  oauth_scopes: OAuthScopesTable
  oauth_authorizations: OAuthAuthorizationsTable
  oauth_consents: OAuthConsentsTable
  oauth_device_codes: OAuthDeviceCodesTable
  used_oauth_proofs: { key: Buffer; expires_at: Date }
  oauth_logout_notices: {
    session_id: string
    user_id: string
    client_id: string
    audience: string
    address: string
    attempts: Generated<number>
    next_at: Generated<Date>
    created_at: Generated<Date>
  }
  webhooks: WebhooksTable
  webhook_deliveries: WebhookDeliveriesTable
  event_users: { id: string; user_id: string; data: MetadataColumn; created_at: Date }
  hourly_counts: CountColumns & { hour: Date; process: string }
  daily_counts: CountColumns & { day: string }
}

export const TABLES = [
  ...(['users', 'identities', 'sessions', 'one_time_tokens', 'earlier_links', 'auth_codes', 'flow_states'] as const),
  ...(['audit_log_entries', 'send_gaps', 'decoy_rows', 'rate_limits', 'messages', 'address_claims'] as const),
  ...([
    'factors',
    'factor_challenges',
    'recovery_codes',
    'trusted_devices',
    'sealed_row_counts',
    'shared_runs',
    'used_web3_messages',
  ] as const),
  ...(['passkeys', 'used_passkey_challenges', 'custom_providers', 'hook_failures'] as const),
  ...(['oauth_clients', 'oauth_scopes', 'oauth_authorizations', 'oauth_consents'] as const),
  ...(['oauth_device_codes', 'used_oauth_proofs', 'oauth_logout_notices'] as const),
  ...(['webhooks', 'webhook_deliveries', 'event_users', 'hourly_counts', 'daily_counts'] as const),
] satisfies readonly (keyof DB)[]

export type Metadata = Record<string, unknown>
type MetadataColumn = ColumnType<Metadata, unknown, unknown>
type MaybeTime = ColumnType<Date | null, Date | null | undefined, Date | null>

export interface UsersTable {
  id: string
  aud: string
  role: string
  email: string | null
  phone: string | null
  password_hash: string | null
  email_confirmed_at: MaybeTime
  phone_confirmed_at: MaybeTime
  confirmed_at: ColumnType<Date | null, never, never>
  invited_at: MaybeTime
  confirmation_sent_at: MaybeTime
  recovery_sent_at: MaybeTime
  email_change: string | null
  email_change_sent_at: MaybeTime
  email_change_session_id: string | null
  email_change_confirm_status: Generated<number>
  phone_change: string | null
  phone_change_sent_at: MaybeTime
  phone_change_session_id: string | null
  reauthentication_sent_at: MaybeTime
  last_sign_in_at: MaybeTime
  app_metadata: MetadataColumn
  user_metadata: MetadataColumn
  is_anonymous: Generated<boolean>
  /** Confirmed by a setting without a proof. */
  email_assumed: Generated<boolean>
  phone_assumed: Generated<boolean>
  /** Given by an admin: no account displaces its holder and no claim changes it. */
  email_vouched: Generated<boolean>
  phone_vouched: Generated<boolean>
  banned_until: MaybeTime
  deleted_at: MaybeTime
  created_at: Date
  updated_at: Date
  /** Written by core/factors/factors.store.ts only. */
  factors: ColumnType<FactorJson[] | null, never, RawBuilder<FactorJson[] | null>>
  /** Password and data that the account gets with the proof of its address (core/users/address-claims.ts). */
  claim: ColumnType<Claim | null, unknown, unknown>
}

export interface Claim {
  password_hash: string | null
  data: Metadata
  /** An admin made the claim: this replaces the account's metadata. */
  by_admin?: boolean
}

export type FactorType = 'totp' | 'phone' | 'webauthn'
/** A set of recovery codes appears as a factor, but has no row among the factors. */
export type ShownFactorType = FactorType | 'recovery_code'
export type FactorStatus = 'unverified' | 'verified'

/** Public part of a factor, as PostgreSQL's JSON has it: times are text. */
export interface FactorJson {
  id: string
  factor_type: ShownFactorType
  status: FactorStatus
  friendly_name: string
  phone: string | null
  aaguid: string | null
  last_challenged_at: string | null
  created_at: string
  updated_at: string
}

interface IdentitiesTable {
  id: string
  user_id: string
  provider: string
  provider_id: string
  identity_data: MetadataColumn
  email: ColumnType<string | null, never, never>
  last_sign_in_at: MaybeTime
  created_at: Date
  updated_at: Date
}

export type Aal = 'aal1' | 'aal2' | 'aal3'

/** Authentication method of a session (RFC 8176); `timestamp` in Unix seconds. */
export interface AmrEntry {
  method: string
  timestamp: number
  provider?: string
}

interface SessionsTable {
  id: string
  user_id: string
  aal: Generated<Aal>
  initial_aal: Generated<'aal1' | 'aal2'>
  amr: JSONColumnType<AmrEntry[], unknown, unknown>
  refresh_counter: Generated<number>
  refreshed_at: Date
  repeats: Generated<number>
  not_after: MaybeTime
  user_agent: string | null
  ip: string | null
  created_at: Date
  factor_id: string | null
  trusted_device_id: string | null
  identity_id: string | null
  /** Application of the session; null: the account's own. */
  oauth_client_id: string | null
  /** Granted scopes and resources; null without an application. */
  scopes: JSONColumnType<string[] | null, unknown, unknown>
  resources: JSONColumnType<string[] | null, unknown, unknown>
  /** Thumbprint of the key that its tokens are bound to (RFC 9449). */
  dpop_thumbprint: string | null
  /** Session that approved the request of the application. */
  approved_by: string | null
}

export type TokenPurpose =
  | 'confirmation'
  | 'recovery'
  | 'email_change_new'
  | 'email_change_current'
  | 'phone_confirmation'
  | 'phone_change'
  | 'reauthentication'

/** PKCE method (RFC 7636 4.2). */
export type ChallengeMethod = 's256' | 'plain'

interface OneTimeTokensTable {
  user_id: string
  purpose: TokenPurpose
  relates_to: string
  token_hash: Buffer | null
  code_hash: Buffer | null
  /** Makes the code, with the server's key. */
  code_seed: Buffer | null
  /** Failed attempts at the code; negative: unlimited, because the code is long. */
  attempts: Generated<number>
  used_up_codes: Generated<number>
  code_challenge: string | null
  code_challenge_method: ChallengeMethod | null
  /** Sent for a claim (core/users/address-claims.ts). */
  sets_password: Generated<boolean>
  /** Sealed account at a provider, linked by the proof (core/identities/unproven-account.ts). */
  external_account: string | null
  /** Session that requested it (core/sessions/accepted-session.ts). */
  session_id: string | null
  /** End of the link. */
  expires_at: Date
  /** End of the code, which a repeated message does not move. */
  code_expires_at: Date | null
  created_at: Date
}

/** Replaced links that stay valid; each is deleted with the token of its user and purpose. */
interface EarlierLinksTable {
  token_hash: Buffer
  user_id: string
  purpose: TokenPurpose
  relates_to: string
  code_challenge: string | null
  code_challenge_method: ChallengeMethod | null
  sets_password: boolean
  external_account: string | null
  session_id: string | null
  expires_at: Date
}

interface AuthCodesTable {
  code_hash: Buffer
  user_id: string
  code_challenge: string
  code_challenge_method: ChallengeMethod
  authentication_method: string
  provider_tokens: string | null
  session_id: string | null
  hands_over: Generated<boolean>
  expires_at: Date
  created_at: Date
}

export interface FlowStatesTable {
  id: string
  provider: string
  redirect_to: string
  aud: string
  code_challenge: string | null
  code_challenge_method: ChallengeMethod | null
  invite_token_hash: Buffer | null
  linking_user_id: string | null
  linking_session_id: string | null
  sealed: string
  is_test: Generated<boolean>
  used_at: MaybeTime
  expires_at: Date
  created_at: Date
}

interface HookFailuresTable {
  id: string
  point: string
  result: string
  reason: string
  question_id: string
  failures: number
  failed_at: Date
}

export type MessageChannel = 'mail' | 'sms'
/** `dropped`: obsolete, or only pretended. `failed`: given up; an admin may send it again. */
export type MessageState = 'queued' | 'sent' | 'failed' | 'dropped'

interface MessagesTable {
  id: string
  user_id: string | null
  channel: MessageChannel
  kind: string
  state: Generated<MessageState>
  attempts: Generated<number>
  last_error: string | null
  sealed: string | null
  lifetime_seconds: number | null
  provider: string | null
  provider_message_id: string | null
  created_at: Date
  sent_at: MaybeTime
  updated_at: Date
}

/** Public key of a security key; `publicKey` in base64url (COSE). */
export interface StoredCredential {
  id: string
  publicKey: string
  counter: number
  transports: string[]
  aaguid: string
}

interface FactorsTable {
  id: string
  user_id: string
  factor_type: FactorType
  status: Generated<FactorStatus>
  friendly_name: string
  session_id: string
  phone: string | null
  sealed_secret: string | null
  last_used_step: number | null
  credential_id: string | null
  credential: JSONColumnType<StoredCredential> | null
  last_challenged_at: MaybeTime
  created_at: Date
  updated_at: Date
}

export interface WebauthnChallenge {
  type: 'create' | 'request'
  challenge: string
  rpId: string
  origins: string[]
}

interface FactorChallengesTable {
  id: string
  factor_id: string
  session_id: string
  ip: string | null
  code_hash: Buffer | null
  attempts: Generated<number>
  webauthn: JSONColumnType<WebauthnChallenge> | null
  verified_at: MaybeTime
  expires_at: Date
  created_at: Date
}

interface PasskeysTable {
  id: string
  user_id: string
  credential_id: string
  public_key: Buffer
  friendly_name: string
  attestation: string
  aaguid: string
  sign_count: number
  transports: string[]
  backup_eligible: boolean
  backed_up: boolean
  user_verified: boolean
  warned_at: MaybeTime
  last_used_at: MaybeTime
  created_at: Date
}

interface RecoveryCodesTable {
  user_id: string
  code_hash: Buffer
  set_id: string
  friendly_name: string | null
  used_at: MaybeTime
  created_at: Date
}

interface TrustedDevicesTable {
  id: string
  user_id: string
  name: string | null
  token_hash: Buffer
  uses: Generated<number>
  /** Proven factors of the user at that time; a device is worth nothing beside others. */
  factor_ids: string[]
  /** Factor that was proven to trust the device. */
  factor_id: string
  /** Session that trusted it. */
  session_id: string
  user_agent: string | null
  ip: string | null
  last_used_at: MaybeTime
  expires_at: Date
  created_at: Date
}

/** Rows of a table under a key (core/keys). */
export interface SealedRows {
  /** null: the key without id; `?` for all that no key can have. */
  id: string | null
  /** Check value of the key. */
  check: string
  table: string
  rows: number
}

type JsonOf<Value> = ColumnType<Value, unknown, unknown>

/** Members of OpenID Connect Discovery 1.0 that are used or shown. */
export interface DiscoveryDocument {
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  jwks_uri: string
  userinfo_endpoint?: string
  scopes_supported?: string[]
  response_types_supported?: string[]
  grant_types_supported?: string[]
  subject_types_supported?: string[]
}

interface CustomProvidersTable {
  id: string
  identifier: string
  provider_type: 'oauth2' | 'oidc'
  name: string
  client_id: string
  sealed_secret: string | null
  acceptable_client_ids: JsonOf<string[]>
  scopes: JsonOf<string[]>
  pkce_enabled: boolean
  attribute_mapping: MetadataColumn
  custom_claims_allowlist: JsonOf<string[]>
  authorization_params: JsonOf<Record<string, string>>
  enabled: boolean
  listed: boolean
  email_optional: boolean
  linking: 'verified' | 'never' | `group:${string}`
  issuer: string | null
  discovery_url: string | null
  skip_nonce_check: boolean
  discovery_document: JsonOf<DiscoveryDocument | null>
  discovered_at: MaybeTime
  authorization_url: string | null
  token_url: string | null
  userinfo_url: string | null
  jwks_uri: string | null
  version: number
  created_at: Date
  updated_at: Date
}

/** A provider of the admin API. */
export type CustomProvider = Selectable<CustomProvidersTable>

interface OAuthClientsTable {
  id: string
  client_type: 'public' | 'confidential'
  registration_type: 'manual' | 'dynamic' | 'metadata_document'
  secret_hash: Buffer | null
  token_endpoint_auth_method: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  token_endpoint_auth_signing_alg: string | null
  jwks: JsonOf<Metadata | null>
  jwks_uri: string | null
  redirect_uris: JsonOf<string[]>
  post_logout_redirect_uris: JsonOf<string[]>
  grant_types: JsonOf<string[]>
  scope: string | null
  client_name: string | null
  client_uri: string | null
  logo_uri: string | null
  tos_uri: string | null
  policy_uri: string | null
  contacts: JsonOf<string[]>
  backchannel_logout_uri: string | null
  backchannel_logout_session_required: boolean
  frontchannel_logout_uri: string | null
  frontchannel_logout_session_required: boolean
  dpop_bound_access_tokens: boolean
  require_pushed_authorization_requests: boolean
  role: string
  introspects: JsonOf<string[]>
  metadata_uri: string | null
  metadata_fresh_until: Date | null
  metadata_usable_until: Date | null
  last_used_at: Date | null
  created_at: Date
  updated_at: Date
}

/** A client of the OAuth server. */
export type OAuthClient = Selectable<OAuthClientsTable>

interface OAuthScopesTable {
  name: string
  description: string
  descriptions: JsonOf<Record<string, string>>
  claims: JsonOf<string[]>
  is_default: boolean
  created_at: Date
  updated_at: Date
}

/** A scope of the admin API. */
export type OAuthScopeRow = Selectable<OAuthScopesTable>

/** Members that requests of browsers and of devices share. */
interface OAuthRequestColumns {
  client_id: string
  scopes: JSONColumnType<string[], string, string>
  resources: JSONColumnType<string[], string, string>
  user_id: string | null
  /** Session that approved it; its end ends the code. */
  session_id: string | null
  /** Newest proof and level of that session. */
  authenticated_at: MaybeTime
  aal: Aal | null
  /** Session that the code gave. */
  given_session_id: string | null
  expires_at: Date
  created_at: Date
}

interface OAuthAuthorizationsTable extends OAuthRequestColumns {
  id: string
  redirect_uri: string
  response_mode: 'query' | 'form_post'
  state: string | null
  nonce: string | null
  code_challenge: string
  dpop_thumbprint: string | null
  prompt: string | null
  max_age: number | null
  login_hint: string | null
  acr_values: string | null
  /** pushed: not begun by a browser yet. */
  status: 'pushed' | 'pending' | 'approved' | 'denied'
  code_hash: Buffer | null
  /** `error` of a denied request. */
  refusal: string | null
  /** End of the code; of a denied request: end of its page. */
  code_expires_at: MaybeTime
  /** First view of the page that posts the answer (form_post). */
  posted_at: MaybeTime
}

/** A request of an application. */
export type OAuthAuthorization = Selectable<OAuthAuthorizationsTable>

interface OAuthConsentsTable {
  user_id: string
  client_id: string
  scopes: JSONColumnType<string[], string, string>
  resources: JSONColumnType<string[], string, string>
  created_at: Date
  updated_at: Date
}

interface OAuthDeviceCodesTable extends OAuthRequestColumns {
  id: string
  device_code_hash: Buffer
  user_code: string
  status: 'pending' | 'approved' | 'denied'
  user_agent: string | null
  ip: string | null
  interval_seconds: number
  polled_at: MaybeTime
}

interface AddressClaimsTable {
  key: Buffer
  password_tag: Buffer
  data_tag: Buffer
  password_differs: Generated<boolean>
  data_differs: Generated<boolean>
  expires_at: Date
}

interface WebhooksTable {
  id: string
  url: string
  events: string[]
  description: string
  sealed_secrets: string
  enabled: Generated<boolean>
  disabled_reason: 'gone' | 'failing' | null
  failures: Generated<number>
  failing_since: MaybeTime
  paused_until: MaybeTime
  unset_at: MaybeTime
  created_at: Date
  updated_at: Date
}

export type DeliveryState = 'waiting' | 'delivered' | 'failed'

interface WebhookDeliveriesTable {
  webhook_id: string
  id: string
  position: Generated<number>
  user_id: string | null
  event: string
  data: MetadataColumn
  is_erased: Generated<boolean>
  event_user_id: string | null
  state: Generated<DeliveryState>
  attempts: Generated<number>
  attempts_before: Generated<number>
  is_running: Generated<boolean>
  next_at: MaybeTime
  give_up_at: Date
  last_status: number | null
  last_error: string | null
  created_at: Date
}

export type CountedEvent = 'sign_up' | 'sign_in' | 'message' | 'queue' | 'client'

interface CountColumns {
  event: CountedEvent
  method: string
  result: string
  /** bigint, which the driver returns as text. */
  count: string
}
