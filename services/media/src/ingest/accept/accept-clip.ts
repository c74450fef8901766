// This folder turns a received file into a clip. It refuses a file over a limit, shares the source of known bytes, and
// otherwise queues one transcode. After the transaction the clip is accepted, and nothing a client does undoes it.
// Tests: test/{upload,sharing,idempotency}.test.ts.
import { randomInt } from 'node:crypto'
import { resultOf } from '@services/common/telemetry/instruments'
import type { Transaction } from 'kysely'
import { joinAlbum, refuseAlbum } from '../../core/albums/new-clip.ts'
import { type AccessChanges, applyAccess } from '../../core/clips/access.ts'
import type { ClipFields } from '../../core/clips/clip-fields.ts'
import { makeClipId } from '../../core/clips/clip-id.ts'
import { type Clip, insertClip } from '../../core/clips/clips.store.ts'
import { decodedSize } from '../../core/edits/decoded-size.ts'
import { type Edit, sourceKey } from '../../core/edits/edit.ts'
import { holdBytes, refuseBlocked } from '../../core/reports/blocked-bytes.store.ts'
import { refuseWhenBusy } from '../../core/sources/refuse-when-busy.ts'
import { attachToSource } from '../../core/sources/source-clips.store.ts'
import { findSourceByContent, insertSource, originalNamed, type SourceRow } from '../../core/sources/sources.store.ts'
import { takeAllowance } from '../../core/tokens/allowance.ts'
import { requireWriter } from '../../core/tokens/require-writer.ts'
import { makeDeleteToken } from '../../core/tokens/token-format.ts'
import { emitEvent } from '../../core/webhooks/emit-event.ts'
import type { MediaInfo } from '../../db/media-info.ts'
import type { DB, TokenLimits } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { clipTurn, TRANSCODE_QUEUE, type TranscodeJob, tenantOf } from '../../make/jobs/queues.ts'
import { mostRenditionBytes } from '../../make/plan/most-bytes.ts'
import { probe } from '../../make/probe/probe.ts'
import {
  probeLimitsOf,
  refuseLargePicture,
  refuseLongDuration,
  unsupportedType,
} from '../../make/probe/source-limits.ts'
import { countClip, countProbeRefusal, type Way } from '../../metrics.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'
import type { Measured } from '../../store/blobs/measure.ts'

export type ReceivedFile = Measured & { path: string }

export interface NewClipInput {
  file: ReceivedFile
  fields: ClipFields
  access?: AccessChanges
  edit?: Edit | undefined
  /** Album of the token that the clip joins. */
  album?: string | undefined
  tokenId: string | null
  /** `pieces`: sent by the tus protocol. */
  origin: { kind: 'upload'; pieces?: boolean } | { kind: 'import'; url: string }
  /** The caller waits for the mp4 alone (`Prefer: wait-for=mp4`). */
  mp4First?: boolean | undefined
  /** The caller wants a delete token although it has a token (`Prefer: delete-link`). */
  deleteLink?: boolean | undefined
  /** Aborts with its reason until the clip is accepted. */
  signal?: AbortSignal
  /** Runs in the clip's transaction; its error refuses the clip. */
  alongside?: (trx: Transaction<DB>, clip: Clip) => Promise<void>
}

/** `deleteToken` permits the deletion of this clip alone; it is in this answer and nowhere else. */
export type AcceptedClip = Clip & { deleteToken?: string }

/** Returns the accepted clip, `processing`, or perhaps `ready` for known bytes. The file stays the caller's. */
export const acceptClip = (deps: Deps, input: NewClipInput): Promise<AcceptedClip> =>
  deps.mutex.run(input.file.sha256, () => acceptInTurn(deps, input))

