import { MAIL_KINDS } from '../kinds.ts'
import type { MailWords, Words } from './mail-words.ts'

const code = 'Or enter this code'
const site = '{{ .SiteURL }}'
const notYou = `If this was not you, reset your password at ${site} right away: another person may be using your account.`

const factor =
  '{{ if eq .FactorType "totp" }}an authenticator app{{ else if eq .FactorType "phone" }}a phone number{{ else if eq .FactorType "webauthn" }}a security key{{ else }}{{ .FactorType }}{{ end }}'

/** `phone` and `email` are not names of services. */
const provider =
  '{{ if eq .Provider "phone" }}a phone number{{ else if eq .Provider "email" }}an email address{{ else }}{{ .Provider }}{{ end }}'

const mails = {
  invite: {
    heading: 'You have been invited',
    text: `You have been invited to create an account at ${site}.`,
    button: 'Accept the invitation',
    code,
    footer: 'If you did not expect this invitation, you can ignore this mail.',
  },
  confirmation: {
    heading: 'Confirm your email address',
    text: `Welcome! Confirm {{ .Email }} to finish creating your account at ${site}.{{ if .Provider }} A sign-in with {{ .Provider }} gave this address, which {{ .Provider }} has not verified. Do not confirm if that was not you: opened in the browser of that sign-in, the link lets the account at {{ .Provider }} in.{{ end }}{{ if eq .Password "chosen" }} The account was registered with a password. Do not confirm if you did not choose it: the person who did could sign in with it.{{ else if eq .Password "dropped" }} More than one password was given for this address, so none is set: choose one after confirming.{{ end }}`,
    button: 'Confirm email address',
    code,
    footer: 'If you did not create an account, you can ignore this mail.',
  },
  recovery: {
    heading: 'Reset your password',
    text: `We received a request, hopefully from you, to reset the password of {{ .Email }} at ${site}.`,
    button: 'Reset password',
    code,
    footer: 'If it was not you, you can ignore this mail: your password stays as it is.',
  },
  magic_link: {
    heading: 'Sign in',
    text: `Use this button to sign in to ${site} as {{ .Email }}. It works once.`,
    button: 'Sign in',
    code,
    footer: 'If you did not ask to sign in, you can ignore this mail. Do not share the link or the code.',
  },
  email_change: {
    heading: 'Confirm your new email address',
    // An account without an address is shown the new one for both.
    text: `{{ if eq .Email .NewEmail }}{{ .NewEmail }} is to become the address of your account at ${site}.{{ else }}The address of your account at ${site} is to change from {{ .Email }} to {{ .NewEmail }}.{{ end }} Confirm only if you asked for this yourself: a person already signed in to that account stays signed in, keeps its passkeys and can use {{ .NewEmail }} to sign in and to reset its password.`,
    button: 'Confirm the change',
    code,
    footer:
      '{{ if eq .Email .NewEmail }}If you did not ask for this, ignore this mail.{{ else }}If you did not ask for this change, ignore this mail and change your password.{{ end }}',
  },
  reauthentication: {
    heading: 'Your verification code',
    text: `Enter this code at ${site} to confirm that it is you.`,
    code: 'Your code',
    footer: 'If you did not ask for a code, another person may be signed in to your account: change your password.',
  },
  account_exists: {
    heading: 'You already have an account',
    text: `A sign-up at ${site} used {{ .Email }}, but you already have an account there. Sign in at ${site}. If you have forgotten your password, set a new one there.`,
    footer: 'If it was not you, you can ignore this mail: your account is as it was.',
  },
  password_changed_notification: {
    heading: 'Your password was changed',
    text: `The password of your account {{ .Email }} at ${site} has just been changed.`,
    footer: notYou,
  },
  email_changed_notification: {
    heading: 'Your email address was changed',
    text: `The email address of your account at ${site} has just been changed from {{ .OldEmail }} to {{ .Email }}. Mails about the account go to the new address from now on.`,
    footer: `If this was not you, another person may be using your account: contact the people who run ${site} right away.`,
  },
  phone_changed_notification: {
    heading: 'Your phone number was changed',
    text: `The phone number of your account {{ .Email }} at ${site} has just been changed from +{{ .OldPhone }} to +{{ .Phone }}.`,
    footer: notYou,
  },
  identity_linked_notification: {
    heading: 'A new way to sign in',
    text: `Signing in with ${provider} has just been added to your account {{ .Email }} at ${site}.`,
    footer: `If this was not you, sign in at ${site}, remove it and change your password.`,
  },
  identity_unlinked_notification: {
    heading: 'A way to sign in was removed',
    text: `Signing in with ${provider} has just been removed from your account {{ .Email }} at ${site}.`,
    footer: notYou,
  },
  mfa_factor_enrolled_notification: {
    heading: 'A new verification method',
    text: `From now on ${factor} can be used to verify sign-ins to your account {{ .Email }} at ${site}.`,
    footer: `If this was not you, sign in at ${site}, remove it and change your password.`,
  },
  mfa_factor_unenrolled_notification: {
    heading: 'A verification method was removed',
    text: `Your account {{ .Email }} at ${site} no longer uses ${factor} to verify sign-ins.`,
    footer: notYou,
  },
  mfa_trusted_device_added_notification: {
    heading: 'A new trusted device',
    text: `A device{{ if .Device }} called {{ .Device }}{{ end }} has just been trusted: signing in to your account {{ .Email }} at ${site} no longer asks for a verification method there.`,
    footer: `If this was not you, sign in at ${site}, remove the device and change your password.`,
  },
  mfa_recovery_code_used_notification: {
    heading: 'A recovery code was used',
    text: `A recovery code, hopefully used by you, has just verified a sign-in to your account {{ .Email }} at ${site}. Codes left: {{ .Remaining }}.`,
    footer: notYou,
  },
  passkey_added_notification: {
    heading: 'A new passkey',
    text: `From now on the passkey “{{ .Passkey }}” signs in to your account {{ .Email }} at ${site}.`,
    footer: `If this was not you, sign in at ${site}, remove it and change your password.`,
  },
  passkey_removed_notification: {
    heading: 'A passkey was removed',
    text: `The passkey “{{ .Passkey }}” no longer signs in to your account {{ .Email }} at ${site}.`,
    footer: notYou,
  },
  passkey_copied_notification: {
    heading: 'A passkey may have been copied',
    text: `A sign-in to your account {{ .Email }} at ${site} was refused: the passkey “{{ .Passkey }}” counts its uses, and the count was an old one. Remove this passkey and register a new one.`,
    footer: notYou,
  },
  account_deleted_notification: {
    heading: 'Your account was deleted',
    text: `Your account {{ .Email }} at ${site} has just been deleted at your request, with everything that was stored in it. It cannot be restored.`,
    footer: `If this was not you, another person has used your account: contact the people who run ${site} right away.`,
  },
} satisfies Record<keyof typeof MAIL_KINDS, Omit<MailWords, 'subject'>>

