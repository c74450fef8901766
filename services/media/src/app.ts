// The map of the service: every hook and route, in scopes by the token they need. A route that is not here does not
// exist. Tests: test/wire.test.ts, test/discovery.test.ts.
import cors from '@fastify/cors'
import { documentApi } from '@services/common/http/api-docs'
import { installErrorHandler } from '@services/common/http/error-handler'
import { healthRoutes } from '@services/common/http/health.routes'
import { createHttpServer } from '@services/common/http/http-server'
import { endSlowBodies } from '@services/common/http/request-hooks'
import type { FastifyInstance } from 'fastify'
import { apiDocs } from './api-docs.ts'
import type { Deps } from './deps.ts'
import { apiError, ERRORS_PATH } from './errors.ts'
import { adminRoutes } from './flows/admin/admin.routes.ts'
import { albumRoutes } from './flows/albums/album.routes.ts'
import { albumLinkRoutes } from './flows/albums/album-link.routes.ts'
import { itemRoutes } from './flows/albums/item.routes.ts'
import { archiveRoutes } from './flows/clips/archive/archive.routes.ts'
import { bulkRoutes } from './flows/clips/bulk/bulk.routes.ts'

import { clipRoutes } from './flows/clips/clip.routes.ts'
import { eventRoutes } from './flows/clips/events.routes.ts'
import { linkRoutes } from './flows/clips/link.routes.ts'
import { listRoutes } from './flows/clips/list.routes.ts'
import { liveRoutes } from './flows/clips/live/live.routes.ts'
import { tagRoutes } from './flows/clips/tags.routes.ts'
import { viewRoutes } from './flows/clips/views.routes.ts'
import { fileRoutes } from './flows/files/file.routes.ts'
import { reviewRoutes } from './flows/files/review.routes.ts'
import { variantRoutes } from './flows/files/variants/variant.routes.ts'
import { copyRoutes } from './flows/imports/copy.routes.ts'
import { importRoutes } from './flows/imports/import.routes.ts'
import { moderationRoutes } from './flows/moderation/moderation.routes.ts'
import { adminPageRoutes } from './flows/pages/admin/admin.routes.ts'
import { albumPageRoutes } from './flows/pages/album/album.routes.ts'
import { elementRoutes } from './flows/pages/element.routes.ts'
import { homeRoutes } from './flows/pages/home/home.routes.ts'
import { libraryRoutes } from './flows/pages/library/library.routes.ts'
import { ownAlbumRoutes } from './flows/pages/library/own-albums.routes.ts'
import { oembedRoutes } from './flows/pages/oembed.routes.ts'
import { pageRoutes } from './flows/pages/page.routes.ts'
import { reportRoutes } from './flows/pages/report.routes.ts'
import { sessionRoutes } from './flows/pages/session/session.routes.ts'
import { ownUsageRoutes } from './flows/tokens/own-usage.routes.ts'
import { tokenRoutes } from './flows/tokens/token.routes.ts'
import { tokenUsageRoutes } from './flows/tokens/token-usage.routes.ts'
import { sharexRoutes } from './flows/uploads/sharex.routes.ts'
import { tusRoutes } from './flows/uploads/tus.routes.ts'
import { announceTus, TUS_REQUEST_HEADERS, TUS_RESPONSE_HEADERS } from './flows/uploads/tus-headers.http.ts'
import { uploadRoutes } from './flows/uploads/upload.routes.ts'
import { clipDeliveryRoutes } from './flows/webhooks/clip-deliveries.routes.ts'
import { webhookRoutes } from './flows/webhooks/webhook.routes.ts'
import { acceptJsonBodies } from './http/body-parsers.ts'
import { answerProblems, errorAnswers } from './http/error-bodies.ts'
import { healthRoute } from './http/health.routes.ts'
import { limitCalls, limitNotFound } from './http/public-limits.ts'
import { endStalledAnswers } from './http/stalled-answer.ts'

/** Paths without a version stay version 1; the next would be under `/v2`. */
const API_VERSION = '1'

/** Headers only: bodies may take long, and uploads watch their own speed. */
const HEADERS_WITHIN_MS = 15_000

