import { actionLink } from './action-link.ts'
import { type LinkVariables, type MailKind, type MailVariables, neededFields } from './kinds.ts'
import { compileTemplate, renderTemplate, type Template } from './template/template.ts'
import { TemplateError } from './template/template-error.ts'

/** Compiles and tests a body. Throws a TemplateError, also if it has neither link nor code: a site's catch-all page. */
export function checkBody(source: string, kind: MailKind): Template {
  const template = compileTemplate(source, 'html')
  const needed = neededFields(kind)
  if (needed.length > 0 && !needed.some((name) => template.fields.has(name))) {
    throw new TemplateError(`expected one of ${needed.map((name) => `{{ .${name} }}`).join(', ')} somewhere`)
  }
  renderTemplate(template, { ...SAMPLE_VARIABLES[kind] })
  return template
}

export function checkSubject(source: string, kind: MailKind): Template {
  const template = compileTemplate(source, 'text')
  renderTemplate(template, { ...SAMPLE_VARIABLES[kind] })
  return template
}

const common = {
  SiteURL: 'https://site.example',
  Email: 'ada@example.com',
  Data: { name: 'Ada Lovelace', locale: 'en' },
}

const TOKEN = 'Zm9yLXByZXZpZXctb25seS1ub3QtYS1yZWFsLXRva2Vu'
const RedirectTo = common.SiteURL

const linkOf = (type: string): LinkVariables => ({
  ...common,
  ConfirmationURL: actionLink('https://auth.example', '/verify', { token: TOKEN, type, redirectTo: RedirectTo }),
  Token: '482913',
  TokenHash: TOKEN,
  RedirectTo,
})

/** Variables that check templates at load and fill `mail preview`. */
export const SAMPLE_VARIABLES: MailVariables = {
  invite: linkOf('invite'),
  confirmation: { ...linkOf('signup'), Password: 'chosen', Provider: '' },
  recovery: linkOf('recovery'),
  magic_link: linkOf('magiclink'),
  email_change: { ...linkOf('email_change'), NewEmail: 'countess@example.com', SendingTo: 'countess@example.com' },
  reauthentication: { ...common, Token: '482913' },
  account_exists: common,
  password_changed_notification: common,
  email_changed_notification: { ...common, Email: 'countess@example.com', OldEmail: 'ada@example.com' },
  phone_changed_notification: { ...common, Phone: '4915112345678', OldPhone: '493012345678' },
  identity_linked_notification: { ...common, Provider: 'github' },
  identity_unlinked_notification: { ...common, Provider: 'github' },
  mfa_factor_enrolled_notification: { ...common, FactorType: 'totp' },
  mfa_factor_unenrolled_notification: { ...common, FactorType: 'totp' },
  mfa_trusted_device_added_notification: { ...common, Device: 'My laptop' },
  mfa_recovery_code_used_notification: { ...common, Remaining: '9' },
  passkey_added_notification: { ...common, Passkey: 'Google Password Manager' },
  passkey_removed_notification: { ...common, Passkey: 'Google Password Manager' },
  passkey_copied_notification: { ...common, Passkey: 'YubiKey 5 Series' },
  account_deleted_notification: { ...common, UserID: '00000000-0000-7000-8000-000000000000' },
}
