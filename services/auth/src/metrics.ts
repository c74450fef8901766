// All domain metrics, and no others (telemetry has request durations), by the OpenTelemetry API: a count has no effect
// while metrics are disabled. No attribute may hold a caller's text. Tests: test/telemetry.slow.test.ts.
import { metrics } from '@opentelemetry/api'
import { counter, histogram } from '@services/common/telemetry/instruments'
import type { CountedEvent, MessageChannel } from './db/tables.ts'

type Follower = (event: CountedEvent, method: string, result: string) => void

const followers = new Set<Follower>()

/** Passes counts that outlive a restart to `follow`, also while metrics are disabled, until the result is called. */
export function followCounts(follow: Follower): () => void {
  followers.add(follow)
  return () => void followers.delete(follow)
}

const announce: Follower = (...counted) => {
  for (const follow of followers) follow(...counted)
}

/**
 * Accounts created by users. `method`: password, otp (a link or code requested for an unknown address), anonymous,
 * passkey.
 */
export function countSignUp(given: string): void {
  const method = bounded(given)
  signUps({ method })
  announce('sign_up', method, 'ok')
}

/**
 * `method`: password, otp (link or code redeemed), pkce (its code exchanged), id_token, web3, passkey. `result`: `ok`
 * or error code.
 */
export function countSignIn(given: string, result: string): void {
  const method = bounded(given)
  signIns({ method, result })
  announce('sign_in', method, result)
}

/** Refusals beside those of sign-ins: wrong second factors, and tokens of no admin. The log counts them. */
export const noteRefusal = (method: string, code: string) => announce('sign_in', method, code)

/**
 * Sign-ins at a client of the OAuth server, and tokens of its own. `grant`: its grant type; a refresh is none. The
 * number of clients has no bound, so that no series names one.
 */
export const countClientGrant = (clientId: string, grant: string) => announce('client', clientId, grant)

/** Counts providers of the admin API together, whose number has no bound. */
const bounded = (method: string) => (method.startsWith('custom:') ? 'custom' : method)
export const countRefresh = (result: string) => refreshes({ result })
export const countReuseDetected = () => reuses({})
/** `result`: current and repeated tokens of a device are accepted, replaced ones end it, unknown ones are ignored. */
export const countDevice = (result: 'current' | 'repeated' | 'replaced' | 'unknown') => devices({ result })
export const countRepeat = () => repeats({})
/** Access tokens that are larger than many proxies accept in a header (core/sessions/issue-tokens.ts). */
export const countLargeToken = () => largeTokens({})
/** `result`: `sent`, `failed` (given up), `dropped` (link or code used or replaced). Without pretended ones. */
export function countMessage(channel: MessageChannel, kind: string, result: 'sent' | 'failed' | 'dropped'): void {
  messages({ channel, kind, result })
  announce('message', channel, result)
}

/** Delivery attempts; a `failed` one is retried or given up. */
export const countMessageAttempt = (channel: MessageChannel, result: 'sent' | 'failed') =>
  messageAttempts({ channel, result })
/** `limit`: name of the counter (core/limits/), `password`, or `gap-` and the kind of message. */
export const countLimitHit = (limit: string) => limitsHit({ limit })
/**
 * Attempts at sending an event. `result`: `delivered`, `retried` (failed, not for the last time), `failed` (given up).
 */
export const countWebhookAttempt = (result: 'delivered' | 'retried' | 'failed') => webhookAttempts({ result })
/** Receivers of events that the service disabled. `reason`: `gone` (answered 410), `failing` (for days). */
export const countWebhookDisabled = (reason: 'gone' | 'failing') => webhooksDisabled({ reason })
export const countCaptcha = (result: 'ok' | 'refused' | 'missing' | 'unavailable') => captchas({ result })
export const countLeakCheck = (result: 'leaked' | 'unknown' | 'unavailable') => leakChecks({ result })
/** Descriptions of providers of the admin API that were fetched, at a save or a sign-in. */
export const countDiscovery = (result: 'ok' | 'failed') => discoveries({ result })

/** Questions to the operator's own code; `result`: `ok`, `hook_rejected` or another error code. */
export function countHookCall(hook: string, result: string, seconds: number): void {
  hookCalls({ hook, result })
  hookDurations(seconds, { hook })
}

/** Mails rendered with an older or the built-in template; attributes `kind` and `locale`. */
export const templateFailures = () =>
  metrics.getMeter('auth').createCounter('auth.mail_template_failures', {
    description: 'Failures to load or render a mail template',
    unit: '{mail}',
  })

