// How a file becomes a clip, uploaded or imported: refuse what is over a limit, share what was made before, else queue
// one transcode. The one rule: after the transaction the clip is accepted, and nothing a client does undoes it.
// The transcode: ../jobs/transcode-source.ts. Waiting for it: ../http/answer-clip.ts. Reference counts: ../blobs/keep-files.ts.
import { randomInt } from 'node:crypto'
import type { Transaction } from 'kysely'
import { keepFiles } from '../blobs/keep-files.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { TRANSCODE_QUEUE, type TranscodeJob } from '../jobs/transcode-queue.ts'
import { defaultProbeLimits, type ProbeLimits, refuseLargePicture, refuseLongDuration } from '../probe/limits.ts'
import type { MediaInfo } from '../probe/media-info.ts'
import { probe } from '../probe/probe.ts'
import type { ClipFields } from './clip-fields.ts'
import { makeClipId } from './clip-id.ts'
import { type Clip, insertClip } from './clips.store.ts'
import {
  attachToSource,
  countProcessing,
  findSourceByContent,
  insertSource,
  originalOf,
  type Source,
} from './sources.store.ts'

export interface ReceivedFile {
  path: string
  bytes: number
  sha256: string
}

export interface NewClipInput {
  file: ReceivedFile
  fields: ClipFields
  tokenId: string | null
  origin: { kind: 'upload' } | { kind: 'import'; url: string }
  /** Rejects with its reason, as long as nothing is accepted. */
  signal?: AbortSignal
}

/** The accepted clip, `processing` or, for bytes that were here before, perhaps `ready`. The file stays the caller's. */
export async function acceptClip(deps: Deps, input: NewClipInput): Promise<Clip> {
  return deps.turns.take(input.file.sha256, () => acceptInTurn(deps, input))
}

/** A clip of many seconds is nothing to come back for at once. */
const BUSY_RETRY_SECONDS = 10

/** Throws busy when so many clips wait that this one would wait for minutes. */
export async function refuseWhenBusy({ db, config }: Pick<Deps, 'db' | 'config'>): Promise<void> {
  if ((await countProcessing(db)) < config.worker.queueLimit) return
  throw apiError('busy', { retryAfterSeconds: BUSY_RETRY_SECONDS })
}

async function acceptInTurn(deps: Deps, input: NewClipInput): Promise<Clip> {
  input.signal?.throwIfAborted()
  const known = await findSourceByContent(deps.db, input.file.sha256)
  const shared = known && (await shareSource(deps, known, input))
  if (shared) return shared

  const { signal } = input
  const limits = limitsOf(deps)
  const info = await deps.probes.run(() => probe(deps.tools, input.file.path, { limits }), { signal })
  signal?.throwIfAborted()
  await refuseWhenBusy(deps)
  return queueSource(deps, info, input)
}

const limitsOf = ({ config: { source } }: Deps): ProbeLimits => ({
  ...defaultProbeLimits,
  durationSeconds: source.maxSeconds,
  side: source.maxSide,
})

/** Undefined when the source failed or was deleted in between. */
async function shareSource(deps: Deps, known: Source, input: NewClipInput): Promise<Clip | undefined> {
  // It was measured before, perhaps under other limits.
  const limits = limitsOf(deps)
  refuseLargePicture(limits, known.info.width, known.info.height)
  refuseLongDuration(limits, known.info.durationSeconds)
  return deps.db.transaction().execute(async (trx) => {
    const source = await attachToSource(trx, known.id)
    return source && addClip(deps, trx, source, input)
  })
}

async function queueSource(deps: Deps, info: MediaInfo, input: NewClipInput): Promise<Clip> {
  const { sha256, bytes, path } = input.file
  const original = originalOf(sha256)
  return keepFiles(deps, [{ name: original, path, bytes }], async (trx) => {
    const inserted = await insertSource(trx, { id: deps.newId(), sha256, bytes, info, now: deps.now() })
    if (inserted) {
      await deps.queue.send(trx, TRANSCODE_QUEUE.name, { sourceId: inserted.id } satisfies TranscodeJob)
      return { references: [original], result: await addClip(deps, trx, inserted, input) }
    }
    // Another process was first with the same bytes.
    const winner = await findSourceByContent(trx, sha256)
    const source = winner && (await attachToSource(trx, winner.id))
    if (!source) throw apiError('busy', { retryAfterSeconds: 1 })
    return { references: [], result: await addClip(deps, trx, source, input) }
  })
}

async function addClip(deps: Deps, trx: Transaction<DB>, source: Source, input: NewClipInput): Promise<Clip> {
  const { fields, origin, tokenId } = input
  const clip = {
    tokenId,
    sourceId: source.id,
    ...fields,
    sourceKind: origin.kind,
    sourceUrl: origin.kind === 'import' ? origin.url : null,
  }
  const now = deps.now()
  let id = makeClipId(randomInt)
  while (!(await insertClip(trx, { ...clip, id, now }))) id = makeClipId(randomInt)
  return {
    ...clip,
    id,
    createdAt: now,
    expiresAt: null,
    state: source.state,
    progress: source.progress,
    errorCode: null,
    sha256: input.file.sha256,
    bytes: source.bytes,
    info: source.info,
    hasAudio: source.has_audio,
  }
}
