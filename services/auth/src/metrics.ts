// Every domain metric by name, and nowhere else; request durations come from the telemetry plugin. Only the API of
// OpenTelemetry: while metrics are off a count is one call that does nothing. No attribute may hold what a caller wrote.
import { metrics } from '@opentelemetry/api'
import { counter } from '@services/common/instruments'
import type { MessageChannel } from './db/tables.ts'

/** New accounts of users' own making. `method`: password, otp (a link or code asked for by an unknown address), anonymous. */
export const countSignUp = (method: string) => signUps({ method })
/**
 * Sign-ins tried. `method`: password, otp (a link or code redeemed), pkce (the code that a link gave exchanged). `result`: `ok`
 * or the error's code.
 */
export const countSignIn = (method: string, result: string) => signIns({ method, result })
export const countRefresh = (result: string) => refreshes({ result })
export const countReuseDetected = () => reuses({})
/**
 * Messages that are over. `kind`: the mail's or SMS's; `result`: `sent`, `failed` (given up), `dropped` (its link or code
 * was used or replaced before it left). Messages that are only pretended are none.
 */
export const countMessage = (channel: MessageChannel, kind: string, result: 'sent' | 'failed' | 'dropped') =>
  messages({ channel, kind, result })
/** One try to hand a message over; `failed` will be tried again, or is given up. */
export const countMessageTry = (channel: MessageChannel, result: 'sent' | 'failed') => messageTries({ channel, result })
/** `limit`: its name among the counters (limits/), `password`, or `gap-` and what is spaced apart. */
export const countLimitHit = (limit: string) => limitsHit({ limit })
export const countCaptcha = (result: 'ok' | 'refused' | 'missing' | 'unavailable') => captchas({ result })
/** Look-ups of leaked passwords. */
export const countLeakCheck = (result: 'leaked' | 'unknown' | 'unavailable') => leakChecks({ result })

/** Mails that went out with an older or the built-in template; attributes `kind` and `locale`. */
export const templateFailures = () =>
  metrics.getMeter('auth').createCounter('auth.mail_template_failures', {
    description: 'Mail templates that could not be loaded or rendered',
    unit: '{mail}',
  })

/** `waiting` is read at every export: hashes that wait for a core. */
export function observeHashQueue(waiting: () => number): void {
  metrics
    .getMeter('auth')
    .createObservableGauge('auth.hash_queue.depth', { description: 'Password hashes waiting', unit: '{hash}' })
    .addCallback((result) => result.observe(waiting()))
}

/**
 * Shows from the start as 0 what alerts look for: a series that begins with its first event has not risen, and the first
 * reused token would be missed.
 */
export function startCounters(): void {
  reuses({}, 0)
  for (const channel of ['mail', 'sms'] as const) {
    for (const result of ['sent', 'failed']) messageTries({ channel, result }, 0)
  }
  for (const result of ['ok', 'refused', 'missing', 'unavailable']) captchas({ result }, 0)
  for (const result of ['leaked', 'unknown', 'unavailable']) leakChecks({ result }, 0)
}

const signUps = counter('auth.sign_ups', { description: 'Accounts created', unit: '{account}' })
const signIns = counter('auth.sign_ins', { description: 'Sign-ins by method and result', unit: '{sign_in}' })
const refreshes = counter('auth.refreshes', { description: 'Refreshes of sessions by result', unit: '{refresh}' })
const reuses = counter('auth.refresh_reuse_detected', {
  description: 'Sessions ended because a refresh token was reused',
  unit: '{session}',
})
const messages = counter('auth.messages', {
  description: 'Mails and SMS that are over, by kind and result',
  unit: '{message}',
})
const messageTries = counter('auth.message_tries', {
  description: 'Tries to hand over a mail or SMS, by result',
  unit: '{try}',
})
const limitsHit = counter('auth.limits_hit', { description: 'Requests refused by a limit', unit: '{request}' })
const captchas = counter('auth.captcha', { description: 'Captchas checked by result', unit: '{captcha}' })
const leakChecks = counter('auth.leaked_password_checks', {
  description: 'Look-ups of leaked passwords by result',
  unit: '{lookup}',
})
