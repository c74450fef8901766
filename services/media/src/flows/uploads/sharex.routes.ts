import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Config } from '../../config.ts'
import { allows } from '../../core/tokens/scopes.ts'
import type { Deps } from '../../deps.ts'
import { addTokenRoutes, presentedToken, tokenOf } from '../../http/authenticate.ts'
import { counted, errorResponses, tokenRoute } from '../../http/shapes.ts'

const text = Type.String()
/** ShareX defines the format: getsharex.com/docs/custom-uploader. */
const SharexConfig = Type.Object({
  ...{ Version: text, Name: text, DestinationType: text, RequestMethod: text, RequestURL: text },
  Headers: Type.Record(Type.String(), text),
  ...{
    Body: text,
    FileFormName: text,
    URL: text,
    ThumbnailURL: text,
    DeletionURL: Type.Optional(text),
    ErrorMessage: text,
  },
})

/** GET /sharex.sxcu: settings with which ShareX uploads under the caller's token. */
export const sharexRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  await addTokenRoutes(app, deps, { scope: 'write', byHeaderAlone: true }, async (part) => {
    part.get(
      '/sharex.sxcu',
      {
        schema: {
          ...tokenRoute('media', 'getSharexConfig', 'Settings for ShareX, with the token of the request'),
          response: { 200: counted(SharexConfig, 'Content-Disposition'), ...errorResponses(401, 403, 429) },
        },
      },
      async (request, reply) => {
        const name = new URL(site.baseUrl).hostname
        // The body holds a secret.
        reply.headers({ 'cache-control': 'no-store', 'content-disposition': `attachment; filename="${name}.sxcu"` })
        const mayDelete = allows(tokenOf(request), 'delete')
        return sharexConfig(site, { token: presentedToken(request) ?? '', mayDelete })
      },
    )
  })
}

/** `{json:…}` and `{header:…}` are the format's own: ShareX reads them from the answer. */
const sharexConfig = (
  { baseUrl, name }: Config['site'],
  { token, mayDelete }: { token: string; mayDelete: boolean },
) => ({
  Version: '15.0.0',
  Name: name,
  DestinationType: 'ImageUploader, FileUploader',
  RequestMethod: 'POST',
  RequestURL: `${baseUrl}/media/upload`,
  Headers: { Token: token, ...(mayDelete && { Prefer: 'delete-link' }) },
  Body: 'MultipartFormData',
  FileFormName: 'file',
  URL: '{json:success.page}',
  ThumbnailURL: '{json:success.files.jpg}',
  ...(mayDelete && { DeletionURL: '{header:X-Delete-URL}' }),
  ErrorMessage: '{json:error.message}',
})
