import { median } from '@services/common/bench/median'
import type { startReport } from '@services/common/bench/report'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createViewCounter } from '../src/core/views/view-counter.ts'
import { recordView } from '../src/http/record-view.ts'

const CALLS = 100_000
const ROUNDS = 7
const BOUND_US = 3

const CLIPS = 2000
const AGENT =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

/**
 * Measures the processor time that counting adds to a page: the same visitor again and again, then visitors that fill
 * the table of recent ones. The statement of each ten seconds is not part of it.
 */
export function measureViewCost(report: ReturnType<typeof startReport>): void {
  const row = { against: 'the bound', unit: 'µs', theirs: BOUND_US, compared: 'ratio' as const, goal: { atMost: 1 } }
  report.row({ ...row, id: 'view-again', what: 'counting a view, repeated', ours: median(costs(1)) })
  report.row({ ...row, id: 'view-new', what: 'counting a view, of many visitors', ours: median(costs(CALLS)) })
}

/** Microseconds of a call in each round, the first of which only warms up. */
function costs(visitors: number): number[] {
  const requests = Array.from({ length: visitors }, (_, index) => requestOf(index))
  const viewCounter = createViewCounter({ db: {} as never, log: {} as never, now: () => new Date() })
  const deps = { config: { views: { areCounted: true }, limits: {}, site: {} }, viewCounter } as never
  const reply = { statusCode: 200 } as FastifyReply
  const measured: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let index = 0; index < CALLS; index++) {
      const request = requests[index % visitors] as FastifyRequest
      recordView(deps, request, reply, { clipId: `clip${index % Math.min(visitors, CLIPS)}`, kind: 'page' })
    }
    const { user, system } = process.cpuUsage(before)
    if (round > 0) measured.push((user + system) / CALLS)
  }
  return measured
}

const requestOf = (index: number) =>
  ({
    method: 'GET',
    ip: `10.0.${index % 251}.${index % 241}`,
    headers: { 'user-agent': AGENT },
  }) as unknown as FastifyRequest
