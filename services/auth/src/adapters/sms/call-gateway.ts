import { AnswerTooLarge, readText } from '@services/common/read-text'
import { tracedFetch } from '@services/common/tracing'

/** Answers of gateways have a kilobyte or two; what is longer is no answer of theirs. */
const MAX_ANSWER_BYTES = 64 * 1024

export interface GatewayCall {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
}

export interface GatewayAnswer {
  status: number
  text: string
}

/**
 * One bounded HTTP exchange: a deadline over all of it, a bounded answer, no redirects (they would carry credentials to
 * another host). Throws an Error that is safe to log; fetch's own can quote the address with its secrets.
 */
export async function callGateway(gateway: string, timeoutSeconds: number, call: GatewayCall): Promise<GatewayAnswer> {
  const { url, ...request } = call
  try {
    const signal = AbortSignal.timeout(Math.ceil(timeoutSeconds * 1000))
    const init = { ...request, body: request.body ?? null, redirect: 'manual', signal } as const
    const response = await tracedFetch(url, init, { isTold: true })
    return { status: response.status, text: await readText(response, MAX_ANSWER_BYTES) }
  } catch (error) {
    throw new Error(`${gateway}: ${reasonOf(error, timeoutSeconds)}`)
  }
}

function reasonOf(error: unknown, timeoutSeconds: number): string {
  if (error instanceof AnswerTooLarge) return `the answer is longer than ${MAX_ANSWER_BYTES} bytes`
  const { name, cause } = error as { name?: string; cause?: { code?: unknown } }
  if (name === 'TimeoutError') return `no answer within ${timeoutSeconds} s`
  const code = String(cause?.code ?? '')
  return /^[A-Z_]{2,40}$/.test(code) ? code : 'the connection failed'
}

/** Facts of a JSON answer by path (`messages.0.status`); undefined where there is no such thing, or no JSON. */
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
