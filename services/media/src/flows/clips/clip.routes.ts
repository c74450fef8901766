// A token's clips: details, changes, deletion, lists, events. A clip of another token is not found, because only ids
// are public. Tests: test/clip-life.test.ts, lists.test.ts, events.test.ts.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withoutNulls } from '@services/common/http/json-parser'
import type { FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { type TSchema, Type } from 'typebox'
import { type Act, recordAct } from '../../core/audit/audit.ts'
import {
  type AccessChanges,
  type AccessRules,
  accessRulesOf,
  applyAccess,
  cleanAccess,
  isExpired,
  type RawAccess,
} from '../../core/clips/access.ts'
import { type ClipFields, cleanFields, invalidField, MAX_TAG_TEXTS } from '../../core/clips/clip-fields.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import { type Clip, findClip, findDeleteTokenHash, lockAccess, updateClip } from '../../core/clips/clips.store.ts'
import { listFiles } from '../../core/clips/renditions.store.ts'
import { softDeleteClip } from '../../core/lifecycle/delete-clip.ts'
import { allows } from '../../core/tokens/scopes.ts'
import { hashToken } from '../../core/tokens/token-format.ts'
import type { ApiToken } from '../../core/tokens/tokens.store.ts'
import { viewsOf } from '../../core/views/find-views.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import {
  AccessFields,
  AttributionInput,
  answers,
  counted,
  errorResponses,
  orNull,
  TOKEN_SECURITY,
  tokenRoute,
} from '../../http/shapes.ts'

const Params = Type.Object({ id: Type.String() })

const maybe = <Shape extends TSchema>(shape: Shape) => Type.Optional(orNull(shape))

/** Null clears a member; an absent one stays. */
const PatchBody = Type.Object({
  title: maybe(Type.String()),
  tags: maybe(Type.Array(Type.String(), { maxItems: MAX_TAG_TEXTS })),
  nsfw: maybe(Type.Boolean()),
  attribution: maybe(AttributionInput),
  // Not null: a client that sends unset members so would publish a private clip.
  visibility: AccessFields.visibility,
  expires_in: maybe(AccessFields.expires_in),
  expires_at: maybe(AccessFields.expires_at),
  sliding: maybe(AccessFields.sliding),
})

export const clipRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  const describe = async (clip: Clip) => {
    const files = clip.isShowable ? await listFiles(deps.db, clip.sourceId) : []
    const views = await viewsOf(deps, deps.db, [clip.id])
    return { success: toDetails(clip, files, site, views.get(clip.id)) }
  }

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Params: { id: string } }>(
      '/media/:id',
      {
        schema: {
          ...tokenRoute('media', 'getMedia', 'State, progress and details of a clip'),
          params: Params,
          response: answers(200, DetailsShape, [401, 403, 404, 410, 429]),
        },
      },
      async (request) => describe(await findOwnClip(deps, tokenOf(request), request.params.id)),
    )
  })

  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.patch<{ Params: { id: string }; Body: Type.Static<typeof PatchBody> }>(
      '/media/:id',
      {
        schema: {
          ...tokenRoute('media', 'updateMedia', 'Changes texts, nsfw, attribution, visibility or lifetime'),
          params: Params,
          body: PatchBody,
          response: answers(200, DetailsShape, [400, 401, 403, 404, 408, 410, 413, 415, 422, 429]),
        },
        preValidation: async ({ body }) => {
          const changes = body as { attribution?: unknown } | null
          if (changes?.attribution) changes.attribution = withoutNulls(changes.attribution)
        },
      },
      async (request) => {
        const clip = await findOwnClip(deps, tokenOf(request), request.params.id)
        const { id, tokenId } = clip
        const texts = readChanges(request.body)
        const access = readAccess(request.body, accessRulesOf(deps, tokenId))
        const fields = Object.keys(PatchBody.properties).filter((name) => Object.hasOwn(request.body, name))
        const alongside = auditAdmin(deps, request, clip, { action: 'clip_changed', details: { fields } })
        if (access) await changeAccess(deps, id, { texts, access, alongside })
        else if (Object.keys(texts).length > 0) await changeTexts(deps, id, { texts, alongside })
        return describe(await findOwnClip(deps, tokenOf(request), id))
      },
    )
  })

  const anonymous = ({ headers }: FastifyRequest) => headers['x-delete-token'] !== undefined
  await addTokenRoutes(app, deps, { scope: 'delete', anonymous }, async (part) => {
    part.delete<{ Params: { id: string }; Headers: { 'x-delete-token'?: string } }>(
      '/media/:id',
      {
        schema: {
          operationId: 'deleteMedia',
          tags: ['media'],
          summary: 'Deletes a clip permanently',
          security: [...TOKEN_SECURITY, { deleteToken: [] }],
          params: Params,
          headers: Type.Object({
            'x-delete-token': Type.Optional(
              Type.String({ description: 'Delete token of the clip, from the answer to its upload.' }),
            ),
          }),
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 410, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const { id } = request.params
        const clip = request.apiToken ? await findOwnClip(deps, request.apiToken, id) : undefined
        if (!clip) await requireDeleteToken(deps.db, id, request.headers['x-delete-token'] ?? '')
        const alongside = clip && auditAdmin(deps, request, clip, { action: 'clip_deleted' })
        const isDeleted = await softDeleteClip(deps, id, { alongside })
        deps.knownFiles.evict(id)
        if (!isDeleted) throw apiError('gone')
        return reply.code(204).send()
      },
    )
  })
}

