// Bytes that may not come back. Accepting a file takes a shared lock on its hash, deciding about it an exclusive one.
// Both come before any row lock. So no file is accepted while it is being blocked, and the two never wait for each
// other in a circle.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'

/**
 * Files that could be uploaded again, by the kinds of a clip's files and the extensions of variants; stills are refused
 * anyway.
 */
const UPLOADABLE = ['gif', 'mp4', 'webm', 'av1'] as const
const UPLOADABLE_VARIANTS = ['gif', 'mp4', 'webp']

const lockKey = (hash: unknown) => sql`hashtextextended('media bytes ' || ${hash}, 0)`

/** Refuses blocked bytes before work is spent on them. Throws blocked_content. */
export async function refuseBlocked(db: Kysely<DB>, sha256: string): Promise<void> {
  const blocked = await db
    .selectFrom('blocked_hashes')
    .select('clip_id')
    .where('sha256', '=', Buffer.from(sha256, 'hex'))
    .executeTakeFirst()
  // The id under which a moderator allows them again.
  if (blocked) throw apiError('blocked_content', { cause: `blocked with the clip ${blocked.clip_id}` })
}

/** The same, and no decision about the bytes is made until the transaction ends. Call it first in the transaction. */
export async function holdBytes(trx: Transaction<DB>, sha256: string): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(${lockKey(sha256)})`.execute(trx)
  // A statement of its own: one sees only what was committed before it began.
  await refuseBlocked(trx, sha256)
}

/** No file with this hash is accepted until the transaction ends. */
export async function lockBytes(trx: Transaction<DB>, hashes: readonly string[]): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockKey(sql.ref('hash'))})
    from unnest(${[...hashes].sort()}::text[]) as hash`.execute(trx)
}

/** Hash of the file of a clip, also of a deleted one; undefined for an unknown clip. */
export async function findFileHash(db: Kysely<DB>, clipId: string): Promise<string | undefined> {
  const found = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .select(sql<string>`encode(coalesce(file_sha256, sha256, deleted_sha256), 'hex')`.as('sha256'))
    .where('clips.id', '=', clipId)
    .executeTakeFirst()
  return found?.sha256
}

/**
 * Locks a file, the files that we made of it, those that we made of these after they were uploaded again, and so on.
 * Returns the hashes, and the sources of them all. Decisions of this kind are made one after the other.
 */
export async function lockDescendants(
  trx: Transaction<DB>,
  sha256: string,
): Promise<{ hashes: string[]; sourceIds: string[] }> {
  await sql`select pg_advisory_xact_lock(hashtextextended('media block', 0))`.execute(trx)
  const hashes = new Set<string>()
  let sourceIds: string[] = []
  for (let fresh = [sha256]; fresh.length > 0; ) {
    await lockBytes(trx, fresh)
    for (const hash of fresh) hashes.add(hash)
    sourceIds = await sourcesOfFiles(trx, [...hashes])
    fresh = (await hashesOfFiles(trx, sourceIds)).filter((hash) => !hashes.has(hash))
  }
  return { hashes: [...hashes], sourceIds }
}

/** Failed sources have no files. The condition is a literal, so that the partial index of `sha256` matches. */
async function sourcesOfFiles(trx: Transaction<DB>, hashes: readonly string[]): Promise<string[]> {
  const sources = sql.table('sources')
  const bytes = hashes.map((hash) => Buffer.from(hash, 'hex'))
  const { rows } = await sql<{ id: string }>`
    select id from ${sources} where state <> 'failed' and sha256 = any (${bytes}::bytea[])
    union
    select id from ${sources} where file_sha256 is not null and file_sha256 = any (${bytes}::bytea[])`.execute(trx)
  return rows.map(({ id }) => id)
}

/** Hashes of the files that we made for these sources, variants included. */
export async function hashesOfFiles(trx: Transaction<DB>, sourceIds: readonly string[]): Promise<string[]> {
  const hash = sql<string>`encode(sha256, 'hex')`.as('sha256')
  const ofSources = sql<string>`any(${sourceIds}::uuid[])`
  const files = await trx
    .selectFrom('renditions')
    .select(hash)
    .where('source_id', '=', ofSources)
    .where('kind', 'in', UPLOADABLE)
    .union(
      trx
        .selectFrom('variants')
        .select(hash)
        .where('source_id', '=', ofSources)
        .where('extension', 'in', UPLOADABLE_VARIANTS)
        .where('sha256', 'is not', null),
    )
    .execute()
  return files.map(({ sha256 }) => sha256)
}

export async function insertBlocked(
  trx: Transaction<DB>,
  hashes: readonly string[],
  { clipId, now }: { clipId: string; now: Date },
): Promise<void> {
  await sql`insert into ${sql.table('blocked_hashes')} (sha256, clip_id, created_at)
    select decode(hash, 'hex'), ${clipId}, ${now} from unnest(${hashes}::text[]) as hash
    on conflict (sha256) do nothing`.execute(trx)
}

/** Whether bytes were blocked with this clip, so that `unblock` needs its id. */
export async function hasBlocked(trx: Transaction<DB>, clipId: string): Promise<boolean> {
  const blocked = await trx
    .selectFrom('blocked_hashes')
    .select('clip_id')
    .where('clip_id', '=', clipId)
    .limit(1)
    .executeTakeFirst()
  return blocked !== undefined
}

/** Allows the bytes that were blocked with this clip, or together with its file. False when there are none. */
export async function deleteBlocked(trx: Transaction<DB>, clipId: string): Promise<boolean> {
  const blocked = sql.table('blocked_hashes')
  const sha256 = (await findFileHash(trx, clipId)) ?? null
  const { numAffectedRows = 0n } = await sql`
    delete from ${blocked} where clip_id = ${clipId}
      or clip_id = (select clip_id from ${blocked} where sha256 = decode(${sha256}, 'hex'))`.execute(trx)
  return numAffectedRows > 0n
}
