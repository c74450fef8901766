// Acts of administrators on receivers of events. Each is checked, audited and known to this process at once.
import type { openEgress } from '@services/common/egress/open-egress'
import { BATCH, runBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Queue } from '@services/common/queue/queue'
import { isSecret, makeSecret } from '@services/common/webhooks/webhook-secret'
import type { Kysely, Transaction } from 'kysely'
import { isOwnAddress } from '../../../config/server.ts'
import type { Config } from '../../../config.ts'
import type { AuditAction } from '../../../core/audit/actions.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../../core/audit/audit.ts'
import type { Encryption } from '../../../core/keys/encryption.ts'
import {
  bringForward,
  type Delivery,
  type DeliveryKey,
  restartDelivery,
} from '../../../core/webhooks/deliveries.store.ts'
import { parseWanted, TEST_EVENT } from '../../../core/webhooks/events.ts'
import type { EventRecorder } from '../../../core/webhooks/record-events.ts'
import { rotateSecret, sealSecrets } from '../../../core/webhooks/secrets.ts'
import { SETTINGS_RECEIVER_ID } from '../../../core/webhooks/settings-receiver.ts'
import {
  deleteWebhook,
  insertWebhook,
  lockWebhook,
  NO_FAILURES,
  RECEIVERS,
  updateWebhook,
  type Webhook,
} from '../../../core/webhooks/webhooks.store.ts'
import { giveUpAt, storeTest } from '../../../db/events.store.ts'
import type { DB } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'

/** Each event is sent to all of them, and each has slots of its own. */
const MAX_WEBHOOKS = 20
const MAX_DESCRIPTION_LENGTH = 500
const URL_RULE = 'url must be an https address of a public server, or lead to AUTH_EGRESS_ALLOW_CIDRS'

export interface WebhookDeps extends AuditDeps {
  config: Pick<Config, 'auditInDatabase' | 'server'>
  db: Kysely<DB>
  newId: () => string
  encryption: Encryption
  events: EventRecorder
  queue: Pick<Queue, 'announce'>
  /** Client of receivers. */
  receivers: Pick<ReturnType<typeof openEgress>, 'check'>
}

export interface WebhookInput {
  url?: string | undefined
  events?: string[] | undefined
  enabled?: boolean | undefined
  description?: string | undefined
  secret?: string | undefined
}

/** Throws validation_failed for a member that is not valid, and for the address of a server that is not public. */
export async function createWebhook(deps: WebhookDeps, log: AuditLog, actor: Actor, input: WebhookInput) {
  const { url, secret = makeSecret() } = input
  if (url === undefined) throw invalid('url is required')
  const fields = await checked(deps, { ...input, secret })
  const id = deps.newId()
  const now = deps.now()
  const webhook = await act(deps, log, actor, 'webhook_created', id, async (trx) => {
    const row = {
      ...{ id, url, events: fields.events ?? ['*'], description: fields.description ?? '' },
      ...{ enabled: fields.enabled ?? true, sealed_secrets: sealSecrets(deps, id, [secret]) },
      ...{ created_at: now, updated_at: now },
    }
    const added = await insertWebhook(trx, row, { most: MAX_WEBHOOKS })
    if (!added) throw invalid(`There can be at most ${MAX_WEBHOOKS} webhooks`)
    return added
  })
  return { webhook, secret }
}

/** Enabling a receiver, or another address, forgets its failures, so that what waits is delivered at once. */
export async function changeWebhook(
  deps: WebhookDeps,
  log: AuditLog,
  actor: Actor,
  id: string,
  input: WebhookInput,
): Promise<Webhook> {
  const changes = await checked(deps, input)
  if (id === SETTINGS_RECEIVER_ID && Object.keys(changes).some((name) => name !== 'enabled')) throw isOfSettings()
  const { webhook, isFresh, broughtForward } = await act(deps, log, actor, 'webhook_updated', id, async (trx) => {
    const before = await requireWebhook(trx, id)
    const isFresh = changes.enabled || (changes.url !== undefined && changes.url !== before.url)
    const fresh = { ...(isFresh && NO_FAILURES), ...(changes.enabled && { disabled_reason: null }) }
    const webhook = await updateWebhook(trx, id, { ...changes, ...fresh, updated_at: deps.now() })
    const broughtForward = isFresh ? await bringForward(trx, id, deps.now()) : 0
    return { webhook: webhook as Webhook, isFresh, broughtForward }
  })
  if (broughtForward === BATCH) await runBatches((limit) => bringForward(deps.db, id, deps.now(), limit))
  if (isFresh) deps.events.wake()
  return webhook
}

