// How a file becomes a clip, uploaded or imported: refuse what is over a limit, share what was made before, else queue
// one transcode. The one rule: after the transaction the clip is accepted, and nothing a client does undoes it.
// Next: make/jobs/transcode-source.ts (the transcode), http/answer-clip.ts (the answer), store/blobs/keep-files.ts (references).
import { randomInt } from 'node:crypto'
import { resultOf } from '@services/common/instruments'
import type { Kysely, Transaction } from 'kysely'
import type { ClipFields } from '../../core/clips/clip-fields.ts'
import { makeClipId } from '../../core/clips/clip-id.ts'
import { type Clip, insertClip } from '../../core/clips/clips.store.ts'
import {
  attachToSource,
  countProcessing,
  findSourceByContent,
  insertSource,
  originalOf,
  type SourceRow,
} from '../../core/clips/sources.store.ts'
import { takeAllowance } from '../../core/tokens/allowance.ts'
import { makeDeleteToken } from '../../core/tokens/api-token.ts'
import { findTokenLimits } from '../../core/tokens/tokens.store.ts'
import { emitEvent } from '../../core/webhooks/emit-event.ts'
import type { MediaInfo } from '../../db/media-info.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { shareOf, TRANSCODE_QUEUE, type TranscodeJob } from '../../make/jobs/transcode-queue.ts'
import {
  defaultProbeLimits,
  type ProbeLimits,
  refuseLargePicture,
  refuseLongDuration,
} from '../../make/probe/limits.ts'
import { probe } from '../../make/probe/probe.ts'
import { mostRenditionBytes } from '../../make/transcode/most-bytes.ts'
import { countClip, countProbeRefusal, type Way } from '../../metrics.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'

export interface ReceivedFile {
  path: string
  bytes: number
  sha256: string
}

export interface NewClipInput {
  file: ReceivedFile
  fields: ClipFields
  tokenId: string | null
  /** `pieces`: it came by the tus protocol. */
  origin: { kind: 'upload'; pieces?: boolean } | { kind: 'import'; url: string }
  /** Rejects with its reason, as long as nothing is accepted. */
  signal?: AbortSignal
  /** Becomes true with the clip or not at all. What it throws refuses the clip. */
  alongside?: (trx: Transaction<DB>, clip: Clip) => Promise<void>
}

/** `deleteToken` is the right to delete a clip that nobody owns; it is in this answer and nowhere else. */
export type AcceptedClip = Clip & { deleteToken?: string }

/** The accepted clip, `processing` or, for bytes that were here before, perhaps `ready`. The file stays the caller's. */
export async function acceptClip(deps: Deps, input: NewClipInput): Promise<AcceptedClip> {
  return deps.mutex.run(input.file.sha256, () => acceptInTurn(deps, input))
}

/** A clip of many seconds is nothing to come back for at once. */
const BUSY_RETRY_SECONDS = 10

/**
 * Throws busy when so many clips wait that this one would wait for minutes, queue_full when too many of them are of this
 * token (or of callers without one): nobody fills the queue alone. Those who fill it together lock nobody out either: a
 * token that has none there waits for its turn only, and is let in until there are twice as many.
 */
export async function refuseWhenBusy(
  { db, config }: { db: Kysely<DB>; config: Deps['config'] },
  tokenId: string | null,
): Promise<void> {
  const { queueLimit, queueLimitPerToken } = config.worker
  const { all, ofToken } = await countProcessing(db, tokenId)
  const most = ofToken === 0 ? 2 * queueLimit : queueLimit
  if (all >= most) throw apiError('busy', { retryAfterSeconds: BUSY_RETRY_SECONDS })
  if (ofToken === 0) return
  const own = tokenId === null ? undefined : (await findTokenLimits(db, tokenId)).queued
  if (ofToken >= (own ?? queueLimitPerToken)) {
    throw apiError('queue_full', {
      message: 'Too many clips of this token are waiting or being made.',
      retryAfterSeconds: BUSY_RETRY_SECONDS,
    })
  }
}

async function acceptInTurn(deps: Deps, input: NewClipInput): Promise<AcceptedClip> {
  input.signal?.throwIfAborted()
  const known = await findSourceByContent(deps.db, input.file.sha256)
  const shared = known && (await shareSource(deps, known, input))
  if (shared) {
    countClip(wayOf(input), 'shared')
    return shared
  }

  const { signal } = input
  const limits = limitsOf(deps)
  const look = () => probeCounted(deps.tools, input.file.path, limits)
  const info = await deps.probes.run(look, { key: shareOf(input.tokenId), signal })
  signal?.throwIfAborted()
  await refuseWhenBusy(deps, input.tokenId)
  return queueSource(deps, info, input)
}

async function probeCounted(tools: Deps['tools'], path: string, limits: ProbeLimits): Promise<MediaInfo> {
  try {
    return await probe(tools, path, { limits })
  } catch (error) {
    countProbeRefusal(resultOf(error))
    throw error
  }
}

