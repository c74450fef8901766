import { isIP } from 'node:net'
import { Agent, type Dispatcher, request } from 'undici'
import { createSemaphore } from '../concurrency/semaphore.ts'
import { tracedRequest } from '../telemetry/spans.ts'
import { AnswerTooLarge } from '../upstream/read-text.ts'
import type { Egress, EgressOptions, EgressRequest } from './egress.ts'
import { guardedConnector } from './guarded-connector.ts'
import { limitCrumbs } from './limit-crumbs.ts'
import { resolveName } from './resolve-name.ts'
import { createGuard, targetOf } from './ssrf-guard.ts'

const CONNECT_MS = 5_000

/** Servers that hang hold their slots until the timeout; one host never takes them all. */
const AT_ONCE = { atOnce: 64, waiting: 512, waitMs: Number.POSITIVE_INFINITY, perKey: { atOnce: 16, waiting: 128 } }

/** Builds the client of open-egress.ts. Throws when a CIDR is malformed. */
export function createGuardedFetch({ userAgent, resolve = resolveName, ...options }: EgressOptions): Egress {
  const guard = createGuard(options)
  const agent = new Agent({
    connect: guardedConnector(guard, resolve, CONNECT_MS),
    maxHeaderSize: 16_384,
    connections: AT_ONCE.perKey.atOnce,
    pipelining: 1,
  })
  const dispatcher = agent.compose(limitCrumbs(() => new Error('the answer comes in crumbs')))
  const slots = createSemaphore(AT_ONCE, () => new Error('too many requests to other servers at once'))

  return {
    async check(address) {
      const url = guard.parseUrl(address)
      const target = targetOf(url)
      if (isIP(target.hostname)) return url
      const found = await resolve(target.hostname)
      if (found.length === 0 || !found.every(({ address }) => guard.permits(target, address))) {
        throw guard.refuse('refused address')
      }
      return url
    },
    async fetch(address, sent, { timeoutMs, maxBytes }) {
      const url = guard.parseUrl(address)
      const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(sent.signal ? [sent.signal] : [])])
      const whose = { key: url.host, signal }
      return slots.run(() => send(dispatcher, url, { ...sent, userAgent, signal, maxBytes }), whose)
    },
    close: () => agent.destroy(),
  }
}

interface Sent extends EgressRequest {
  userAgent: string
  signal: AbortSignal
  maxBytes: number
}

async function send(dispatcher: Dispatcher, url: URL, sent: Sent): Promise<Response> {
  const { method = 'GET', signal, maxBytes } = sent
  const headers = new Headers({ 'user-agent': sent.userAgent, ...Object.fromEntries(new Headers(sent.headers)) })
  headers.set('accept-encoding', 'identity')
  const body = sent.body === undefined || sent.body === null ? null : String(sent.body)
  try {
    const answer = await tracedRequest(
      // A chosen server must not see our trace.
      { url: url.href, method, sendsTrace: false },
      () => request(url, { dispatcher, signal, body, method: method as Dispatcher.HttpMethod, headers }),
      ({ statusCode }) => statusCode,
    )
    const { statusCode: status, headers: received } = answer
    const whole = await readWhole(answer.body, maxBytes)
    const encoding = String(received['content-encoding'] ?? 'identity').toLowerCase()
    if (encoding !== 'identity') throw new Error('the answer is compressed')
    const pairs = Object.entries(received).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, each]))
    return new Response(BODILESS.includes(status) ? null : whole, { status, headers: pairs as [string, string][] })
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

/** Statuses whose Response takes no body (Fetch Standard). */
const BODILESS = [204, 205, 304]

/** Leaving the loop early closes the connection. */
async function readWhole(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    parts.push(part)
    bytes += part.length
    if (bytes > maxBytes) throw new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`)
  }
  return Buffer.concat(parts)
}
