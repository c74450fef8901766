// Every table with its place in the export of a user, or the reason why it has none. A new table or column without an
// entry here does not compile; a column named here and absent from the export fails
// ../../flows/account/export-and-deletion.test.ts.
import type { DB } from '../../db/tables.ts'

/** Exported, or the reason why it is not. */
type Place = true | string

const OWNER = 'the user of the export'
const HASH = 'secret: a hash'

/** Tables whose rows of a user are lists of the export, newest first. */
export const LISTS = {
  sessions: {
    id: true,
    user_id: OWNER,
    aal: true,
    initial_aal: true,
    amr: true,
    refresh_counter: 'secret: part of the refresh token',
    refreshed_at: true,
    repeats: 'counter against stolen tokens',
    not_after: true,
    user_agent: true,
    ip: true,
    created_at: true,
    factor_id: true,
    trusted_device_id: true,
    identity_id: true,
  },
  passkeys: {
    id: true,
    user_id: OWNER,
    credential_id: true,
    public_key: 'key material, of no use elsewhere',
    friendly_name: true,
    attestation: true,
    aaguid: true,
    sign_count: true,
    transports: true,
    backup_eligible: true,
    backed_up: true,
    user_verified: true,
    warned_at: true,
    last_used_at: true,
    created_at: true,
  },
  recovery_codes: {
    user_id: OWNER,
    code_hash: HASH,
    set_id: true,
    friendly_name: true,
    used_at: true,
    created_at: true,
  },
  trusted_devices: {
    id: true,
    user_id: OWNER,
    name: true,
    token_hash: HASH,
    uses: true,
    factor_ids: true,
    factor_id: true,
    session_id: true,
    user_agent: true,
    ip: true,
    last_used_at: true,
    expires_at: true,
    created_at: true,
  },
  messages: {
    id: true,
    user_id: OWNER,
    channel: true,
    kind: true,
    state: true,
    attempts: true,
    last_error: true,
    sealed: 'secret: address, link and code of a message that has not left',
    lifetime_seconds: true,
    provider: true,
    provider_message_id: true,
    created_at: true,
    sent_at: true,
    updated_at: true,
  },
} as const satisfies { [Table in keyof DB]?: { [Column in keyof DB[Table]]: Place } }

export type ListName = keyof typeof LISTS

/** Names the columns of a list. */
export const columnsOf = (list: ListName): string[] =>
  Object.entries<Place>(LISTS[list]).flatMap(([column, place]) => (place === true ? [column] : []))

const SECRET = 'secret: encrypted'
const HOW = 'how an address was confirmed, for the rules of addresses'

/** Tables whose rows are in `user`, with their columns. */
export const IN_USER = {
  users: {
    id: true,
    aud: true,
    role: true,
    email: true,
    phone: true,
    password_hash: HASH,
    email_confirmed_at: true,
    phone_confirmed_at: true,
    confirmed_at: true,
    invited_at: true,
    confirmation_sent_at: true,
    recovery_sent_at: true,
    email_change: true,
    email_change_sent_at: true,
    email_change_session_id: 'in `sessions`',
    email_change_confirm_status: 'step of a change of address',
    phone_change: true,
    phone_change_sent_at: true,
    phone_change_session_id: 'in `sessions`',
    reauthentication_sent_at: true,
    last_sign_in_at: true,
    app_metadata: true,
    user_metadata: true,
    is_anonymous: true,
    email_assumed: HOW,
    phone_assumed: HOW,
    email_vouched: HOW,
    phone_vouched: HOW,
    banned_until: true,
    deleted_at: true,
    created_at: true,
    updated_at: true,
    factors: true,
    claim: 'data that come with the proof of an address, perhaps from a stranger',
  },
  identities: {
    id: true,
    user_id: OWNER,
    provider: true,
    provider_id: true,
    identity_data: true,
    email: true,
    last_sign_in_at: true,
    created_at: true,
    updated_at: true,
  },
  factors: {
    id: true,
    user_id: OWNER,
    factor_type: true,
    status: true,
    friendly_name: true,
    session_id: 'in `sessions`',
    phone: true,
    sealed_secret: SECRET,
    last_used_step: 'counter against codes that are used twice',
    credential_id: 'id at the security key, of no use elsewhere',
    credential: 'key material, of no use elsewhere',
    last_challenged_at: true,
    created_at: true,
    updated_at: true,
  },
} as const satisfies { [Table in keyof DB]?: { [Column in keyof DB[Table]]: Place } }

/** Other tables, exported in another form or not at all. */
export const OTHER_TABLES: Record<Exclude<keyof DB, ListName | keyof typeof IN_USER>, string> = {
  audit_log_entries: 'in `audit_log`, without personal data of other people',
  one_time_tokens: 'hashes of links and codes, which expire; `messages` has what was sent',
  earlier_links: 'hashes of links, which expire',
  auth_codes: 'hashes of codes, which expire within minutes',
  flow_states: 'sealed sign-ins at providers, which expire within minutes',
  factor_challenges: 'hashes of codes, which expire within minutes',
  webhook_deliveries: 'copies of `user` and `sessions` on their way to the operator, which expire',
  event_users: 'copies of `user` for events, which expire',
  send_gaps: 'keyed hashes of addresses, which expire',
  decoy_rows: 'keyed hashes, which expire',
  rate_limits: 'counters, which expire',
  address_claims: 'keyed hashes of claims by strangers, which expire',
  used_web3_messages: 'hashes of signed messages, which expire',
  used_passkey_challenges: 'ids of challenges, which expire',
  custom_providers: 'nothing about users',
  oauth_clients: 'nothing about users',
  oauth_scopes: 'nothing about users',
  webhooks: 'nothing about users',
  hook_failures: 'nothing about users',
  sealed_row_counts: 'nothing about users',
  shared_runs: 'nothing about users',
  hourly_counts: 'counts of all users together',
  daily_counts: 'counts of all users together',
}
