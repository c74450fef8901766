// The steps of `demo` through both services, each printed with its request and answer.
export type Answer = { request: string; status: number; headers: Headers; text: string; json: unknown }

/** Time limit of a request: longer than the 55 s that media may take for an upload. */
const CALL_PATIENCE_MS = 75_000

export async function call(method: string, url: string | URL, init: Omit<RequestInit, 'method'> = {}): Promise<Answer> {
  const request = `${method} ${new URL(url).pathname}`
  const response = await fetch(url, {
    ...init,
    method,
    redirect: 'manual',
    signal: AbortSignal.timeout(CALL_PATIENCE_MS),
  }).catch((cause: Error) => {
    throw new Error(`${request}: no answer from ${new URL(url).origin} (${describeCause(cause)}).`, { cause })
  })
  const text = await response.text()
  return { request, status: response.status, headers: response.headers, text, json: parseJson(text) }
}

export const callWithJson = (method: string, url: string, body: unknown, headers: Record<string, string> = {}) =>
  call(method, url, { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })

export function expectStatus(answer: Answer, expected: number): void {
  if (answer.status !== expected) throw unexpected(answer, `status ${expected}`, `${answer.status} ${answer.text}`)
}

/** Reads the non-empty string at the path; throws the expected and the actual value otherwise. */
export function expectString(answer: Answer, ...path: string[]): string {
  const value = path.reduce<unknown>(
    (parent, key) => (typeof parent === 'object' && parent !== null ? Reflect.get(parent, key) : undefined),
    answer.json,
  )
  if (typeof value !== 'string' || value === '') throw unexpected(answer, `a string at ${path.join('.')}`, answer.text)
  return value
}

export function unexpected({ request }: Pick<Answer, 'request'>, expected: string, got: string): Error {
  return new Error(`${request}\n    expected: ${expected}\n    got:      ${got.slice(0, 1_000)}`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const describeCause = (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message)
