import type { Metadata } from '../../db/tables.ts'

/** Mails by kind, with default subjects (specification, Events); in settings: MAILER_SUBJECTS_MAGIC_LINK. */
export const NOTIFICATION_KINDS = {
  password_changed_notification: { subject: 'Your password was changed' },
  email_changed_notification: { subject: 'Your email address was changed' },
  phone_changed_notification: { subject: 'Your phone number was changed' },
  identity_linked_notification: { subject: 'A new sign-in method was linked to your account' },
  identity_unlinked_notification: { subject: 'A sign-in method was removed from your account' },
  mfa_factor_enrolled_notification: { subject: 'A new verification method was added to your account' },
  mfa_factor_unenrolled_notification: { subject: 'A verification method was removed from your account' },
  mfa_trusted_device_added_notification: { subject: 'A device was trusted to sign in to your account' },
  mfa_recovery_code_used_notification: { subject: 'A recovery code of your account was used' },
  passkey_added_notification: { subject: 'A passkey was added to your account' },
  passkey_removed_notification: { subject: 'A passkey was removed from your account' },
  passkey_copied_notification: { subject: 'A passkey of your account may have been copied' },
  account_deleted_notification: { subject: 'Your account was deleted' },
} as const

/** Sent unless disabled: a thief's use of a recovery code or copied key, or deletion, must not go unnoticed. */
export const ON_BY_DEFAULT: readonly string[] = [
  'mfa_recovery_code_used_notification',
  'passkey_copied_notification',
  'account_deleted_notification',
]

export const MAIL_KINDS = {
  invite: { subject: "You've been invited" },
  confirmation: { subject: 'Confirm your email address' },
  recovery: { subject: 'Reset your password' },
  magic_link: { subject: 'Your sign-in link' },
  email_change: { subject: 'Confirm your new email address' },
  reauthentication: { subject: '{{ .Token }} is your verification code' },
  account_exists: { subject: 'You already have an account' },
  ...NOTIFICATION_KINDS,
} as const

/** `type` of a mailed link, as GET /verify takes it. */
export const LINK_TYPES = ['signup', 'invite', 'recovery', 'magiclink', 'email_change'] as const
export type LinkType = (typeof LINK_TYPES)[number]

export type MailKind = keyof typeof MAIL_KINDS
export const ALL_KINDS = Object.keys(MAIL_KINDS) as MailKind[]

export const isMailKind = (kind: string): kind is MailKind => Object.hasOwn(MAIL_KINDS, kind)

export const settingName = (kind: string) => kind.toUpperCase()

/** Variables of every template. `Data` is the user's metadata: each of its values is the user's own choice. */
interface CommonVariables {
  SiteURL: string
  Email: string
  Data: Metadata
}

/** `Token` is the code to type in, `TokenHash` the token of the link (`token_hash` of POST /verify). */
export interface LinkVariables extends CommonVariables {
  ConfirmationURL: string
  Token: string
  TokenHash: string
  RedirectTo: string
}

/** Password that a confirmation sets: one chosen at sign-up, or none; `dropped`: several were chosen. */
export type PasswordState = 'chosen' | 'dropped' | ''

/** The template variables of a kind (contract/auth-platform.md 5.1). */
export type VariablesOf<Kind extends MailKind> = CommonVariables & MailDetails[Kind]
export type MailVariables = { [Kind in MailKind]: VariablesOf<Kind> }

/** Variables of a kind beside the common ones. */
export interface MailDetails {
  invite: LinkVariables
  /** `Provider`: the provider whose account the link lets in; empty for other requests. */
  confirmation: LinkVariables & { Password: PasswordState; Provider: string }
  recovery: LinkVariables
  magic_link: LinkVariables
  /** `SendingTo` is the recipient: the new address or the current one. */
  email_change: LinkVariables & { NewEmail: string; SendingTo: string }
  reauthentication: { Token: string }
  account_exists: object
  password_changed_notification: object
  /** `Email` is the new address; the mail goes to the old one. */
  email_changed_notification: { OldEmail: string }
  /** Numbers are digits without `+`, as stored. */
  phone_changed_notification: { Phone: string; OldPhone: string }
  identity_linked_notification: { Provider: string }
  identity_unlinked_notification: { Provider: string }
  mfa_factor_enrolled_notification: { FactorType: string }
  mfa_factor_unenrolled_notification: { FactorType: string }
  /** `Device`: name that the application gave it, or empty. */
  mfa_trusted_device_added_notification: { Device: string }
  mfa_recovery_code_used_notification: { Remaining: string }
  /** `Passkey` is the name that the user sees in lists. */
  passkey_added_notification: { Passkey: string }
  passkey_removed_notification: { Passkey: string }
  passkey_copied_notification: { Passkey: string }
  /** `UserID`: id that the account had. */
  account_deleted_notification: { UserID: string }
}

/** Fields of which a template must mention at least one; without them the mail is of no use. */
export function neededFields(kind: MailKind): readonly string[] {
  if (kind === 'reauthentication') return ['Token']
  return kind === 'account_exists' || Object.hasOwn(NOTIFICATION_KINDS, kind)
    ? []
    : ['ConfirmationURL', 'Token', 'TokenHash']
}