/** The stages from a file to its clip; the first that throws decides. */
async function acceptInTurn(deps: Deps, input: NewClipInput): Promise<AcceptedClip> {
  const { edit, signal, file, tokenId } = input
  signal?.throwIfAborted()
  await refuseBlocked(deps.db, file.sha256)
  refuseCaption(deps, edit)
  await refuseAlbum(deps.db, input)
  // The probe decides what an edit changes, and so its key.
  const shared = edit ? undefined : await shareKnown(deps, file.sha256, input)
  if (shared) return shared
  const info = await probeInTurn(deps, input)
  signal?.throwIfAborted()
  const key = sourceKey(file.sha256, info.edited?.edit)
  const sharedEdit = edit && (await shareKnown(deps, key, input))
  if (sharedEdit) return sharedEdit
  // Before the file is stored; both bind in the transaction.
  await refuseWhenBusy(deps, tokenId, tokenId === null ? {} : await requireWriter(deps.db, tokenId, deps.now()))
  return queueSource(deps, { info, key }, input)
}

function refuseCaption({ tools }: Deps, edit: Edit | undefined): void {
  if (!edit?.caption || tools.ffmpeg.canDrawText) return
  throw apiError('edit_not_supported', { message: 'This service draws no captions.', details: { param: 'caption' } })
}

async function shareKnown(deps: Deps, key: string, input: NewClipInput): Promise<AcceptedClip | undefined> {
  const known = await findSourceByContent(deps.db, key)
  const shared = known && (await shareSource(deps, known, input))
  if (shared) countClip(wayOf(input), 'shared')
  return shared
}

const probeInTurn = (
  { config, tools, probes }: Deps,
  { file, edit, tokenId, signal }: NewClipInput,
): Promise<MediaInfo> =>
  probes.run(
    () =>
      probe(tools, file.path, { limits: probeLimitsOf(config.source), edit }).catch((error) => {
        countProbeRefusal(resultOf(error))
        throw error
      }),
    { key: tenantOf(tokenId), signal },
  )

const wayOf = ({ origin }: NewClipInput): Way =>
  origin.kind === 'import' ? 'import' : origin.pieces ? 'tus' : 'upload'

async function shareSource(deps: Deps, known: SourceRow, input: NewClipInput): Promise<AcceptedClip | undefined> {
  // The source may have been measured under other limits.
  const limits = probeLimitsOf(deps.config.source)
  if (!limits.types.includes(known.info.type)) throw unsupportedType(limits.types, `known as ${known.info.type}`)
  const { width, height } = decodedSize(known.info)
  refuseLargePicture(limits, width, height)
  refuseLongDuration(limits, known.info.durationSeconds)
  return deps.db.transaction().execute(async (trx) => {
    await holdBytes(trx, input.file.sha256)
    const source = await attachToSource(trx, known.id)
    if (!source) return undefined
    const clip = await addClip(deps, trx, source, input)
    await takeBytes(deps, trx, input, source.rendition_bytes)
    await joinAlbum(deps, trx, { ...input, clipId: clip.id })
    await prioritise(deps, trx, source, input)
    return clip
  })
}

async function queueSource(
  deps: Deps,
  { info, key }: { info: MediaInfo; key: string },
  input: NewClipInput,
): Promise<AcceptedClip> {
  const { tokenId } = input
  const { sha256, bytes, path } = input.file
  const original = originalNamed(sha256)
  let isShared = false
  const accepted = await keepFiles(deps, [{ name: original, path, bytes }], async (trx) => {
    await holdBytes(trx, sha256)
    const reservedBytes = mostRenditionBytes(info, bytes)
    const hashes = { sha256: key, fileSha256: sha256 }
    const newSource = { id: deps.newId(), ...hashes, tokenId, bytes, reservedBytes, info, now: deps.now() }
    const inserted = await insertSource(trx, newSource)
    if (inserted) {
      const job = { sourceId: inserted.id, way: wayOf(input), ...(input.mp4First && { mp4First: true }) }
      const clip = await addClip(deps, trx, inserted, input)
      const last = async () => {
        const limits = await takeBytes(deps, trx, input, 0)
        await joinAlbum(deps, trx, { ...input, clipId: clip.id })
        // After the allowance, which makes the token's other clips wait for this transaction.
        await refuseWhenBusy({ ...deps, db: trx }, tokenId, limits, 1)
        await deps.queue.send(trx, TRANSCODE_QUEUE.name, job satisfies TranscodeJob, clipTurn(tokenId, info))
      }
      return { references: [original], last, result: clip }
    }
    const winner = await findSourceByContent(trx, key)
    const source = winner && (await attachToSource(trx, winner.id))
    if (!source) throw apiError('busy', { retryAfterSeconds: 1 })
    isShared = true
    const clip = await addClip(deps, trx, source, input)
    const last = async () => {
      await takeBytes(deps, trx, input, source.rendition_bytes)
      await joinAlbum(deps, trx, { ...input, clipId: clip.id })
      await prioritise(deps, trx, source, input)
    }
    return { references: [], last, result: clip }
  })
  if (isShared) countClip(wayOf(input), 'shared')
  return accepted
}

