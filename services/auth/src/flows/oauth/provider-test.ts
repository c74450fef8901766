// A test of a provider by an administrator: a whole sign-in whose account is shown, and that creates neither user nor
// session. It is an attempt like any other (sign-in.ts), whose row keeps the outcome until housekeeping deletes it.
import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { ExternalEmail } from '../../adapters/oauth/provider.ts'
import type { Config } from '../../config.ts'
import { type Actor, type AuditLog, audit } from '../../core/audit/audit.ts'
import { identityData } from '../../core/identities/external-account.ts'
import { SEALED } from '../../core/keys/sealed-columns.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { pageWords } from '../../http/pages/page-words.ts'
import type { ShownPage } from '../../http/pages/show-page.ts'
import { type FlowState, findUsedTest, insertFlowState, saveOutcome } from './flow-states.store.ts'
import { addressToBegin, openSecrets, type SignInOrder } from './sign-in.ts'

/** Data of the identity that a sign-in would store, and all addresses of the account; or the failure. */
export type TestOutcome =
  | { identity: Metadata; emails: ExternalEmail[] }
  | { error: { code: string; message: string; reason?: string } }

/** Makes an address that begins the test in the first browser that opens it. Throws for a disabled provider. */
export async function beginTest(deps: Deps, log: AuditLog, actor: Actor, typed: string) {
  const { config, db } = deps
  const { name, settings } = await deps.providers.find(typed)
  const order: SignInOrder = {
    ...{ provider: name, scopes: '', parameters: {}, redirectTo: config.siteUrl, audience: config.jwt.audience },
    ...{ pkce: undefined, inviteTokenHash: null, linking: null, isTest: true },
  }
  const id = deps.newId()
  const expiresAt = new Date(deps.now().getTime() + config.external.stateLifetimeSeconds * 1000)
  await audit(deps, db, log, { action: 'provider_tested', actor, traits: { provider: name } })
  return { id, url: addressToBegin(deps, settings, order, id), expiresAt }
}

/** Redeems the callback of a test and keeps the outcome, whatever it is. `requireAttempt` throws its refusal. */
export async function finishTest(
  deps: Deps,
  id: string,
  requireAttempt: () => FlowState,
  callback: Record<string, string>,
): Promise<void> {
  const outcome = await redeem(deps, requireAttempt, callback).catch((error) => failureOf(deps, error))
  await saveOutcome(deps.db, id, deps.encryption.seal(SEALED.attempt, { id }, { outcome }))
}

/** Keeps the failure of a test whose browser could not be sent to the provider. */
export async function failBegunTest(deps: Deps, id: string, order: SignInOrder, error: unknown): Promise<void> {
  const sealed = deps.encryption.seal(SEALED.attempt, { id }, { outcome: failureOf(deps, error) })
  const now = deps.now()
  const expiresAt = new Date(now.getTime() + deps.config.external.stateLifetimeSeconds * 1000)
  await insertFlowState(deps.db, { ...order, id, sealed }, now, expiresAt, now)
}

async function redeem(
  deps: Deps,
  requireAttempt: () => FlowState,
  callback: Record<string, string>,
): Promise<TestOutcome> {
  const attempt = requireAttempt()
  const { error, error_description: reason } = callback
  if (error) {
    return {
      error: {
        code: 'access_denied',
        message: `The provider answered ${shown(error)}`,
        ...(reason && { reason: shown(reason) }),
      },
    }
  }
  const provider = await deps.providers.find(attempt.provider)
  const { account } = await provider.client.finish(callback, openSecrets(deps, attempt), deps.now())
  return { identity: identityData(account, primaryEmail(account)), emails: account.emails }
}

/** Longest text of a provider that is kept. */
const shown = (text: string) => text.slice(0, 500).toWellFormed()

/** The cause is for the administrator, who alone reads it. */
function failureOf({ log }: Pick<Deps, 'log'>, error: unknown): TestOutcome {
  if (!(error instanceof ApiError)) log.error({ err: error }, 'test of a provider failed')
  const { code, message, cause } = error instanceof ApiError ? error : apiError('unexpected_failure', { cause: error })
  const reason = cause instanceof Error && cause.message !== message ? shown(cause.message) : undefined
  return { error: { code, message, ...(reason && { reason }) } }
}

/** Reads the outcome of a test; undefined until its browser has come back. */
export async function readTest(deps: Pick<Deps, 'db' | 'encryption' | 'log'>, id: string) {
  const found = await findUsedTest(deps.db, id)
  if (!found) return undefined
  const outcome = openOutcome(deps, found)
  return outcome && { provider: found.provider, ...outcome }
}

/** Opens the outcome. That no key opens it is an outcome too: another process may have sealed it. */
function openOutcome(deps: Pick<Deps, 'encryption' | 'log'>, sealed: Pick<FlowState, 'id' | 'sealed'>) {
  try {
    return deps.encryption.open<{ outcome?: TestOutcome }, 'sealed', 'id'>(SEALED.attempt, sealed).outcome
  } catch (cause) {
    return failureOf(deps, apiError('unexpected_failure', { message: 'The outcome cannot be decrypted', cause }))
  }
}

export function testPage(config: Pick<Config, 'pages' | 'siteUrl'>, acceptLanguage: string | undefined): ShownPage {
  const { language, words } = pageWords(config, acceptLanguage)
  const { heading, text } = words.providerTested
  return { language, title: heading, body: html`<p>${text}</p>\n`, hidesAddress: true }
}