const close = 'If you did not ask for this, close this page.'

const pages: Words['pages'] = {
  signup: {
    heading: 'Confirm your email address',
    text: `Confirm this address to finish creating your account at {site}. ${close}`,
    button: 'Confirm email address',
  },
  invite: {
    heading: 'You have been invited',
    text: `Accept the invitation to create an account at {site}. ${close}`,
    button: 'Accept the invitation',
  },
  recovery: {
    heading: 'Reset your password',
    text: `Continue to {site} to choose a new password. ${close}`,
    button: 'Continue',
  },
  magiclink: { heading: 'Sign in', text: `Sign in to {site} in this browser. ${close}`, button: 'Sign in' },
  email_change: {
    heading: 'Confirm the new email address',
    text: `Confirm that an account at {site} may change its email address as the mail says. ${close}`,
    button: 'Confirm the change',
  },
  email: { heading: 'Almost there', text: `Continue to {site}. ${close}`, button: 'Continue' },
}

const withSubjects = Object.entries(MAIL_KINDS).map(([kind, { subject }]) => [
  kind,
  { subject, ...mails[kind as keyof typeof mails] },
])

export const ENGLISH: Words = {
  mails: Object.fromEntries(withSubjects) as Words['mails'],
  pages,
  linking: {
    heading: 'Link an account?',
    text: `The account that you use at {provider} next becomes a way in to {account} at {site}. Continue only if that is your own account and you have just asked for this there. Otherwise close this page: your sign-in would belong to another person's account.`,
    account: 'the account {address}',
    guest: 'a guest account without an address',
    button: 'Link my account',
  },
  providerTested: {
    heading: 'The test is complete',
    text: 'The result is shown where the test was started. No account was created and no session began. You can close this page.',
  },
  linkHint: 'If the button does not work, open this address:',
}
