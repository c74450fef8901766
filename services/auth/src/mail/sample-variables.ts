import type { MailKind, MailVariables } from './kinds.ts'

const common = {
  SiteURL: 'https://site.example',
  Email: 'ada@example.com',
  Data: { name: 'Ada Lovelace', locale: 'en' },
}

const link = {
  ...common,
  ConfirmationURL:
    'https://auth.example/verify?token=Zm9yLXByZXZpZXctb25seS1ub3QtYS1yZWFsLXRva2Vu&type=signup&redirect_to=https%3A%2F%2Fsite.example',
  Token: '482913',
  TokenHash: 'Zm9yLXByZXZpZXctb25seS1ub3QtYS1yZWFsLXRva2Vu',
  RedirectTo: 'https://site.example',
}

/** What templates are tried with when they are loaded, and what `mail preview` shows. */
export const SAMPLE_VARIABLES: MailVariables = {
  invite: link,
  confirmation: link,
  recovery: link,
  magic_link: link,
  email_change: { ...link, NewEmail: 'countess@example.com', SendingTo: 'countess@example.com' },
  reauthentication: { ...common, Token: '482913' },
  password_changed_notification: common,
  email_changed_notification: { ...common, Email: 'countess@example.com', OldEmail: 'ada@example.com' },
  phone_changed_notification: { ...common, Phone: '4915112345678', OldPhone: '493012345678' },
  identity_linked_notification: { ...common, Provider: 'github' },
  identity_unlinked_notification: { ...common, Provider: 'github' },
  mfa_factor_enrolled_notification: { ...common, FactorType: 'totp' },
  mfa_factor_unenrolled_notification: { ...common, FactorType: 'totp' },
} satisfies Record<MailKind, object>
