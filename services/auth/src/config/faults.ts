// Settings that a start accepts and that cannot do what they are for. `config check` fails for them, a start logs them.
import type { HookPoint } from '../adapters/hooks/points.ts'
import { type MailKind, settingName } from '../adapters/mail/kinds.ts'
import { unknownInSubject } from '../adapters/mail/unknown-variables.ts'
import type { Config } from '../config.ts'
import { expiryOfAppleSecret, WARN_BEFORE_SECONDS } from './apple-secret.ts'
import { settingNamesOf } from './external-providers.ts'
import { prefixOf } from './hooks/hook-variables.ts'
import { isOwnAddress } from './server.ts'

type Subject = Pick<Config, 'egress' | 'hooks' | 'mail' | 'providers' | 'ownProviders' | 'server' | 'webhooks'>

/** Lists the faults, a sentence each, by name and never by value. */
export function settingFaults(config: Subject, now: Date): string[] {
  return [
    ...foreignCallbacks(config),
    ...subjectFaults(config),
    ...appleFaults(config, now),
    ...webhookFaults(config),
    ...ownAddressFaults(config),
  ]
}

/** Lists settings that soon become faults. */
export function settingsToRenew(config: Subject, now: Date): string[] {
  const secondsLeft = appleSecondsLeft(config, now)
  if (secondsLeft === undefined || secondsLeft <= 0 || secondsLeft > WARN_BEFORE_SECONDS) return []
  const days = Math.floor(secondsLeft / 86_400)
  return [`AUTH_EXTERNAL_APPLE_SECRET expires in ${days} day(s): sign a new one`]
}

/** Lists callbacks at an address that is not this service's, where a sign-in would end. */
function foreignCallbacks(config: Subject): string[] {
  const { externalUrl, externalHosts } = config.server
  const own = new URL(`${externalUrl}/callback`)
  const permitted = [own.host, ...externalHosts].map((host) => Object.assign(new URL(own), { host }).href)
  const isForeign = (redirectUri: string) => !permitted.includes(new URL(redirectUri).href)
  return settingNamesOf(
    config,
    'REDIRECT_URI',
    ({ enabled, redirectUri }) => enabled && redirectUri && isForeign(redirectUri),
  ).map((name) => `${name} must be AUTH_API_EXTERNAL_URL/callback`)
}

const subjectFaults = ({ mail }: Subject): string[] =>
  Object.entries(mail.subjects).flatMap(([kind, subject]) =>
    subject
      ? unknownInSubject(subject, kind as MailKind).map((fault) => `AUTH_MAILER_SUBJECTS_${settingName(kind)} ${fault}`)
      : [],
  )

/** Plain http is refused outside the permitted networks, so no event would arrive. */
function webhookFaults({ egress, webhooks }: Subject): string[] {
  const { receiver } = webhooks
  const isRefused = receiver?.url.startsWith('http:') && egress.allowCidrs.length === 0
  return isRefused ? ['AUTH_WEBHOOK_URL must be https, or its network in AUTH_EGRESS_ALLOW_CIDRS'] : []
}

/** An answer of this service is none of a receiver or of a hook. */
function ownAddressFaults({ hooks, server, webhooks }: Subject): string[] {
  const points = Object.entries(hooks).map(([point, { target }]) => [
    `AUTH_${prefixOf(point as HookPoint)}URI`,
    target.kind === 'http' ? target.url : undefined,
  ])
  return [['AUTH_WEBHOOK_URL', webhooks.receiver?.url], ...points].flatMap(([name, url]) =>
    url && isOwnAddress(server, url) ? [`${name} must not be an address of this service`] : [],
  )
}

function appleFaults(config: Subject, now: Date): string[] {
  const { enabled, secret, url } = config.providers.apple
  // A server in Apple's place takes any secret.
  if (!enabled || !secret || url) return []
  const secondsLeft = appleSecondsLeft(config, now)
  if (secondsLeft === undefined)
    return ['AUTH_EXTERNAL_APPLE_SECRET is no JWT with an expiry: sign one with the key that Apple made']
  return secondsLeft > 0 ? [] : ['AUTH_EXTERNAL_APPLE_SECRET has expired: sign a new one']
}

/** Seconds until the client secret of Apple expires; undefined where there is none. */
export function appleSecondsLeft({ providers }: Pick<Subject, 'providers'>, now: Date): number | undefined {
  const { enabled, secret } = providers.apple
  const expiry = enabled ? expiryOfAppleSecret(secret) : undefined
  return expiry && (expiry.getTime() - now.getTime()) / 1000
}
