// Answers of a new clip: ready, or accepted when the wait (MEDIA_SYNC_WAIT) ends. The wait:
// core/sources/wait-for-source.ts.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { deleteLink } from '../core/clip-access/delete-link.ts'
import { type Result, toResult } from '../core/clip-views/clip-result.ts'
import { type Clip, findClip } from '../core/clips/clips.store.ts'
import { listFiles } from '../core/clips/renditions.store.ts'
import { hardDeleteClip } from '../core/lifecycle/delete-clip.ts'
import { viewsOf } from '../core/views/find-views.ts'
import type { MediaInfo } from '../db/media-info.ts'
import { FIRST_KINDS } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import type { AcceptedClip } from '../ingest/accept/accept-clip.ts'
import type { Attempt } from '../ingest/accept/begin-request.ts'
import { toDetails } from './clip-details.ts'

/**
 * Reads the `Prefer` header (RFC 7240). Without `waitSeconds` the wait is as long as SYNC_WAIT. `mp4First` is
 * `wait-for=mp4`, a preference of ours: the caller waits for poster and mp4 alone. So is `delete-link`: the caller
 * wants a delete token beside its own.
 */
export function parsePreference(header: string | string[] | undefined): {
  respondAsync: boolean
  mp4First: boolean
  deleteLink: boolean
  waitSeconds?: number
} {
  const texts = [header ?? ''].flat().join(',').toLowerCase().split(/[,;]/)
  const preferences = texts.map((text) => text.trim())
  const [wait] = preferences.flatMap((preference) => /^wait\s*=\s*"?(\d{1,6})"?$/.exec(preference)?.[1] ?? [])
  return {
    respondAsync: preferences.includes('respond-async'),
    mp4First: preferences.some((preference) => /^wait-for\s*=\s*"?mp4"?$/.test(preference)),
    deleteLink: preferences.includes('delete-link'),
    ...(wait !== undefined && { waitSeconds: Number(wait) }),
  }
}

/**
 * Answers 201 with the complete result: when the files are ready, at once if the client prefers, or SYNC_WAIT after
 * `startedAt`. Throws the failure of a failed clip and deletes it; throws gone for a clip that was deleted meanwhile.
 */
export async function answerClip(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  { clip, startedAt, clientGone }: { clip: AcceptedClip; startedAt: number; clientGone: AbortSignal },
): Promise<{ success: Result }> {
  const preference = parsePreference(request.headers.prefer)
  const { found, info } =
    clip.state === 'ready'
      ? { found: clip.state, info: clip.info }
      : await waitForFiles(deps, { clip, startedAt, clientGone }, preference)
  const state = found === 'showable' ? 'processing' : found
  const applied = []
  if (preference.respondAsync && state === 'processing') applied.push('respond-async')
  else if (found === 'showable') {
    applied.push('wait-for=mp4')
    reply.header('x-media-ready', FIRST_KINDS.join(', '))
  }
  if (preference.deleteLink && clip.deleteToken) applied.push('delete-link')
  if (applied.length > 0) reply.header('preference-applied', applied.join(', '))
  reply.code(201).headers({ location: `${deps.config.site.baseUrl}/media/${clip.id}`, 'x-media-state': state })
  if (clip.deleteToken) {
    const url = deleteLink(deps.config.site, { id: clip.id, token: clip.deleteToken })
    reply.headers({ 'x-delete-token': clip.deleteToken, 'x-delete-url': url })
  }
  if (clip.expiresAt) reply.header('x-expires-at', clip.expiresAt.toISOString())
  const { include } = request.query as { include?: unknown }
  return { success: include === 'details' ? await describe(deps, clip) : toResult({ ...clip, info }, deps.config.site) }
}

/** The answer to a request that may have a key. */
export function answerAttempt(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  { attempt, ...added }: Parameters<typeof answerClip>[3] & { attempt: Attempt },
): ReturnType<typeof answerClip> {
  if (attempt.isReplay()) reply.header('idempotency-replayed', 'true')
  return answerClip(deps, request, reply, added).catch((error) => attempt.failAfterwards(added.clip, error))
}

/** Current details, or those at acceptance if the clip was deleted meanwhile. */
async function describe({ db, config, now }: Deps, accepted: Clip) {
  const found = await findClip(db, accepted.id, now())
  const clip = found && found.state !== 'deleted' ? found : accepted
  const views = await viewsOf({ config, now }, db, [clip.id])
  return toDetails(clip, clip.isShowable ? await listFiles(db, clip.sourceId) : [], config.site, views.get(clip.id))
}

async function waitForFiles(
  deps: Deps,
  { clip, startedAt, clientGone }: { clip: Clip; startedAt: number; clientGone: AbortSignal },
  { respondAsync, mp4First, waitSeconds = Number.POSITIVE_INFINITY }: ReturnType<typeof parsePreference>,
): Promise<{ found: 'ready' | 'showable' | 'processing'; info: MediaInfo }> {
  const { info } = clip
  if (respondAsync && !Number.isFinite(waitSeconds)) return { found: 'processing', info }
  const seconds = Math.min(deps.config.syncWaitSeconds, waitSeconds)
  const leftMs = startedAt + seconds * 1000 - Date.now()
  if (leftMs <= 0) return { found: 'processing', info }

  // A stopping service answers at once, because the result is complete in either state.
  const timeout = AbortSignal.any([AbortSignal.timeout(Math.ceil(leftMs)), deps.stopping, clientGone])
  const decision = await deps.sourceWaiters.wait(clip.sourceId, timeout, mp4First ? 'showable' : 'decided')
  if (!decision) return { found: 'processing', info }
  if (decision.state === 'processing') return { found: 'showable', info }
  if (decision.state === 'ready') return { found: 'ready', info: decision.info }
  if (decision.state === 'gone') throw apiError('gone')
  await hardDeleteClip(deps, clip.id)
  throw apiError(decision.code, { details: decision.details ?? undefined })
}
