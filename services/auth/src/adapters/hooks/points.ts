// Points at which the operator's own code is asked (contract/auth-hooks.md 2), and the way to it: HTTP or a function of
// PostgreSQL. Payloads and answers, log line and metric: ../../core/hooks/.

/** Points by the name in their payload, with the part of their variables' names. */
export const HOOK_POINTS = {
  'before-user-created': 'BEFORE_USER_CREATED',
  'after-user-created': 'AFTER_USER_CREATED',
  'customize-access-token': 'CUSTOM_ACCESS_TOKEN',
  'send-email': 'SEND_EMAIL',
  'send-sms': 'SEND_SMS',
  'password-verification': 'PASSWORD_VERIFICATION_ATTEMPT',
  'mfa-verification': 'MFA_VERIFICATION_ATTEMPT',
} as const

export type HookPoint = keyof typeof HOOK_POINTS

export const HOOK_NAMES = Object.keys(HOOK_POINTS) as HookPoint[]

/** A question on its way. The id is the same over all attempts, so that a receiver recognizes a repetition. */
export interface Question {
  id: string
  /** JSON. */
  body: string
}
