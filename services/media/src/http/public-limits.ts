// Limits of public pages and files by client address, in the memory of one process, because counting must cost less
// than the page. Only with a trusted address header: otherwise all callers share one counter, and one could block the
// pages for all. Calls with a token, and uploads without one: rate-limit.ts.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { addressKeyOf } from './rate-limit.ts'

/** Bounds memory: further addresses in a window are not counted. */
const MAX_ADDRESSES = 100_000

/** Counts every call in this scope. */
export function limitCalls(app: FastifyInstance, deps: Deps): void {
  const counts = openCounts(deps)
  if (!counts) return
  app.addHook('onRequest', async (request) => {
    counts.refuseOver(request)
    counts.count(request)
  })
}

/** Counts calls answered 404 or 410: a caller that guesses ids is refused without a query. */
export function limitNotFound(app: FastifyInstance, deps: Deps): void {
  const counts = openCounts(deps)
  if (!counts) return
  app.addHook('onRequest', async (request) => counts.refuseOver(request))
  app.addHook('onResponse', async (request, { statusCode }) => {
    if (statusCode === 404 || statusCode === 410) counts.count(request)
  })
}

/** Fixed windows, which begin for all addresses at once. */
function openCounts({ config: { limits }, now }: Deps) {
  const { header, public: rate } = limits
  if (!header) return undefined
  const windowMs = rate.seconds * 1000
  let counts = new Map<string, number>()
  let endsAt = 0
  const renew = () => {
    const moment = now().getTime()
    if (moment < endsAt) return moment
    counts = new Map()
    endsAt = moment + windowMs
    return moment
  }
  return {
    count: (request: FastifyRequest) => {
      renew()
      const address = addressKeyOf(request, header)
      const before = counts.get(address)
      if (before !== undefined || counts.size < MAX_ADDRESSES) counts.set(address, (before ?? 0) + 1)
    },
    refuseOver: (request: FastifyRequest) => {
      const moment = renew()
      if ((counts.get(addressKeyOf(request, header)) ?? 0) < rate.points) return
      throw apiError('rate_limited', { retryAfterSeconds: Math.max(1, Math.ceil((endsAt - moment) / 1000)) })
    },
  }
}
