// Made-up questions, of the shape that the service asks: about a user that exists, or about a made-up one.
import type { HookPoint } from '../../../adapters/hooks/points.ts'
import { SAMPLE_VARIABLES } from '../../../adapters/mail/check-template.ts'
import type { MailKind } from '../../../adapters/mail/kinds.ts'
import { openMailTemplates } from '../../../adapters/mail/mail-templates.ts'
import { smsText } from '../../../adapters/sms/sms-text.ts'
import type { HookPayloads } from '../../../core/hooks/payloads.ts'
import { blankUser } from '../../../core/identities/new-account.ts'
import { emailData } from '../../../core/message-hooks/email-data.ts'
import { smsData } from '../../../core/message-hooks/sms-data.ts'
import { registeredBody } from '../../../core/sessions/user-answers.ts'
import type { UserBody } from '../../../core/users/user-shape.ts'
import type { User } from '../../../core/users/users.store.ts'
import { NIL_UUID } from '../../../db/uuid.ts'
import type { CommandDeps } from '../../../on-database.ts'

export interface Sample {
  /** undefined: a made-up one. */
  user: User | undefined
  /** Kind of mail that send-email is asked to send. */
  kind: MailKind
}

const CODE = '482913'

export async function samplePayload<Point extends HookPoint>(
  deps: CommandDeps,
  point: Point,
  { user: named, kind }: Sample,
): Promise<HookPayloads[Point]> {
  const user = await registeredBody(deps, deps.db, named ?? madeUpUser(deps))
  return SAMPLES[point](deps, user, kind) as Promise<HookPayloads[Point]> | HookPayloads[Point]
}

type Samples = {
  [Point in HookPoint]: (
    deps: CommandDeps,
    user: UserBody,
    kind: MailKind,
  ) => HookPayloads[Point] | Promise<HookPayloads[Point]>
}

const SAMPLES: Samples = {
  'before-user-created': (_deps, user) => ({ user }),
  'after-user-created': (_deps, user) => ({ user }),
  'customize-access-token': (deps, user) => ({
    user_id: user.id,
    claims: claimsOf(deps, user),
    authentication_method: 'password',
  }),
  'send-email': sampleMail,
  'send-sms': ({ config: { sms } }, user) => {
    const to = user.phone || PHONE
    const variables = { code: CODE, channel: 'sms', text: smsText(sms.template, CODE) } as const
    return { user: { ...user, phone: to }, sms: smsData({ kind: 'phone_confirmation', to, variables }) }
  },
  'password-verification': (_deps, user) => ({ user_id: user.id, valid: true }),
  'mfa-verification': (_deps, user) => ({ user_id: user.id, factor_id: NIL_UUID, factor_type: 'totp', valid: true }),
}

const EMAIL = 'ada@example.com'
const PHONE = '4915112345678'

function madeUpUser({ config, now }: CommandDeps): User {
  const at = now()
  return {
    ...blankUser(NIL_UUID, config.jwt.audience, config.jwt.defaultRole, at),
    email: EMAIL,
    phone: PHONE,
    email_confirmed_at: at,
    phone_confirmed_at: at,
    confirmed_at: at,
    app_metadata: { provider: 'email', providers: ['email', 'phone'] },
    user_metadata: { name: 'Ada Lovelace' },
  }
}

async function sampleMail(deps: CommandDeps, user: UserBody, kind: MailKind) {
  const { mail, server } = deps.config
  const to = user.email || EMAIL
  const variables = { ...SAMPLE_VARIABLES[kind], Email: to, Data: user.user_metadata }
  const rendered = await openMailTemplates(deps).render(kind, mail.defaultLocale, variables)
  const question = { kind, mails: [{ to, variables, ...rendered }], locale: mail.defaultLocale }
  const voidToken = () => ({ code: CODE, linkToken: 'void' })
  const email_data = emailData({ ...question, externalUrl: server.externalUrl, voidToken })
  return { user: { ...user, email: to }, email_data }
}

function claimsOf({ config, now }: CommandDeps, user: UserBody) {
  const iat = Math.floor(now().getTime() / 1000)
  const { id: sub, aud, role, email, phone, app_metadata, user_metadata, is_anonymous } = user
  return {
    ...{
      iss: config.jwt.issuer,
      sub,
      aud,
      iat,
      exp: iat + config.jwt.lifetimeSeconds,
      email,
      phone,
      app_metadata,
      user_metadata,
      role,
    },
    ...{ aal: 'aal1', amr: [{ method: 'password', timestamp: iat }], session_id: NIL_UUID, is_anonymous },
  }
}