export async function createApp(deps: Deps): Promise<FastifyInstance> {
  const { config, timeLimits } = deps
  const answers = errorAnswers(config.site.baseUrl + ERRORS_PATH)
  const isStopping = () => deps.stopping.aborted
  const app = createHttpServer(
    {
      ...{ name: 'media', externalUrl: config.site.baseUrl, log: deps.log, telemetry: config.telemetry, answers },
      requestIdHeader: config.server.requestIdHeader,
      refusal: (status, message) =>
        apiError(status === 415 ? 'unsupported_media_type' : 'invalid_request', { message: `${message}.` }),
      isStopping,
      headers: { 'api-version': API_VERSION },
      unreadBodies: { ms: timeLimits.unreadBodyMs },
    },
    { http: { headersTimeout: HEADERS_WITHIN_MS }, requestTimeout: 0, routerOptions: { maxParamLength: 200 } },
  )
  // Node closes further connections unanswered.
  app.server.maxConnections = config.server.maxConnections
  app.removeContentTypeParser('text/plain')
  acceptJsonBodies(app)
  answerProblems(app)
  endStalledAnswers(app, timeLimits.stalledAnswerMs)
  endSlowBodies(app, timeLimits.slowBodyMs, () => apiError('request_too_slow'))
  announceTus(app, config.source)
  // Safe for any origin: no answer allows credentials, so a page can do only as much as its token allows.
  await app.register(cors, {
    origin: '*',
    strictPreflight: false,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: CORS_REQUEST_HEADERS,
    exposedHeaders: CORS_RESPONSE_HEADERS,
    maxAge: 600,
  })
  // After the headers that refusals need too, and before the routes, whose methods it reports.
  installErrorHandler(app, answers)
  await documentApi(app, apiDocs(config.site))

  // No token
  healthRoutes(app, { pool: deps.pool, isStopping })
  await app.register(healthRoute)
  await app.register(async (part) => {
    limitNotFound(part, deps)
    await part.register(fileRoutes, { deps })
    await part.register(variantRoutes, { deps })
  })
  await app.register(async (part) => {
    limitCalls(part, deps)
    await part.register(homeRoutes, { deps })
    await part.register(pageRoutes, { deps })
    await part.register(albumPageRoutes, { deps })
    await part.register(oembedRoutes, { deps })
    await part.register(elementRoutes, { deps })
    await part.register(reportRoutes, { deps })
    await part.register(sessionRoutes, { deps })
    await part.register(libraryRoutes, { deps })
    await part.register(ownAlbumRoutes, { deps })
    await part.register(adminPageRoutes, { deps })
  })

  // API token (uploads: see UPLOAD_AUTH)
  await app.register(uploadRoutes, { deps })
  await app.register(tusRoutes, { deps })
  await app.register(importRoutes, { deps })
  await app.register(copyRoutes, { deps })
  await app.register(sharexRoutes, { deps })
  await app.register(listRoutes, { deps })
  await app.register(clipRoutes, { deps })
  await app.register(bulkRoutes, { deps })
  await app.register(archiveRoutes, { deps })
  await app.register(linkRoutes, { deps })
  await app.register(albumLinkRoutes, { deps })
  await app.register(eventRoutes, { deps })
  await app.register(liveRoutes, { deps })
  await app.register(tagRoutes, { deps })
  await app.register(viewRoutes, { deps })
  await app.register(ownUsageRoutes, { deps })
  await app.register(albumRoutes, { deps })
  await app.register(itemRoutes, { deps })
  await app.register(webhookRoutes, { deps })
  await app.register(clipDeliveryRoutes, { deps })

  // Scope `admin`
  await app.register(tokenRoutes, { deps })
  await app.register(tokenUsageRoutes, { deps })
  await app.register(adminRoutes, { deps })
  await app.register(moderationRoutes, { deps })
  await app.register(reviewRoutes, { deps })
  return app
}

const CORS_REQUEST_HEADERS = [
  'Accept',
  'Authorization',
  'Content-Type',
  'Gifs-API-Key',
  'Idempotency-Key',
  'If-Match',
  'If-Modified-Since',
  'If-None-Match',
  'If-Range',
  'Last-Event-ID',
  'Prefer',
  'Range',
  'Token',
  'X-Delete-Token',
  // Sent by pages that trace.
  'baggage',
  'traceparent',
  'tracestate',
  ...TUS_REQUEST_HEADERS,
]

const CORS_RESPONSE_HEADERS = [
  'API-Version',
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Length',
  'Content-Range',
  'ETag',
  'Idempotency-Replayed',
  'Link',
  'Location',
  'Preference-Applied',
  'RateLimit-Limit',
  'RateLimit-Policy',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'X-Daily-Bytes-Limit',
  'X-Daily-Bytes-Remaining',
  'X-Delete-Token',
  'X-Delete-URL',
  'X-Expires-At',
  'X-Media-Ready',
  'X-Media-State',
  'X-Quota-Limit',
  'X-Quota-Remaining',
  'X-Request-Id',
  ...TUS_RESPONSE_HEADERS,
]
