// What anybody may do without a token, by address: in the memory of one process, because it must cost less than what it
// bounds. Only where a trusted proxy says the address; else all callers are one, and one could close the pages to all.
// Calls with a token, and uploads without: rate-limit.ts.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import { addressKeyOf } from './rate-limit.ts'

/** More addresses than these in one window are not counted: memory is worth more. */
const MOST_ADDRESSES = 100_000

interface LimitDeps {
  config: { limits: Pick<Config['limits'], 'header' | 'public'> }
  now: () => Date
}

/** Every call in this scope counts: pages and oEmbed. */
export function limitCalls(app: FastifyInstance, deps: LimitDeps): void {
  const counts = openCounts(deps)
  if (!counts) return
  app.addHook('onRequest', async (request) => {
    counts.refuseOver(request)
    counts.count(request)
  })
}

/** What is not there counts: whoever tries addresses of files is refused without a look at the database. */
export function limitMisses(app: FastifyInstance, deps: LimitDeps): void {
  const counts = openCounts(deps)
  if (!counts) return
  app.addHook('onRequest', async (request) => counts.refuseOver(request))
  app.addHook('onResponse', async (request, { statusCode }) => {
    if (statusCode === 404 || statusCode === 410) counts.count(request)
  })
}

/** In windows that begin for all addresses at once. */
function openCounts({ config: { limits }, now }: LimitDeps) {
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
      if (before !== undefined || counts.size < MOST_ADDRESSES) counts.set(address, (before ?? 0) + 1)
    },
    refuseOver: (request: FastifyRequest) => {
      const moment = renew()
      if ((counts.get(addressKeyOf(request, header)) ?? 0) < rate.points) return
      throw apiError('rate_limited', { retryAfterSeconds: Math.max(1, Math.ceil((endsAt - moment) / 1000)) })
    },
  }
}
