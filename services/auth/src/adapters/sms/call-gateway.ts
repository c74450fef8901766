import { tracedFetch } from '@services/common/telemetry/spans'
import { AnswerTooLarge, readText } from '@services/common/upstream/read-text'
import { TemporaryFailure } from '../delivery-failures.ts'

/** Answers of gateways take a kilobyte or two. */
const MAX_ANSWER_BYTES = 64 * 1024

export interface GatewayAnswer {
  status: number
  text: string
}

/**
 * Makes one HTTP exchange with a deadline, a bounded answer and no redirects, which would carry credentials to another
 * host. Throws a TemporaryFailure fit for the log; fetch's own error can quote the URL with its secrets.
 */
export async function callGateway(
  gateway: string,
  timeoutSeconds: number,
  { url, ...request }: { method: string; url: string; headers: Record<string, string>; body: string | undefined },
): Promise<GatewayAnswer> {
  try {
    const signal = AbortSignal.timeout(Math.ceil(timeoutSeconds * 1000))
    const init = { ...request, body: request.body ?? null, redirect: 'manual', signal } as const
    const response = await tracedFetch(url, init, { sendsTrace: true })
    return { status: response.status, text: await readText(response, MAX_ANSWER_BYTES) }
  } catch (error) {
    const upstream = isTimeout(error) ? 'silent' : undefined
    throw new TemporaryFailure(`${gateway}: ${reasonOf(error, timeoutSeconds)}`, { upstream })
  }
}

const isTimeout = (error: unknown) => (error as { name?: string }).name === 'TimeoutError'

function reasonOf(error: unknown, timeoutSeconds: number): string {
  if (error instanceof AnswerTooLarge) return `the answer is longer than ${MAX_ANSWER_BYTES} bytes`
  const { cause } = error as { cause?: { code?: unknown } }
  if (isTimeout(error)) return `no answer within ${timeoutSeconds} s`
  const code = String(cause?.code ?? '')
  return /^[A-Z_]{2,40}$/.test(code) ? code : 'the connection failed'
}

export const postForm = (
  gateway: string,
  timeoutSeconds: number,
  url: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<GatewayAnswer> =>
  callGateway(gateway, timeoutSeconds, {
    method: 'POST',
    url,
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(fields).toString(),
  })

/** Reads a JSON answer by path (`messages.0.status`); undefined if there is no such member, or no JSON. */
export function jsonAnswer(text: string): (path: string) => unknown {
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch {
    return () => undefined
  }
  return (path) => {
    let value = root
    for (const key of path.split('.')) {
      const isObject = typeof value === 'object' && value !== null
      value = isObject && Object.hasOwn(value as object, key) ? (value as Record<string, unknown>)[key] : undefined
    }
    return value
  }
}
