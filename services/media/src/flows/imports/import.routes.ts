// POST /media/import. The one rule: addresses are reached only through ingest/remote/, which refuses private networks.
// Tests: test/import.test.ts, test/sites.test.ts. Next: import-clip.ts, ingest/.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/documented'
import { withoutNulls } from '@services/common/json-body'
import { Type } from 'typebox'
import { cleanFields, cleanUrl, MAX_TAG_TEXTS } from '../../core/clips/clip-fields.ts'
import { cleanEdit } from '../../core/edits/edit.ts'
import { namesInWords } from '../../db/source-types.ts'
import type { MediaType } from '../../db/media-info.ts'
import type { Deps } from '../../deps.ts'
import { checkAllowance } from '../../http/allowance-headers.ts'
import { answerClip, parsePreference } from '../../http/answer-clip.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { clientGone } from '../../http/client-gone.ts'
import { addedAnswers } from '../../http/clip-details.ts'
import { keyedRequest } from '../../http/idempotency-key.ts'
import { AddHeaders, AddQuery, AttributionInput, EditFields, tokenRoute } from '../../http/shapes.ts'
import { type NewClipInput, refuseWhenBusy } from '../../ingest/accept/accept-clip.ts'
import { acceptOnce, failAfterwards } from '../../ingest/accept/accept-once.ts'
import { importClip } from './import-clip.ts'

const documentNull = (type: string) => inDocument({ type: [type, 'null'] })

/** Members that are null count as absent. */
const importBody = (types: readonly MediaType[]) =>
  Type.Object({
    source: Type.String({
      description: `Address of a file (${namesInWords(types, 'or')}), or of a page that shows one.`,
    }),
    ...importFields,
  })

const importFields = {
  title: Type.Optional(Type.String(documentNull('string'))),
  tags: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_TAG_TEXTS, ...documentNull('array') })),
  nsfw: Type.Optional(Type.Boolean(documentNull('boolean'))),
  attribution: Type.Optional(Type.Object(AttributionInput.properties, documentNull('object'))),
  ...EditFields,
}

export const importRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'write' })
  app.route({
    method: 'POST',
    url: '/media/import',
    schema: {
      ...tokenRoute(
        'media',
        'importMedia',
        'Adds the clip at an address, or on the page there; answers when the clip is ready',
      ),
      headers: AddHeaders,
      querystring: AddQuery,
      body: importBody(deps.config.source.types),
      response: addedAnswers(400, 401, 403, 408, 409, 410, 413, 415, 422, 424, 429, 504, 507),
    },
    onRequest: (request, reply) => deps.limits.count(request, reply, 'import'),
    onError: deps.limits.giveBack,
    preValidation: async (request) => {
      const body = withoutNulls(request.body) as Record<string, unknown>
      if (body.attribution) body.attribution = withoutNulls(body.attribution)
      request.body = body as typeof request.body
    },
    handler: async (request, reply) => {
      const startedAt = Date.now()
      const { source, title, tags, nsfw, attribution, ...raw } = request.body
      const url = cleanUrl('source', source)
      const given = { nsfw: nsfw !== undefined }
      const fields = cleanFields({ title, tags, nsfw, attribution }, 'attribution.')
      const edit = cleanEdit(raw)
      const input = { url, fields, edit, given, tokenId: tokenOf(request).id }
      const gone = clientGone(reply)
      const keyed = keyedRequest(request, 'import', { content: url, fields, edit })
      const accept = async (alongside: NewClipInput['alongside']) => {
        await refuseWhenBusy(deps, input.tokenId, tokenOf(request).limits)
        await checkAllowance(deps, request, reply, { atLeastBytes: 1 })
        const { mp4First } = parsePreference(request.headers.prefer)
        return importClip(deps, { ...input, startedAt, clientGone: gone, alongside, mp4First })
      }
      const { clip, isReplay } = await acceptOnce(deps, keyed, accept, gone)
      if (isReplay) reply.header('idempotency-replayed', 'true')
      return answerClip(deps, request, reply, { clip, startedAt, clientGone: gone }).catch((error) =>
        failAfterwards(deps, keyed, clip, error),
      )
    },
  })
}
