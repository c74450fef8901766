/**
 * The mails this service sends: one entry per kind with its default subject (specification, Events). Setting names are
 * the kind in capitals: MAILER_SUBJECTS_MAGIC_LINK.
 */
export const NOTIFICATION_KINDS = {
  password_changed_notification: { subject: 'Your password was changed' },
  email_changed_notification: { subject: 'Your email address was changed' },
  phone_changed_notification: { subject: 'Your phone number was changed' },
  identity_linked_notification: { subject: 'A new sign-in method was linked to your account' },
  identity_unlinked_notification: { subject: 'A sign-in method was removed from your account' },
  mfa_factor_enrolled_notification: { subject: 'A new verification method was added to your account' },
  mfa_factor_unenrolled_notification: { subject: 'A verification method was removed from your account' },
} as const

export const MAIL_KINDS = {
  invite: { subject: "You've been invited" },
  confirmation: { subject: 'Confirm your email address' },
  recovery: { subject: 'Reset your password' },
  magic_link: { subject: 'Your sign-in link' },
  email_change: { subject: 'Confirm your new email address' },
  reauthentication: { subject: '{{ .Token }} is your verification code' },
  ...NOTIFICATION_KINDS,
} as const

export const settingName = (kind: string) => kind.toUpperCase()
