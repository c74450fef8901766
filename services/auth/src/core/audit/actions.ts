/** Recorded actions and their log types (contract/auth-core.md 14). */
export const LOG_TYPES = {
  login: 'account',
  login_failed: 'account',
  logout: 'account',
  invite_accepted: 'account',
  account_exported: 'account',
  user_signedup: 'team',
  user_invited: 'team',
  user_deleted: 'team',
  link_generated: 'team',
  users_imported: 'team',
  users_exported: 'team',
  audit_exported: 'team',
  encryption_rotated: 'team',
  custom_provider_created: 'team',
  custom_provider_updated: 'team',
  custom_provider_deleted: 'team',
  oauth_client_created: 'team',
  oauth_client_updated: 'team',
  oauth_client_deleted: 'team',
  oauth_client_secret_rotated: 'team',
  oauth_device_approved: 'account',
  oauth_device_denied: 'account',
  oauth_scope_created: 'team',
  oauth_scope_updated: 'team',
  oauth_scope_deleted: 'team',
  webhook_created: 'team',
  webhook_updated: 'team',
  webhook_deleted: 'team',
  webhook_secret_rotated: 'team',
  webhook_tested: 'team',
  webhook_delivery_retried: 'team',
  webhooks_replayed: 'team',
  mail_sample_sent: 'team',
  provider_tested: 'team',
  oauth_authorization_approved: 'token',
  oauth_authorization_denied: 'token',
  /** `action` in the traits says what for. */
  token_revoked: 'token',
  token_refreshed: 'token',
  token_reuse_detected: 'token',
  /** Token used after its reuse interval by the client that has the next one. */
  token_repeated: 'token',
  /** The database had lost refreshes of the session. */
  token_recovered: 'token',
  user_modified: 'user',
  /** The first of two addresses agreed to a change. */
  email_change_agreed: 'user',
  user_confirmation_requested: 'user',
  user_recovery_requested: 'user',
  user_reauthenticate_requested: 'user',
  identity_linked: 'user',
  identity_unlinked: 'user',
  user_repeated_signup: 'user',
  user_updated_password: 'user',
  message_retried: 'user',
  factor_in_progress: 'factor',
  factor_unenrolled: 'factor',
  challenge_created: 'factor',
  verification_attempted: 'factor',
  factor_deleted: 'factor',
  factor_updated: 'factor',
  recovery_codes_renewed: 'factor',
  recovery_codes_removed: 'factor',
  recovery_code_used: 'factor',
  trusted_device_added: 'factor',
  trusted_device_removed: 'factor',
  /** A sign-in used it in place of the second factor. */
  trusted_device_used: 'factor',
  /** A replaced token was used, which ended the device. */
  trusted_device_reused: 'factor',
  passkey_created: 'user',
  passkey_updated: 'user',
  passkey_deleted: 'user',
} as const

export type AuditAction = keyof typeof LOG_TYPES

/** Lists the actions whose own name, or whose log type, contains the text in any case. */
export const actionsNamed = (scope: 'action' | 'type', text: string): string[] =>
  Object.entries(LOG_TYPES)
    .filter((names) => names[scope === 'action' ? 0 : 1].includes(text.toLowerCase()))
    .map(([action]) => action)
