import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import { requestAudience } from '../../http/caller/authenticate.ts'
import { clientOf, limitKeyOf, networkOf } from '../../http/limits/client.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'

/** Parts of a message request that depend on its requester. */
export const requesterOf = (request: FastifyRequest, config: Config) => ({
  audience: requestAudience(request, config.jwt),
  context: mailContextOf(request, config),
  origin: clientOf(request, config),
  network: networkOf(request, config),
  trustedNetwork: limitKeyOf(request, config),
})
