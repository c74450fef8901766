import { describe, expect, test } from 'vitest'
import { SAMPLE_VARIABLES } from '../../adapters/mail/check-template.ts'
import { ALL_KINDS } from '../../adapters/mail/kinds.ts'
import { actionTypeOf, emailData, emailOfUser, type RenderedMail } from './email-data.ts'

const MEMBERS = [
  ...['token', 'token_hash', 'redirect_to', 'email_action_type', 'site_url', 'token_new', 'token_hash_new'],
  ...[
    'old_email',
    'old_phone',
    'provider',
    'factor_type',
    'remaining',
    'locale',
    'recipient',
    'subject',
    'text',
    'html',
  ],
  ...['recipient_new', 'subject_new', 'text_new', 'html_new'],
]

const voidToken = () => ({ code: 'void code', linkToken: 'void token' })
const common = { locale: 'en', externalUrl: 'https://auth.example/auth/v1/', voidToken }
const rendered = (to: string, variables: RenderedMail['variables']): RenderedMail => ({
  ...{ to, variables, subject: `subject to ${to}`, text: `text to ${to}`, html: `html to ${to}` },
})

test.for(ALL_KINDS)('%s has every member as a text', (kind) => {
  const mails = [rendered('to@example.com', SAMPLE_VARIABLES[kind])]
  const data = emailData({ ...common, kind, mails })
  expect(Object.keys(data).toSorted()).toEqual(MEMBERS.toSorted())
  expect(Object.values(data).every((value) => typeof value === 'string')).toBe(true)
  expect(data).toMatchObject({ recipient: 'to@example.com', site_url: 'https://auth.example/auth/v1' })
})

test('the reference names confirmations signup and links magiclink', () => {
  expect(ALL_KINDS.map(actionTypeOf)).toEqual(
    ALL_KINDS.map((kind) => ({ confirmation: 'signup', magic_link: 'magiclink' })[kind as string] ?? kind),
  )
})

test.for([
  ['email_changed_notification', { old_email: 'ada@example.com' }],
  ['phone_changed_notification', { old_phone: '493012345678' }],
  ['identity_unlinked_notification', { provider: 'github' }],
  ['mfa_factor_enrolled_notification', { factor_type: 'totp' }],
  ['mfa_recovery_code_used_notification', { remaining: '9' }],
] as const)('%s tells what it is about', ([kind, about]) => {
  const mails = [rendered('to@example.com', SAMPLE_VARIABLES[kind])]
  expect(emailData({ ...common, kind, mails })).toMatchObject(about)
})

describe('a change of address', () => {
  const mailTo = (to: 'old' | 'new') =>
    rendered(to, {
      ...SAMPLE_VARIABLES.email_change,
      NewEmail: 'new',
      SendingTo: to,
      Token: `code ${to}`,
      TokenHash: `hash ${to}`,
    })
  const dataOf = (...mails: RenderedMail[]) => emailData({ ...common, kind: 'email_change', mails })

  test.for([
    [mailTo('new'), mailTo('old')],
    [mailTo('old'), mailTo('new')],
  ])('of both crosses the hashes', (mails) => {
    expect(dataOf(...mails)).toMatchObject({
      ...{ token: 'code old', token_hash: 'hash new', token_new: 'code new', token_hash_new: 'hash old' },
      ...{ recipient: 'old', text: 'text to old', recipient_new: 'new', text_new: 'text to new' },
    })
  })

  test('to the new address alone has nothing for a second one', () => {
    expect(dataOf(mailTo('new'))).toMatchObject({
      ...{ token: 'code new', token_hash: 'hash new', token_new: '', token_hash_new: '' },
      ...{ recipient: 'new', recipient_new: '' },
    })
  })

  test('to the current address alone never has its code or link where senders take those of the new one', () => {
    expect(dataOf(mailTo('old'))).toMatchObject({
      ...{ token: 'code old', token_hash: 'void token', token_new: 'void code', token_hash_new: 'hash old' },
      ...{ recipient: 'old', recipient_new: '' },
    })
  })
})

test.for([
  ['confirmation', 'other@example.com', 'other@example.com'],
  ['email_change', 'countess@example.com', 'ada@example.com'],
  ['email_changed_notification', 'ada@example.com', 'countess@example.com'],
] as const)("the user's address in %s is the one that senders expect", ([kind, to, email]) => {
  expect(emailOfUser(kind, { to, variables: SAMPLE_VARIABLES[kind] })).toBe(email)
})