/** A caller that sends waiting bytes again waits no longer than for new bytes. */
async function prioritise(deps: Deps, trx: Transaction<DB>, source: SourceRow, { tokenId }: NewClipInput) {
  if (source.state !== 'processing' || source.token_id === tokenId) return
  const job = { sourceId: source.id } satisfies TranscodeJob
  await deps.queue.advance(trx, TRANSCODE_QUEUE.name, job, clipTurn(tokenId, source.info))
}

/**
 * The binding refusal of a token and its allowance, after the storage has answered. The token's other clips and its
 * revocation wait from here until the commit. Returns the token's limits.
 */
async function takeBytes(
  { config, now }: Deps,
  trx: Transaction<DB>,
  { tokenId, file }: NewClipInput,
  renditionBytes: number,
): Promise<TokenLimits> {
  if (tokenId === null) return {}
  const clip = { tokenId, sent: file.bytes, kept: file.bytes + renditionBytes, now: now() }
  return takeAllowance(trx, config.allowances, clip)
}

async function addClip(deps: Deps, trx: Transaction<DB>, source: SourceRow, input: NewClipInput) {
  const { fields, origin, tokenId } = input
  const sourceUrl = origin.kind === 'import' ? origin.url : null
  const clip = { tokenId, sourceId: source.id, ...fields, sourceKind: origin.kind, sourceUrl }
  const now = deps.now()
  const deletion = tokenId === null || input.deleteLink ? makeDeleteToken(randomInt) : undefined
  const lifetimeMs = deps.config.anonymousLifetimeSeconds * 1000
  const expiresAt = tokenId === null ? new Date(now.getTime() + lifetimeMs) : null
  const usual = { visibility: 'public', expiresAt, slidingSeconds: null, createdAt: now } as const
  const access = applyAccess(usual, input.access ?? {}, now)
  const { verdict } = source
  if (verdict === 'block') throw apiError('blocked_content')
  const hiddenReason = verdict === 'hide' ? ('scanner' as const) : null
  const judged = { nsfw: fields.nsfw || verdict === 'nsfw', hiddenReason }
  const deleteTokenHash = deletion?.hash ?? null
  const row = { ...clip, ...access, ...judged, isNsfwForced: verdict === 'nsfw', now, deleteTokenHash }
  let id = makeClipId(randomInt)
  while (!(await insertClip(trx, { ...row, id }))) id = makeClipId(randomInt)
  const { state, progress, bytes, info, has_audio: hasAudio, placeholder, extras } = source
  const { sha256 } = input.file
  const accepted: Clip = {
    ...{ ...clip, ...access, ...judged, linkSalt: null, hiddenAt: hiddenReason && now },
    ...{ id, createdAt: now, state, progress, errorCode: null, sha256 },
    ...{ bytes, info, hasAudio, placeholder, extras, isShowable: state === 'ready' },
    ...{ posterAt: null, posterNumber: 0, posterWanted: null, posterState: null, posterFile: null },
  }
  await input.alongside?.(trx, accepted)
  // The worker emitted this event for the first clip of these bytes only.
  if (state === 'ready') await emitEvent(deps, trx, 'media.ready', { clipIds: [id] })
  return { ...accepted, deleteToken: deletion?.token }
}
