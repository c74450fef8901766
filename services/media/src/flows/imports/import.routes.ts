// POST and GET /media/import. Addresses are reached only through ingest/remote/, which refuses private networks. Tests:
// test/import.test.ts, test/sites.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withoutNulls } from '@services/common/http/json-parser'
import { endSlowBody } from '@services/common/http/request-hooks'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { cleanAlbumId } from '../../core/albums/album-fields.ts'
import { refuseAlbum } from '../../core/albums/new-clip.ts'
import { type AccessRules, accessRulesOf, cleanNewAccess } from '../../core/clips/access.ts'
import { cleanFields, cleanUrl, MAX_TAG_TEXTS, type RawFields } from '../../core/clips/clip-fields.ts'
import { cleanEdit } from '../../core/edits/edit.ts'
import type { MediaType } from '../../db/media-info.ts'
import { namesInWords } from '../../db/source-types.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { answerAttempt, parsePreference } from '../../http/answer-clip.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { clientGone } from '../../http/client-gone.ts'
import { addedAnswers } from '../../http/clip-details.ts'
import { type AddedFields, ALBUM_FIELD, ClipFormFields, readFormFields } from '../../http/form-fields.ts'
import { keyedRequest } from '../../http/idempotency-key.ts'
import { refuseEarly } from '../../http/refuse-early.ts'
import { AccessFields, AddHeaders, AddQuery, AttributionInput, EditFields, tokenRoute } from '../../http/shapes.ts'
import { beginRequest } from '../../ingest/accept/begin-request.ts'
import { type ImportInput, importClip } from './import-clip.ts'
import { acceptForms, ImportForm, isMultipart, parseQuery } from './import-form.http.ts'

const documentNull = (type: string) => inDocument({ type: [type, 'null'] })

const sourceField = (types: readonly MediaType[]) =>
  Type.String({ description: `Address of a file (${namesInWords(types, 'or')}), or of a page that shows one.` })

/** Members that are null count as absent. */
const importBody = (types: readonly MediaType[]) =>
  Type.Object({
    source: sourceField(types),
    ...clipMembers,
  })

/** Members of a clip that is added by JSON. */
export const clipMembers = {
  title: Type.Optional(Type.String(documentNull('string'))),
  tags: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_TAG_TEXTS, ...documentNull('array') })),
  nsfw: Type.Optional(Type.Boolean(documentNull('boolean'))),
  attribution: Type.Optional(Type.Object(AttributionInput.properties, documentNull('object'))),
  album: Type.Optional(Type.String({ description: ALBUM_FIELD, ...documentNull('string') })),
  ...AccessFields,
  ...EditFields,
}

/** The same as fields of a form or query. */
const formFields = (types: readonly MediaType[]) => ({ source: sourceField(types), ...ClipFormFields })

const REFUSALS = [400, 401, 403, 408, 409, 410, 413, 415, 422, 424, 429, 504, 507]

export const importRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { types } = deps.config.source
  requireToken(app, deps, { scope: 'write' })
  acceptForms(app)
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
      body: importBody(types),
      formBody: Type.Object(formFields(types)),
      response: addedAnswers(...REFUSALS),
    },
    onRequest: [
      (request, reply) => deps.limits.count(request, reply, 'import'),
      async (request, reply) => {
        // Forms of uploads may take long; this one has no file.
        if (!isMultipart(request.headers['content-type'])) return
        endSlowBody(request, reply, {
          withinMs: deps.timeLimits.slowBodyMs,
          refusal: () => apiError('request_too_slow'),
        })
      },
    ],
    onError: deps.limits.refund,
    preValidation: async (request) => {
      if (request.body instanceof ImportForm) return
      const body = withoutNulls(request.body) as Record<string, unknown>
      if (body.attribution) body.attribution = withoutNulls(body.attribution)
      request.body = body as typeof request.body
    },
    handler: (request, reply) => {
      const { body } = request
      const rules = accessRulesOf(deps, tokenOf(request).id)
      return addImport(deps, request, reply, body instanceof ImportForm ? readForm(body, rules) : readJson(body, rules))
    },
  })
  app.route({
    method: 'GET',
    url: '/media/import',
    // A HEAD must have no effect (RFC 9110 9.3.2).
    exposeHeadRoute: false,
    config: { changes: true },
    schema: {
      ...tokenRoute('media', 'importMediaByQuery', 'The same as POST /media/import, with its fields in the query'),
      headers: AddHeaders,
      querystring: Type.Object({ ...formFields(types), ...AddQuery.properties }),
      response: addedAnswers(...REFUSALS.filter((status) => status !== 408 && status !== 413)),
    },
    // The fields have several spellings; the schema above is documentation.
    validatorCompiler: () => () => true,
    onRequest: (request, reply) => deps.limits.count(request, reply, 'import'),
    onError: deps.limits.refund,
    handler: (request, reply) => {
      const { url = '' } = request.raw
      // The source may have a query, too.
      const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''
      const rules = accessRulesOf(deps, tokenOf(request).id)
      return addImport(deps, request, reply, readForm(parseQuery(query), rules))
    },
  })
}

type RequestedImport = AddedFields & Pick<ImportInput, 'url' | 'given'>

function readJson(
  { source, title, tags, nsfw, attribution, album, ...raw }: Static<ReturnType<typeof importBody>>,
  rules: AccessRules,
): RequestedImport {
  const url = cleanUrl('source', source)
  const fields = cleanFields({ title, tags, nsfw, attribution } as RawFields, 'attribution.')
  const access = cleanNewAccess(raw, rules)
  return {
    url,
    fields,
    access,
    edit: cleanEdit(raw),
    album: cleanAlbumId(album ?? '', rules),
    given: { nsfw: nsfw !== undefined },
  }
}

function readForm({ source, fields: texts }: ImportForm, rules: AccessRules): RequestedImport {
  if (source === undefined) throw apiError('missing_source')
  const url = cleanUrl('source', source)
  const nsfw = texts.findLast(({ name }) => name === 'nsfw')?.value.trim()
  return { url, ...readFormFields(texts, rules), given: { nsfw: Boolean(nsfw) } }
}

/** The stages from the request to the answer; the first that throws decides the answer. */
async function addImport(deps: Deps, request: FastifyRequest, reply: FastifyReply, input: RequestedImport) {
  const startedAt = Date.now()
  const { url, given: _, ...described } = input
  const gone = clientGone(reply)
  const attempt = await beginRequest(deps, keyedRequest(request, 'import', { content: url, ...described }), gone)
  const accept = async () => {
    await refuseEarly(deps, request, reply, { atLeastBytes: 1 })
    const { mp4First } = parsePreference(request.headers.prefer)
    const caller = { tokenId: tokenOf(request).id, startedAt, clientGone: gone, mp4First }
    await refuseAlbum(deps.db, { ...input, ...caller })
    return importClip(deps, { ...input, ...caller, alongside: attempt.record })
  }
  const clip = attempt.known ?? (await attempt.settle(accept()))
  return answerAttempt(deps, request, reply, { attempt, clip, startedAt, clientGone: gone })
}
