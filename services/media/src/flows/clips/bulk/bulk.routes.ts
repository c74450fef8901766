// POST /media/bulk: one act on many clips. Fifty of them share a transaction, whose outcome is stored in it under the
// Idempotency-Key. So the repetition of a request that was cut off goes on where that ended, and answers for the rest
// what it had answered. Tests: bulk.test.ts, bulk-races.test.ts, bulk-albums.test.ts, faults/killed-bulks.test.ts.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { batchesOf } from '@services/common/concurrency/chunks'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { isClipId } from '../../../core/clips/clip-id.ts'
import { answerOnce } from '../../../core/idempotency/answer-once.ts'
import { type ClipResult, changeClips } from '../../../core/lifecycle/change-clips.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import type { Deps } from '../../../deps.ts'
import { apiError, type ErrorCode } from '../../../errors.ts'
import { addTokenRoutes, adminOf, missingScope, tokenOf } from '../../../http/authenticate.ts'
import { readKey } from '../../../http/idempotency-key.ts'
import { answers, tokenRoute } from '../../../http/shapes.ts'
import { ACT_MEMBERS, ACTIONS, readAct, scopeOf } from './bulk-acts.ts'

const MAX_IDS = 500
/** Clips of a transaction. Each is locked until the commit, and its owner's other requests wait. */
const AT_ONCE = 50

const Body = Type.Object({
  ids: Type.Array(Type.String({ maxLength: 64 }), {
    minItems: 1,
    description: `At most ${MAX_IDS}; a repeated id counts once.`,
    ...inDocument({ maxItems: MAX_IDS }),
  }),
  action: Type.Union(
    ACTIONS.map((action) => Type.Literal(action)),
    { description: '`delete` needs the scope `delete`, the others `write`.' },
  ),
  ...ACT_MEMBERS,
})

const ResultsShape = Type.Object(
  {
    results: Type.Array(
      Type.Object({
        id: Type.String(),
        ok: Type.Boolean(),
        code: Type.Optional(
          Type.String({ description: 'Code of the refusal, as of a request about this clip alone.' }),
        ),
        message: Type.Optional(Type.String()),
      }),
      { description: 'In the order of the ids.' },
    ),
  },
  { title: 'BulkResults' },
)

export const bulkRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  await addTokenRoutes(app, deps, { scope: ['write', 'delete'] }, async (part) => {
    part.post<{ Body: Static<typeof Body> }>(
      '/media/bulk',
      {
        schema: {
          ...tokenRoute('media', 'changeMedia', 'Deletes or changes many clips'),
          description:
            'Each clip is changed or refused on its own, fifty in a transaction. `tag` and `untag` take `tags`, ' +
            '`visibility`, `nsfw` and `album` what they are named after, `lifetime` takes `expires_in` or `expires_at`, and ' +
            '`sliding`. Fifty count as one call. A repetition with the same Idempotency-Key does nothing twice, and completes a request that ' +
            'was cut off.',
          headers: Type.Object({ 'idempotency-key': Type.Optional(Type.String()) }),
          body: Body,
          response: answers(200, ResultsShape, [400, 401, 403, 408, 409, 413, 415, 422, 429], 'Idempotency-Replayed'),
        },
      },
      async (request, reply) => {
        const { ids: named, action, ...members } = request.body
        const token = tokenOf(request)
        const scope = scopeOf(action)
        if (!allows(token, scope)) throw missingScope(scope)
        const ids = [...new Set(named)]
        if (ids.length > MAX_IDS) throw apiError('bulk_too_large', { details: { limit: MAX_IDS } })
        const act = await readAct(deps, token, { action, ...members })
        const batches = [...batchesOf(ids.filter(isClipId), AT_ONCE)]
        if (batches.length > 1) await deps.limits.count(request, reply, 'read', batches.length - 1)
        const results = new Map<string, ClipResult>()
        let areReplayed = batches.length > 0
        for (const [n, batch] of batches.entries()) {
          const { answer, isReplay } = await deps.db
            .transaction()
            .execute((trx) =>
              answerOnce(trx, keyedBatch(request, n), deps.now(), async () =>
                toOutcome(await changeClips(deps, trx, { token, by: adminOf(request), ids: batch, act })),
              ),
            )
          for (const result of toResults(batch, answer)) {
            if (result.ok) deps.knownFiles.evict(result.id)
            results.set(result.id, result)
          }
          areReplayed &&= isReplay
        }
        if (areReplayed) reply.header('idempotency-replayed', 'true')
        return { success: { results: ids.map((id) => results.get(id) ?? { id, ...NOT_FOUND }) } }
      },
    )
  })
}

type Refusal = Omit<Extract<ClipResult, { ok: false }>, 'id'>

const { code, message } = apiError('not_found')
/** Result of a text that is no id of a clip. No statement is made for it, and nothing is stored. */
const NOT_FOUND: Refusal = { ok: false, code: code as ErrorCode, message }

/** Results as they are stored: a repetition names the same ids, and clips of one act are refused for few reasons. */
interface Outcome {
  refusals: Refusal[]
  /** Index of the refusal for each clip in order; -1 for a clip that was changed. */
  each: number[]
}

function toOutcome(results: readonly ClipResult[]): Outcome {
  const refusals = new Map<string, Refusal>()
  const texts = results.map(({ id: _, ...result }) => {
    const text = JSON.stringify(result)
    if (!result.ok) refusals.set(text, result)
    return text
  })
  const known = [...refusals.keys()]
  return { refusals: [...refusals.values()], each: texts.map((text) => known.indexOf(text)) }
}

const toResults = (ids: readonly string[], { refusals, each }: Outcome): ClipResult[] =>
  ids.map((id, n) => {
    const refusal = refusals[each[n] ?? -1]
    return refusal ? { id, ok: false, code: refusal.code, message: refusal.message } : { id, ok: true }
  })

/** Every batch has an outcome of its own; all have the fingerprint of the whole request. */
function keyedBatch(request: FastifyRequest, n: number) {
  const key = readKey(request)
  if (key === undefined) return undefined
  const fingerprint = createHash('sha256').update(JSON.stringify(request.body)).digest()
  return { tokenId: tokenOf(request).id, route: 'bulk' as const, key: `${n}:${key}`, fingerprint }
}
