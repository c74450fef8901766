import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { DB, MainKind, VariantState } from '../../db/tables.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'
import { lockSources } from '../sources/sources.store.ts'

/** Key of a variant. */
export interface VariantKey {
  sourceId: string
  name: string
}

export interface Claim extends VariantKey {
  claimedAt: Date
}

export interface VariantRow {
  state: VariantState
  /** Hash in hex; null unless it is stored. */
  sha256: string | null
  bytes: number
  claimedAt: Date
  usedAt: Date
}

const keyOf = ({ sourceId, name }: VariantKey) => ({ source_id: sourceId, name })

/** Columns of a claim that still holds. */
const claimOf = (claim: Claim) => ({ ...keyOf(claim), state: 'making', claimed_at: claim.claimedAt }) as const

/**
 * Returns the source of a clip, its file `original`, and the variant if it has a row. Undefined without such a clip.
 */
export async function findVariant(db: Kysely<DB>, clipId: string, name: string, original: MainKind) {
  const found = await db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .innerJoin('renditions', (join) =>
      join.onRef('renditions.source_id', '=', 'sources.id').on('renditions.kind', '=', original),
    )
    .leftJoin('variants', (join) => join.onRef('variants.source_id', '=', 'sources.id').on('variants.name', '=', name))
    .select(['clips.token_id as tokenId', 'sources.id as sourceId', 'sources.state', 'progress', 'info'])
    .select(['renditions.width', 'renditions.height', 'renditions.bytes'])
    .select(['variants.state as variantState', 'variants.bytes as variantBytes', 'claimed_at', 'used_at'])
    .select(sql<string | null>`encode(${sql.ref('variants.sha256')}, 'hex')`.as('sha256'))
    .where('clips.id', '=', clipId)
    .executeTakeFirst()
  if (!found) return undefined
  const { tokenId, sourceId, state, progress, info, width, height, bytes, sha256 } = found
  const { variantState, variantBytes, claimed_at: claimedAt, used_at: usedAt } = found
  const hasRow = variantState && variantBytes !== null && claimedAt && usedAt
  const row: VariantRow | undefined = hasRow
    ? { state: variantState, sha256, bytes: variantBytes, claimedAt, usedAt }
    : undefined
  return { tokenId, source: { id: sourceId, state, progress, info }, original: { width, height, bytes }, row }
}

/**
 * Claims a variant for the caller, who makes it. Returns `taken` when another has it, `full` when the source has `most`
 * others whose name `isAlike`, and `gone` when the source is no longer ready. A claim from before `staleBefore` is
 * taken over.
 */
export async function claimVariant(
  trx: Transaction<DB>,
  { sourceId, name, claimedAt }: Claim,
  {
    extension,
    most,
    isAlike,
    staleBefore,
  }: { extension: string; most: number; isAlike: (name: string) => boolean; staleBefore: Date | null },
): Promise<'claimed' | 'taken' | 'full' | 'gone'> {
  if (!(await lockReady(trx, sourceId))) return 'gone'
  const others = await trx
    .selectFrom('variants')
    .select('name')
    .where('source_id', '=', sourceId)
    .where('name', '!=', name)
    .execute()
  const claimed = await trx
    .insertInto('variants')
    .values({ source_id: sourceId, name, state: 'making', extension, claimed_at: claimedAt, used_at: claimedAt })
    .onConflict((conflict) =>
      conflict
        .columns(['source_id', 'name'])
        .doUpdateSet({ claimed_at: claimedAt })
        .where('variants.state', '=', 'making')
        .where('variants.claimed_at', '<', staleBefore ?? new Date(0)),
    )
    .returning('name')
    .executeTakeFirst()
  if (!claimed) return 'taken'
  return others.filter((other) => isAlike(other.name)).length >= most ? 'full' : 'claimed'
}

/** Locks the source before its files. False when it is not ready. */
async function lockReady(trx: Transaction<DB>, sourceId: string): Promise<boolean> {
  const locked = await trx
    .selectFrom('sources')
    .select('id')
    .where('id', '=', sourceId)
    .where('state', '=', 'ready')
    .forUpdate()
    .executeTakeFirst()
  return locked !== undefined
}

/** Ends a claim. False when the source or the claim is gone: the file is then not referenced. */
export async function settleVariant(
  trx: Transaction<DB>,
  claim: Claim,
  outcome: { state: Exclude<VariantState, 'making'>; bytes: number; sha256: string | null },
): Promise<boolean> {
  if (!(await lockReady(trx, claim.sourceId))) return false
  const { state, bytes, sha256 } = outcome
  const settled = await trx
    .updateTable('variants')
    .set({ state, bytes, sha256: sha256 === null ? null : Buffer.from(sha256, 'hex') })
    .where(({ and }) => and(claimOf(claim)))
    .returning('name')
    .executeTakeFirst()
  if (settled && state === 'stored') await addBytes(trx, claim.sourceId, bytes)
  return settled !== undefined
}

