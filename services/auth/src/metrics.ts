// Every domain metric by name, and nowhere else; request durations come from the telemetry plugin. Only the API of
// OpenTelemetry: while metrics are off a count is one call that does nothing. No attribute may hold what a caller wrote.
import { type Attributes, metrics } from '@opentelemetry/api'
import { ApiError } from '@services/common/errors'

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
export const countMessage = (channel: 'mail' | 'sms', kind: string, result: 'sent' | 'failed' | 'dropped') =>
  messages({ channel, kind, result })
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

/** Runs `work` and counts how it ended: `ok` or the code of its failure, of which there are finitely many. */
export async function counted<Result>(count: (result: string) => void, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await work()
    count('ok')
    return result
  } catch (error) {
    count(error instanceof ApiError ? error.code : 'unexpected_failure')
    throw error
  }
}

const signUps = counter('auth.sign_ups', 'Accounts created', '{account}')
const signIns = counter('auth.sign_ins', 'Sign-ins by method and result', '{sign_in}')
const refreshes = counter('auth.refreshes', 'Refreshes of sessions by result', '{refresh}')
const reuses = counter('auth.refresh_reuse_detected', 'Sessions ended because a refresh token was reused', '{session}')
const messages = counter('auth.messages', 'Mails and SMS that are over, by kind and result', '{message}')
const limitsHit = counter('auth.limits_hit', 'Requests refused by a limit', '{request}')
const captchas = counter('auth.captcha', 'Captchas checked by result', '{captcha}')
const leakChecks = counter('auth.leaked_password_checks', 'Look-ups of leaked passwords by result', '{lookup}')

/** Made with the first count: an instrument made before the SDK has started counts into the void for good. */
function counter(name: string, description: string, unit: string): (attributes: Attributes) => void {
  let made: ReturnType<ReturnType<typeof metrics.getMeter>['createCounter']> | undefined
  return (attributes) => {
    made ??= metrics.getMeter('auth').createCounter(name, { description, unit })
    made.add(1, attributes)
  }
}