/** Throws not_found for a clip of another token, too. */
export async function findOwnClip({ db, now }: Pick<Deps, 'db' | 'now'>, token: ApiToken, id: string): Promise<Clip> {
  const clip = isClipId(id) ? await findClip(db, id, now()) : undefined
  if (!clip || !(clip.tokenId === token.id || allows(token, 'admin'))) throw apiError('not_found')
  if (clip.state === 'deleted') throw apiError('gone')
  return clip
}

/** Step of a transaction that records the act of an admin on a clip of others; undefined for the owner of the clip. */
export function auditAdmin(
  deps: Pick<Deps, 'newId' | 'now'>,
  request: FastifyRequest,
  { id, tokenId }: Pick<Clip, 'id' | 'tokenId'>,
  act: Omit<Act, 'target'>,
): ((trx: Kysely<DB>) => Promise<unknown>) | undefined {
  if (tokenOf(request).id === tokenId) return undefined
  return (trx) => recordAct(deps, trx, adminOf(request), { ...act, target: id })
}

type Alongside = ReturnType<typeof auditAdmin>

async function changeTexts(
  { db }: Pick<Deps, 'db'>,
  id: string,
  { texts, alongside }: { texts: Partial<ClipFields>; alongside: Alongside },
): Promise<void> {
  const change = async (on: Kysely<DB>) => {
    if (!(await updateClip(on, id, texts))) throw apiError('gone')
    await alongside?.(on)
  }
  // The owner's change is one statement.
  await (alongside ? db.transaction().execute(change) : change(db))
}

/** An unknown clip, a clip without a delete token and a wrong token get the same answer. */
async function requireDeleteToken(db: Kysely<DB>, id: string, presented: string): Promise<void> {
  const hash = isClipId(id) ? await findDeleteTokenHash(db, id) : undefined
  if (!hash || !timingSafeEqual(hash, hashToken(presented))) throw apiError('not_found')
}

/** Locks the clip first: another change at once must not bring back what this one replaces. */
async function changeAccess(
  { db, knownFiles, now }: Pick<Deps, 'db' | 'knownFiles' | 'now'>,
  id: string,
  { texts, access, alongside }: { texts: Partial<ClipFields>; access: AccessChanges; alongside: Alongside },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const current = await lockAccess(trx, id)
    if (!current || isExpired(current, now())) throw apiError('gone')
    await updateClip(trx, id, { ...texts, access: applyAccess(current, access, now()) })
    await alongside?.(trx)
  })
  knownFiles.evict(id)
}

/** Null keeps a clip for ever. Undefined if nothing is to be changed. */
function readAccess(body: Type.Static<typeof PatchBody>, rules: AccessRules): AccessChanges | undefined {
  const { visibility, expires_in: span, expires_at: end, sliding } = body
  const given = [visibility, span, end, sliding].some((value) => value !== undefined)
  if (!given) return undefined
  const changes: AccessChanges = {
    ...((span === null || end === null) && { lifetime: null }),
    ...(sliding === null && { sliding: false }),
    ...cleanAccess(withoutNulls({ visibility, expires_in: span, expires_at: end, sliding }) as RawAccess, rules),
  }
  if (changes.lifetime === null && !rules.hasToken) throw invalidField('expires_in', 'can only be never with a token')
  return changes
}

function readChanges(body: Type.Static<typeof PatchBody>): Partial<ClipFields> {
  const cleaned = cleanFields(withoutNulls(body) as Parameters<typeof cleanFields>[0], 'attribution.')
  return Object.fromEntries(Object.entries(cleaned).filter(([name]) => Object.hasOwn(body, name)))
}
