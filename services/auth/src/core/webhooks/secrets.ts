import { makeSecret } from '@services/common/webhooks/webhook-secret'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import type { Webhook } from './webhooks.store.ts'

/** Secrets of a receiver, the newest first. */
interface Secrets {
  secrets: string[]
  /** ISO 8601: the others sign until then. */
  othersUntil?: string
}

type Sealed = Pick<Webhook, 'id' | 'sealed_secrets'>
type Deps = { encryption: Encryption; now: () => Date }

/**
 * Time for which a replaced secret signs beside the new one, so that its receiver can verify every event while it is
 * changed there.
 */
const OVERLAP_MS = 86_400_000

export const sealSecrets = ({ encryption }: Pick<Deps, 'encryption'>, id: string, secrets: readonly string[]): string =>
  encryption.seal(SEALED.webhookSecrets, { id }, { secrets } satisfies { secrets: readonly string[] })

/** Returns the secrets that sign now. Throws when their key is unknown. */
export function signingSecrets({ encryption, now }: Deps, webhook: Sealed): string[] {
  const { secrets, othersUntil }: Secrets = encryption.open(SEALED.webhookSecrets, webhook)
  return othersUntil !== undefined && Date.parse(othersUntil) <= now().getTime() ? secrets.slice(0, 1) : secrets
}

/** Makes a new secret; the present one signs beside it for a day. */
export function rotateSecret(deps: Deps, webhook: Sealed): { secret: string; sealed: string } {
  const secret = makeSecret()
  const othersUntil = new Date(deps.now().getTime() + OVERLAP_MS).toISOString()
  const rotated: Secrets = { secrets: [secret, ...signingSecrets(deps, webhook).slice(0, 1)], othersUntil }
  return { secret, sealed: deps.encryption.seal(SEALED.webhookSecrets, { id: webhook.id }, rotated) }
}
