import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { html } from '../html.ts'
import { htmlDocument } from '../pages/document.ts'
import { type Document, documentRoute, finishDocument, type SharedParts } from './openapi-document.ts'

export interface ApiDocs extends SharedParts {
  title: string
  version: string
  description: string
  baseUrl: string
  contact: { name: string; url: string }
  // biome-ignore lint/suspicious/noExplicitAny: OpenAPI's own type is a dependency of the plugin, not ours
  securitySchemes: Record<string, any>
  tags: readonly string[]
  /** Example bodies by operation: `POST /signup`. */
  examples: Readonly<Record<string, object>>
  /** SVG of the service's logo; trusted markup. */
  icon: string
}

/** Serves `/openapi.json`, built from the routes' schemas, and `/docs`. Call it before routes are registered. */
export async function documentApi(app: FastifyInstance, docs: ApiDocs): Promise<void> {
  const { title, version, description, baseUrl, contact, securitySchemes, tags, examples } = docs
  await app.register(swagger, {
    // A route's own path may begin with the base path.
    stripBasePath: false,
    openapi: {
      openapi: '3.1.0',
      info: { title, version, description, contact, license: { name: 'MIT', identifier: 'MIT' } },
      servers: [{ url: baseUrl.replace(/\/$/, '') }],
      tags: tags.map((name) => ({ name })),
      components: { securitySchemes },
    },
    transform: ({ schema, url }) => ({ schema: documentRoute(schema), url }),
    transformObject: (made) => {
      if (!('openapiObject' in made)) return made.swaggerObject
      const document = made.openapiObject as Document
      finishDocument(document, docs)
      addExamples(document.paths, examples)
      return made.openapiObject
    },
  })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
  await app.register(docsPage, docs)
}

/** Throws for an example without a body, whose operation was renamed. */
function addExamples(paths: Document['paths'], examples: ApiDocs['examples']): void {
  for (const [operation, example] of Object.entries(examples)) {
    const [method = '', path = ''] = operation.split(' ')
    const content = paths[path]?.[method.toLowerCase()]?.requestBody?.content ?? {}
    const [type, media] = Object.entries(content)[0] ?? []
    if (!media) throw new Error(`no body is documented for ${operation}`)
    if (type !== 'multipart/form-data') {
      media.example = example
      continue
    }
    // Forms take examples by field; the reader chooses the file.
    for (const [name, value] of Object.entries(example)) {
      const { [name]: field } = media.schema.properties ?? {}
      if (field) field.examples = [value]
    }
  }
}

/** Swagger UI shows images and videos of answers from `blob:` URLs; all else comes from this origin. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'media-src blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Found by the name of the package, which the bundle of an image (infra/bundle) contains without these files. */
const STATIC_FILES = join(dirname(fileURLToPath(import.meta.resolve('@fastify/swagger-ui/package.json'))), 'static')

const asset = (name: string) => readFileSync(new URL(`api-docs/${name}`, import.meta.url), 'utf8')

/** Serves Swagger UI in our own page: its page has no viewport, another name and an inline style. */
async function docsPage(app: FastifyInstance, { title, icon, baseUrl }: ApiDocs): Promise<void> {
  const { pathname } = new URL(baseUrl)
  app.addHook('onSend', async ({ url }, reply, payload) => {
    if (!String(reply.getHeader('content-type')).startsWith('text/html')) return payload
    // A request that is tried here must not name the page: auth would lead the links of its mail there.
    reply.header('referrer-policy', 'no-referrer')
    // Relative URLs: the page may stand below an unknown path, with or without a trailing slash.
    return pageOf(title, url.split('?', 1)[0]?.endsWith('/') ? 'static' : 'docs/static')
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    baseDir: STATIC_FILES,
    logo: { type: 'image/svg+xml', content: icon },
    staticCSP: POLICY,
    // Requests go to the page's own origin, the only one its policy allows.
    transformSpecification: ({ servers: _external, ...document }) => ({
      ...document,
      ...(pathname !== '/' && { servers: [{ url: pathname.replace(/\/$/, '') }] }),
    }),
    theme: {
      css: [{ filename: 'docs.css', content: asset('docs.css') }],
      js: [{ filename: 'docs.js', content: asset('docs.js') }],
      favicon: [{ filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: icon }],
    },
  })
}

const pageOf = (title: string, at: string) =>
  htmlDocument({
    ...{ language: 'en', title: `${title} API`, isIndexed: true, icon: `${at}/theme/icon.svg` },
    head: html`<link rel="stylesheet" href="${at}/swagger-ui.css">
<link rel="stylesheet" href="${at}/theme/docs.css">
<script src="${at}/swagger-ui-bundle.js" defer></script>
<script src="${at}/theme/docs.js" defer></script>
`,
    body: html`<header><img src="${at}/theme/icon.svg" width="32" height="32" alt=""><strong>${title}</strong><a href="${at}/../../openapi.json">openapi.json</a></header>
<div id="swagger-ui" data-document="${at}/../json"></div>
<noscript>This page needs JavaScript; openapi.json has the same for programs.</noscript>`,
  })