const addBytes = (trx: Transaction<DB>, sourceId: string, bytes: number) =>
  trx
    .updateTable('sources')
    .set({ rendition_bytes: sql`rendition_bytes + ${bytes}` })
    .where('id', '=', sourceId)
    .execute()

/** Gives a claim up, so that the next request claims it. */
export async function releaseClaim(db: Kysely<DB>, claim: Claim): Promise<void> {
  await db
    .deleteFrom('variants')
    .where(({ and }) => and(claimOf(claim)))
    .execute()
}

export async function findClaim(db: Kysely<DB>, key: VariantKey): Promise<Claim | undefined> {
  const found = await db
    .selectFrom('variants')
    .select('claimed_at')
    .where(({ and }) => and({ ...keyOf(key), state: 'making' }))
    .executeTakeFirst()
  return found && { ...key, claimedAt: found.claimed_at }
}

/** Records a use, unless one was recorded since `before`. */
export async function recordUse(
  db: Kysely<DB>,
  key: VariantKey,
  { now, before }: { now: Date; before: Date },
): Promise<void> {
  await db
    .updateTable('variants')
    .set({ used_at: now })
    .where(({ and }) => and(keyOf(key)))
    .where('used_at', '<', before)
    .execute()
}

/**
 * Deletes variants and returns the names of their files, whose references the caller drops. `unusedBefore` spares those
 * that were used since, `state` those in another. Locks the sources first, in one order.
 */
export async function deleteVariants(
  trx: Transaction<DB>,
  keys: readonly VariantKey[],
  { unusedBefore, state }: { unusedBefore: Date; state?: VariantState },
): Promise<BlobName[]> {
  const [ids, names] = [keys.map(({ sourceId }) => sourceId), keys.map(({ name }) => name)]
  await lockSources(trx, ids)
  const isState = state === undefined ? sql`state <> 'making'` : sql`state = ${state}`
  const isGiven = sql`(source_id, name) in (select * from unnest(${ids}::uuid[], ${names}::text[]))`
  const isPoster = sql`exists (select from ${sql.table('clips')} clip
    where clip.source_id = ${sql.ref('variants.source_id')} and clip.poster_name = ${sql.ref('variants.name')})`
  return deleteWhere(trx, sql`${isGiven} and used_at < ${unusedBefore} and ${isState} and not ${isPoster}`)
}

/** Deletes all variants of sources that are being deleted or have failed, and returns the names of their files. */
export const deleteVariantsOf = (trx: Transaction<DB>, sourceIds: readonly string[]): Promise<BlobName[]> =>
  deleteWhere(trx, sql`source_id = any (${sourceIds}::uuid[])`)

/** Deletes the poster of this variant and its sizes, unless a clip of the source shows it. */
export async function deletePoster(trx: Transaction<DB>, { sourceId, name }: VariantKey): Promise<BlobName[]> {
  await lockSources(trx, [sourceId])
  const ending = `-${name
    .split('-')
    .at(-1)
    ?.replace(/\.jpg$/, '')}.`
  return deleteWhere(
    trx,
    sql`source_id = ${sourceId} and name like 'poster-%' and strpos(name, ${ending}) > 0 and state <> 'making'
      and not exists (select from ${sql.table('clips')} where source_id = ${sourceId} and poster_name = ${name})`,
  )
}

/** The file of a variant; undefined unless it is stored. */
export const findStored = (db: Kysely<DB>, key: VariantKey): Promise<{ sha256: string } | undefined> =>
  db
    .selectFrom('variants')
    .select(sql<string>`encode(sha256, 'hex')`.as('sha256'))
    .where(({ and }) => and({ ...keyOf(key), state: 'stored' }))
    .executeTakeFirst()

/** Deletes the variants of a source that have this file; the next request makes them again. */
export async function deleteVariantsWith(trx: Transaction<DB>, sourceId: string, file: BlobName): Promise<BlobName[]> {
  await lockSources(trx, [sourceId])
  const sha256 = Buffer.from(file.sha256, 'hex')
  return deleteWhere(trx, sql`source_id = ${sourceId} and sha256 = ${sha256} and extension = ${file.extension}`)
}

/** Returns the names of the files: only stored variants have one. */
async function deleteWhere(trx: Transaction<DB>, condition: RawBuilder<unknown>): Promise<BlobName[]> {
  const { rows } = await sql<{ sourceId: string; sha256: string | null; extension: string; bytes: number }>`
    delete from ${sql.table('variants')} where ${condition}
    returning source_id as "sourceId", encode(sha256, 'hex') as sha256, extension, bytes`.execute(trx)
  const freed = new Map<string, number>()
  const names: BlobName[] = []
  for (const { sourceId, sha256, extension, bytes } of rows) {
    if (sha256 === null) continue
    names.push({ sha256, extension })
    freed.set(sourceId, (freed.get(sourceId) ?? 0) + bytes)
  }
  for (const [sourceId, bytes] of freed) await addBytes(trx, sourceId, -bytes)
  return names
}
