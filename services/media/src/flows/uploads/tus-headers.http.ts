import type { FastifyInstance } from 'fastify'

export const TUS_VERSION = '1.0.0'

/** Without concatenation: a clip is small enough for one sequence of pieces. */
export const TUS_EXTENSIONS = ['creation', 'creation-with-upload', 'creation-defer-length', 'termination', 'expiration']

export const TUS_REQUEST_HEADERS = [
  'Tus-Resumable',
  'Upload-Concat',
  'Upload-Defer-Length',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-HTTP-Method-Override',
]

export const TUS_RESPONSE_HEADERS = [
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Resumable',
  'Tus-Version',
  'Upload-Defer-Length',
  'Upload-Expires',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-Media',
  'X-Media-Id',
]

/** Adds the protocol's headers to all answers under /tus, including the CORS plugin's answer to OPTIONS. */
export function announceTus(app: FastifyInstance, { maxBytes }: { maxBytes: number }): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (/^\/tus(\/|\?|$)/.test(request.url)) {
      reply.headers({ 'tus-resumable': TUS_VERSION, 'tus-version': TUS_VERSION })
      if (request.method === 'OPTIONS') {
        reply.headers({ 'tus-extension': TUS_EXTENSIONS.join(','), 'tus-max-size': maxBytes })
      }
    }
    done()
  })
}