const wayOf = ({ origin }: NewClipInput): Way =>
  origin.kind === 'import' ? 'import' : origin.pieces ? 'tus' : 'upload'

const limitsOf = ({ config: { source } }: Deps): ProbeLimits => ({
  ...defaultProbeLimits,
  durationSeconds: source.maxSeconds,
  side: source.maxSide,
})

/** Undefined when the source failed or was deleted in between. */
async function shareSource(deps: Deps, known: SourceRow, input: NewClipInput): Promise<AcceptedClip | undefined> {
  // It was measured before, perhaps under other limits.
  const limits = limitsOf(deps)
  refuseLargePicture(limits, known.info.width, known.info.height)
  refuseLongDuration(limits, known.info.durationSeconds)
  return deps.db.transaction().execute(async (trx) => {
    await takeBytes(deps, trx, input, known.rendition_bytes)
    const source = await attachToSource(trx, known.id)
    if (!source) return undefined
    const clip = await addClip(deps, trx, source, input)
    await bringForward(deps, trx, source, input)
    return clip
  })
}

async function queueSource(deps: Deps, info: MediaInfo, input: NewClipInput): Promise<AcceptedClip> {
  const { tokenId } = input
  const { sha256, bytes, path } = input.file
  const original = originalOf(sha256)
  let isShared = false
  const accepted = await keepFiles(deps, [{ name: original, path, bytes }], async (trx) => {
    await takeBytes(deps, trx, input, 0)
    // Once more, now that other clips of this token wait.
    await refuseWhenBusy({ ...deps, db: trx }, tokenId)
    const reservedBytes = mostRenditionBytes(info, bytes)
    const newSource = { id: deps.newId(), sha256, tokenId, bytes, reservedBytes, info, now: deps.now() }
    const inserted = await insertSource(trx, newSource)
    if (inserted) {
      const job: TranscodeJob = { sourceId: inserted.id, way: wayOf(input) }
      const last = () => deps.queue.send(trx, TRANSCODE_QUEUE.name, job, { share: shareOf(tokenId) })
      return { references: [original], last, result: await addClip(deps, trx, inserted, input) }
    }
    // Another process was first with the same bytes.
    const winner = await findSourceByContent(trx, sha256)
    const source = winner && (await attachToSource(trx, winner.id))
    if (!source) throw apiError('busy', { retryAfterSeconds: 1 })
    isShared = true
    const last = () => bringForward(deps, trx, source, input)
    return { references: [], last, result: await addClip(deps, trx, source, input) }
  })
  if (isShared) countClip(wayOf(input), 'shared')
  return accepted
}

/** Whoever sends bytes again that wait waits no longer than for bytes of its own. */
async function bringForward(deps: Deps, trx: Transaction<DB>, source: SourceRow, { tokenId }: NewClipInput) {
  if (source.state !== 'processing' || source.token_id === tokenId) return
  await deps.queue.advance(trx, TRANSCODE_QUEUE.name, { sourceId: source.id } satisfies TranscodeJob, shareOf(tokenId))
}

async function takeBytes({ config, now }: Deps, trx: Transaction<DB>, input: NewClipInput, renditionBytes: number) {
  const { tokenId, file } = input
  if (tokenId === null) return
  const clip = { tokenId, sent: file.bytes, kept: file.bytes + renditionBytes, now: now() }
  await takeAllowance(trx, config.allowances, clip)
}

async function addClip(
  deps: Deps,
  trx: Transaction<DB>,
  source: SourceRow,
  input: NewClipInput,
): Promise<AcceptedClip> {
  const { fields, origin, tokenId } = input
  const clip = {
    tokenId,
    sourceId: source.id,
    ...fields,
    sourceKind: origin.kind,
    sourceUrl: origin.kind === 'import' ? origin.url : null,
  }
  const now = deps.now()
  const ownerless = tokenId === null ? makeDeleteToken(randomInt) : undefined
  const expiresAt = ownerless ? new Date(now.getTime() + deps.config.anonymousLifetimeSeconds * 1000) : null
  const row = { ...clip, now, expiresAt, deleteTokenHash: ownerless?.hash ?? null }
  let id = makeClipId(randomInt)
  while (!(await insertClip(trx, { ...row, id }))) id = makeClipId(randomInt)
  const accepted: Clip = {
    ...clip,
    id,
    createdAt: now,
    expiresAt,
    state: source.state,
    progress: source.progress,
    errorCode: null,
    sha256: input.file.sha256,
    bytes: source.bytes,
    info: source.info,
    hasAudio: source.has_audio,
    placeholder: source.placeholder,
    extras: source.extras,
  }
  await input.alongside?.(trx, accepted)
  // Nobody else will say so of bytes that were here before.
  if (source.state === 'ready') await emitEvent(deps, trx, 'media.ready', { clipId: id })
  return { ...accepted, ...(ownerless && { deleteToken: ownerless.token }) }
}
