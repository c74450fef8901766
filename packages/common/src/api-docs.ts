import { readFileSync } from 'node:fs'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { type Document, documentRoute, finishDocument, type SharedParts } from './api-document.ts'

export interface ApiDocs extends SharedParts {
  title: string
  version: string
  description: string
  /** Address at which clients find the service. */
  baseUrl: string
  /** Site of the operator, who answers questions about the service. */
  contact: { name: string; url: string }
  // biome-ignore lint/suspicious/noExplicitAny: OpenAPI's own type is a dependency of the plugin, not ours
  securitySchemes: Record<string, any>
  /** Groups of operations, in the order in which they are shown. */
  tags: readonly string[]
  /** Bodies that can be sent as they are, by operation: `POST /signup`. */
  examples: Readonly<Record<string, object>>
  /** The service's mark, an SVG of ours. */
  icon: string
}

/** `GET /openapi.json`, made from the routes' schemas, and a readable `/docs`. Call before routes are registered. */
export async function documentApi(app: FastifyInstance, docs: ApiDocs): Promise<void> {
  const { title, version, description, baseUrl, contact, securitySchemes, tags, examples } = docs
  await app.register(swagger, {
    // A base path may be the beginning of a route's own address.
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

interface Media {
  example?: unknown
  schema?: { properties?: Record<string, { examples?: unknown[] }> }
}

/** The parts of OpenAPI's paths that hold examples. */
type Paths = Record<string, Record<string, { requestBody?: { content?: Record<string, Media> } }>>

/** Throws where an example has no body to stand for: the operation was renamed. */
function addExamples(paths: object, examples: ApiDocs['examples']): void {
  for (const [operation, example] of Object.entries(examples)) {
    const [method = '', path = ''] = operation.split(' ')
    const content = (paths as Paths)[path]?.[method.toLowerCase()]?.requestBody?.content ?? {}
    const [media] = Object.values(content)
    if (!media) throw new Error(`no body is documented for ${operation}`)
    if (!('multipart/form-data' in content)) {
      media.example = example
      continue
    }
    // Forms are filled in by field; the file is for the reader to choose.
    for (const [name, value] of Object.entries(example)) {
      const field = media.schema?.properties?.[name]
      if (field) field.examples = [value]
    }
  }
}

/** Everything comes from here; Swagger UI puts pictures and videos of answers into `blob:` addresses. */
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

const asset = (name: string) => readFileSync(new URL(`api-docs/${name}`, import.meta.url), 'utf8')

/** Swagger UI's files below a page of ours: its own has no viewport, other people's name, and an inline style. */
async function docsPage(app: FastifyInstance, { title, icon, baseUrl }: ApiDocs): Promise<void> {
  const { pathname } = new URL(baseUrl)
  app.addHook('onSend', async ({ url }, reply, payload) => {
    if (!String(reply.getHeader('content-type')).startsWith('text/html')) return payload
    reply.header('referrer-policy', 'strict-origin-when-cross-origin')
    // Addresses relative to the page, which may be below a path that we do not know, and has a slash at its end or has not.
    return pageOf(title, url.split('?', 1)[0]?.endsWith('/') ? 'static' : 'docs/static')
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: POLICY,
    // Requests go to where the page came from, which may have more addresses than one; its policy allows no other.
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

const pageOf = (title: string, at: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} API</title>
<link rel="icon" type="image/svg+xml" href="${at}/theme/icon.svg">
<link rel="stylesheet" href="${at}/swagger-ui.css">
<link rel="stylesheet" href="${at}/theme/docs.css">
<script src="${at}/swagger-ui-bundle.js" defer></script>
<script src="${at}/theme/docs.js" defer></script>
</head>
<body>
<header><img src="${at}/theme/icon.svg" width="32" height="32" alt=""><strong>${title}</strong><a href="${at}/../../openapi.json">openapi.json</a></header>
<main id="swagger-ui" data-document="${at}/../json"></main>
<noscript>This page needs JavaScript; openapi.json has the same for programs.</noscript>
</body>
</html>
`