/** Exports the number of hashes that wait for a core. */
export function observeHashQueue(waiting: () => number): void {
  metrics
    .getMeter('auth')
    .createObservableGauge('auth.hash_queue.depth', { description: 'Waiting password hashes', unit: '{hash}' })
    .addCallback((result) => result.observe(waiting()))
}

/** Exports the time until the client secret of Apple expires; nothing where there is none. */
export function observeAppleSecret(secondsLeft: () => number | undefined): void {
  metrics
    .getMeter('auth')
    .createObservableGauge('auth.apple_secret.remaining', {
      description: 'Time until the client secret of Apple expires',
      unit: 's',
    })
    .addCallback((result) => {
      const left = secondsLeft()
      if (left !== undefined) result.observe(left)
    })
}

/** Exports the rows that each key encrypted, known keys also with 0; nothing before the first count. */
export function observeSealedRows(
  figures: () => readonly { key_id: string | null; rows: number; known: boolean }[] | undefined,
): void {
  metrics
    .getMeter('auth')
    .createObservableGauge('auth.sealed_rows', { description: 'Encrypted rows by key', unit: '{row}' })
    .addCallback((result) => {
      const counted = figures() ?? []
      for (const { key_id: id, known } of counted) {
        const same = counted.filter((each) => each.key_id === id && each.known === known)
        result.observe(
          same.reduce((sum, { rows }) => sum + rows, 0),
          { key_id: id ?? '', known },
        )
      }
    })
}

/** Exports the counters of alerts as 0 at start: without it their first event shows as no increase. */
export function startCounters(): void {
  reuses({}, 0)
  repeats({}, 0)
  devices({ result: 'replaced' }, 0)
  for (const channel of ['mail', 'sms'] as const) {
    for (const result of ['sent', 'failed']) messageAttempts({ channel, result }, 0)
  }
  for (const result of ['delivered', 'retried', 'failed']) webhookAttempts({ result }, 0)
  for (const reason of ['gone', 'failing']) webhooksDisabled({ reason }, 0)
  for (const result of ['ok', 'failed']) discoveries({ result }, 0)
  for (const result of ['ok', 'refused', 'missing', 'unavailable']) captchas({ result }, 0)
  for (const result of ['leaked', 'unknown', 'unavailable']) leakChecks({ result }, 0)
}

const signUps = counter('auth.sign_ups', { description: 'Accounts created', unit: '{account}' })
const signIns = counter('auth.sign_ins', { description: 'Sign-ins by method and result', unit: '{sign_in}' })
const refreshes = counter('auth.refreshes', { description: 'Session refreshes by result', unit: '{refresh}' })
const reuses = counter('auth.refresh_reuse_detected', {
  description: 'Sessions ended because a refresh token was reused',
  unit: '{session}',
})
const devices = counter('auth.trusted_devices', {
  description: 'Tokens of trusted devices at sign-ins by result',
  unit: '{token}',
})
const repeats = counter('auth.refresh_repeats', {
  description: 'Refresh tokens used again after the reuse interval by the client that has the next one',
  unit: '{refresh}',
})
const largeTokens = counter('auth.large_access_tokens', {
  description: 'Access tokens of more than 4 KiB',
  unit: '{token}',
})
const messages = counter('auth.messages', {
  description: 'Finished mails and SMS by kind and result',
  unit: '{message}',
})
const messageAttempts = counter('auth.message_attempts', {
  description: 'Delivery attempts of mails and SMS by result',
  unit: '{attempt}',
})
const webhookAttempts = counter('auth.webhook_attempts', {
  description: 'Delivery attempts of events by result',
  unit: '{attempt}',
})
const webhooksDisabled = counter('auth.webhooks_disabled', {
  description: 'Receivers of events that were disabled',
  unit: '{receiver}',
})
const limitsHit = counter('auth.limits_hit', { description: 'Requests refused by a limit', unit: '{request}' })
const captchas = counter('auth.captcha', { description: 'Captcha checks by result', unit: '{captcha}' })
const discoveries = counter('auth.provider_discoveries', {
  description: 'Fetched descriptions of custom providers by result',
  unit: '{request}',
})
const leakChecks = counter('auth.leaked_password_checks', {
  description: 'Look-ups of leaked passwords by result',
  unit: '{lookup}',
})
const hookCalls = counter('auth.hook_calls', { description: 'Calls of hooks by result', unit: '{call}' })
const hookDurations = histogram('auth.hook.duration', {
  description: 'Time until a hook answered, all attempts together',
  unit: 's',
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10],
})
