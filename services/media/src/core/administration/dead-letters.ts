// Dead letters: jobs whose attempts are used up, and deliveries of webhooks that were given up. Both can be tried
// again. A failed clip is none: its bytes are deleted, and its owner finds it, with the reason, among the own clips.
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { type Actor, recordAct } from '../audit/audit.ts'
import { invalidField } from '../clips/clip-fields.ts'
import { takeClaim } from '../variants/take-claim.ts'
import type { Variant } from '../variants/variant.ts'
import { replayDelivery } from '../webhooks/deliver-webhook.ts'
import { WEBHOOK_QUEUE } from '../webhooks/webhook-queue.ts'
import {
  deleteFailedDelivery,
  type FailedDelivery,
  findFailedDelivery,
  findSourcesOfJobs,
  findTokenNames,
  listFailedDeliveries,
} from './dead-letters.store.ts'

type DeadDeps = Pick<Deps, 'db' | 'queue' | 'now' | 'newId'>

export interface DeadLetter {
  id: string
  kind: 'job' | 'delivery'
  /** Queue of a job, or event of a delivery. */
  name: string
  /** Time at which a job was given up, or of the event. */
  at: Date
  attempts: number
  /** Null for a job that no worker survived. */
  reason: string | null
  token: { id: string; name: string | null } | null
  clip_id: string | null
  /** Receiver of a delivery: its address without the path, which may be a secret. */
  receiver: string | null
}

type Found = Omit<DeadLetter, 'at' | 'token'> & { micros: string; tokenId: string | null }

/** Lists dead letters, newest first. Throws invalid_field for a bad cursor. */
export async function listDeadLetters(
  { db, queue }: Pick<Deps, 'db' | 'queue'>,
  { cursor, limit }: { cursor: string | undefined; limit: number },
): Promise<{ items: DeadLetter[]; nextCursor: string | null }> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  const [jobs, deliveries] = await Promise.all([
    queue.listDead({ after, limit: limit + 1 }),
    listFailedDeliveries(db, { after, limit: limit + 1 }),
  ])
  const sourceIds = jobs.flatMap(({ data }) => (isUuid(String(data.sourceId)) ? [String(data.sourceId)] : []))
  const sources = await findSourcesOfJobs(db, sourceIds)
  const found: Found[] = [
    ...jobs.map(({ id, queue: name, at: micros, attempts, reason, tenant, data }) => ({
      ...{ id, kind: 'job' as const, name, micros, attempts, reason, receiver: null },
      tokenId: tenant !== null && isUuid(tenant) ? tenant : null,
      clip_id: sources.get(String(data.sourceId))?.clipId ?? null,
    })),
    ...deliveries.map(ofDelivery),
  ].sort(newestFirst)
  const page = found.slice(0, limit)
  const names = await findTokenNames(
    db,
    page.flatMap(({ tokenId }) => tokenId ?? []),
  )
  const last = page.at(-1)
  return {
    items: page.map(({ micros, tokenId, ...letter }) => ({
      ...letter,
      at: new Date(Math.floor(Number(micros) / 1000)),
      token: tokenId === null ? null : { id: tokenId, name: names.get(tokenId) ?? null },
    })),
    nextCursor: last && found.length > limit ? writeCursor(last) : null,
  }
}

const ofDelivery = (delivery: FailedDelivery): Found => ({
  ...{ id: delivery.id, kind: 'delivery', name: delivery.type, micros: delivery.at, attempts: delivery.attempts },
  reason: [delivery.lastError, delivery.lastStatus].filter((part) => part !== null).join(' ') || null,
  ...{ tokenId: delivery.tokenId, clip_id: delivery.clipId, receiver: new URL(delivery.url).origin },
})

function newestFirst(a: Found, b: Found): number {
  const [left, right] = [BigInt(a.micros), BigInt(b.micros)]
  if (left !== right) return left > right ? -1 : 1
  return a.id > b.id ? -1 : 1
}

/** Tries a dead letter again, and records it. False when there is none. */
export async function retryDeadLetter(deps: DeadDeps, by: Actor, id: string): Promise<boolean> {
  const isJob = await deps.db.transaction().execute(async (trx) => {
    const job = await deps.queue.takeDead(trx, id)
    if (!job) return false
    const { queue: name, data, tenant } = job
    if (isVariantJob(data)) await claimAgain(deps, trx, data)
    await record(deps, trx, by, 'dead_letter_retried', id, { kind: 'job', name })
    await deps.queue.send(trx, name, data, turnOf(name, tenant))
    return true
  })
  if (isJob) return true
  const delivery = await findFailedDelivery(deps.db, id)
  if (!delivery) return false
  const { webhookId, tokenId: owner, type: name } = delivery
  const replayed = await replayDelivery(deps, { id, webhookId, owner }, (trx) =>
    record(deps, trx, by, 'dead_letter_retried', id, { kind: 'delivery', name }),
  )
  return replayed !== undefined
}

/** Deletes a dead letter, and records it. False when there is none. */
export const deleteDeadLetter = (deps: DeadDeps, by: Actor, id: string): Promise<boolean> =>
  deps.db.transaction().execute(async (trx) => {
    const job = await deps.queue.takeDead(trx, id)
    if (!job && !(await deleteFailedDelivery(trx, id))) return false
    const details = job ? { kind: 'job' as const, name: job.queue } : { kind: 'delivery' as const }
    await record(deps, trx, by, 'dead_letter_deleted', id, details)
    return true
  })

const record = (
  deps: Pick<Deps, 'now' | 'newId'>,
  trx: Transaction<DB>,
  by: Actor,
  action: 'dead_letter_retried' | 'dead_letter_deleted',
  target: string,
  details: { kind: DeadLetter['kind']; name?: string },
) => recordAct(deps, trx, by, { action, target, details })

const turnOf = (queue: string, tenant: string | null) => {
  if (tenant === null) return {}
  return queue === WEBHOOK_QUEUE.name ? { group: tenant } : { tenant }
}

type VariantData = { sourceId: string; name: string; variant: Variant }

const isVariantJob = (data: object): data is VariantData => 'variant' in data && 'sourceId' in data && 'name' in data

/** Claims the variant of a job again: housekeeping has given up the claim of one whose worker died. */
const claimAgain = ({ now }: Pick<Deps, 'now'>, trx: Transaction<DB>, { sourceId, name, variant }: VariantData) =>
  takeClaim(trx, { sourceId, name, claimedAt: now() }, variant, null)

const writeCursor = ({ micros, id }: Found) => Buffer.from(`${micros}.${id}`).toString('base64url')

function readCursor(cursor: string): { at: string; id: string } {
  const [, at, id] = /^(\d{1,17})\.(.{36})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  if (at !== undefined && id !== undefined && isUuid(id)) return { at, id }
  throw invalidField('cursor', 'must be the next_cursor of a previous page')
}