/** Deletes the receiver, and what waits for it. */
export async function removeWebhook(deps: WebhookDeps, log: AuditLog, actor: Actor, id: string): Promise<void> {
  await act(deps, log, actor, 'webhook_deleted', id, async (trx) => {
    const webhook = await requireWebhook(trx, id)
    if (id === SETTINGS_RECEIVER_ID && !webhook.unset_at) throw isOfSettings()
    await deleteWebhook(trx, id)
  })
}

/** Waiting events are signed by the new secret, and for a day by the present one too. */
export async function renewSecret(deps: WebhookDeps, log: AuditLog, actor: Actor, id: string) {
  if (id === SETTINGS_RECEIVER_ID) throw isOfSettings()
  return act(deps, log, actor, 'webhook_secret_rotated', id, async (trx) => {
    const { secret, sealed } = rotateSecret(deps, await requireWebhook(trx, id))
    const webhook = await updateWebhook(trx, id, { sealed_secrets: sealed, updated_at: deps.now() })
    return { webhook: webhook as Webhook, secret }
  })
}

/** Queues an event without a user, which the receiver gets whatever it wants. */
export async function testWebhook(deps: WebhookDeps, log: AuditLog, actor: Actor, id: string): Promise<Delivery> {
  const delivery = await act(deps, log, actor, 'webhook_tested', id, async (trx) => {
    await requireWebhook(trx, id)
    const event = { id: deps.newRowId(), userId: null, event: TEST_EVENT, data: '{}' }
    return storeTest(trx, id, event, deps.now())
  })
  return delivery as Delivery
}

/** Sends an event again, now and with retries for three days. */
export async function retryDelivery(
  deps: WebhookDeps,
  log: AuditLog,
  actor: Actor,
  key: DeliveryKey,
): Promise<Delivery> {
  const traits = { event_id: key.id }
  return act(
    deps,
    log,
    actor,
    'webhook_delivery_retried',
    key.webhook_id,
    async (trx) => {
      await requireWebhook(trx, key.webhook_id)
      const now = deps.now()
      const restarted = await restartDelivery(trx, key, { now, giveUpAt: giveUpAt(now) })
      if (!restarted) throw apiError('not_found', { message: 'There is no such delivery' })
      return restarted
    },
    traits,
  )
}

/** Runs an act in a transaction, with its audit entry. */
async function act<Result>(
  deps: WebhookDeps,
  log: AuditLog,
  actor: Actor,
  action: AuditAction,
  id: string,
  work: (trx: Transaction<DB>) => Promise<Result>,
  more: { event_id?: string } = {},
): Promise<Result> {
  const result = await deps.db.transaction().execute(async (trx) => {
    const done = await work(trx)
    await audit(deps, trx, log, { action, actor, traits: { webhook_id: id, ...more } })
    await deps.queue.announce(trx, RECEIVERS)
    return done
  })
  await deps.events.refresh()
  deps.events.wake()
  return result
}

async function checked(deps: WebhookDeps, input: WebhookInput): Promise<Omit<WebhookInput, 'secret'>> {
  const { url, events, enabled, description, secret } = input
  if (url !== undefined) await requirePublic(deps, url)
  if (secret !== undefined && !isSecret(secret))
    throw invalid('secret must be whsec_ followed by base64 of 24 to 64 bytes')
  if (description !== undefined && description.length > MAX_DESCRIPTION_LENGTH) {
    throw invalid(`description must have at most ${MAX_DESCRIPTION_LENGTH} characters`)
  }
  return {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events: wanted(events) }),
    ...(enabled !== undefined && { enabled }),
    ...(description !== undefined && { description }),
  }
}

function wanted(events: string[]): string[] {
  try {
    return parseWanted(events)
  } catch (cause) {
    throw apiError('validation_failed', { message: `events ${(cause as Error).message}`, cause })
  }
}

/** Each connection is checked again. */
async function requirePublic({ config, receivers }: WebhookDeps, url: string): Promise<void> {
  if (URL.canParse(url) && isOwnAddress(config.server, url)) throw invalid('url must not be an address of this service')
  try {
    await receivers.check(url)
  } catch (cause) {
    throw apiError('validation_failed', { message: URL_RULE, cause })
  }
}

async function requireWebhook(trx: Transaction<DB>, id: string): Promise<Webhook> {
  const webhook = await lockWebhook(trx, id)
  if (!webhook) throw noSuchWebhook()
  return webhook
}

export const noSuchWebhook = () => apiError('not_found', { message: 'There is no such webhook' })

const isOfSettings = () =>
  apiError('validation_failed', { status: 422, message: 'AUTH_WEBHOOK_URL sets this webhook: change the settings' })

const invalid = (message: string) => apiError('validation_failed', { message })
