// Pages are a client of this service's own API, in process. So limits, captcha, codes, audit, hooks and the silence
// about addresses are those of the API.
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify'
import type { Config } from '../../config.ts'
import type { Refusal } from '../../words/pages/errors.ts'

export interface ApiCall {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path of the API with its query, such as `/token?grant_type=password`. */
  url: string
  body?: object | undefined
  /** Access token of the caller. */
  token?: string | undefined
  headers?: Record<string, string>
}

export type ApiAnswer<Body = Record<string, unknown>> =
  | { ok: true; status: number; body: Body; headers: Record<string, string | undefined> }
  | ({ ok: false; status: number } & Refusal)

/** Headers of a browser that the API reads: client, host and language. No cookie, and no authorization. */
const PASSED_ON = [
  ...['accept-language', 'host', 'user-agent', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
  ...['sb-forwarded-for', 'traceparent', 'tracestate'],
]

/** Calls an endpoint as the browser of a request would. A refusal is an answer; a failure of ours too. */
export async function callApi<Body = Record<string, unknown>>(
  app: FastifyInstance,
  { limits, server }: Pick<Config, 'limits' | 'server'>,
  request: FastifyRequest,
  { method, url, body, token, headers = {} }: ApiCall,
): Promise<ApiAnswer<Body>> {
  const passedOn = [...PASSED_ON, limits.header, server.requestIdHeader].flatMap((name) => {
    const value = name === undefined ? undefined : request.headers[name]
    return value === undefined ? [] : [[name, value]]
  })
  const call: InjectOptions = {
    method,
    url,
    remoteAddress: request.ip,
    headers: {
      ...Object.fromEntries(passedOn),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { payload: body }),
  }
  const answer = await app.inject(call)
  const json = answer.payload === '' ? {} : (answer.json() as Record<string, unknown>)
  const { statusCode: status } = answer
  if (status < 400) {
    return { ok: true, status, body: json as Body, headers: answer.headers as Record<string, string | undefined> }
  }
  const retryAfter = Number(answer.headers['retry-after'])
  return {
    ok: false,
    status,
    code: String(json.error_code ?? 'unexpected_failure'),
    message: String(json.msg ?? ''),
    retryAfterSeconds: status === 429 && retryAfter > 0 ? retryAfter : undefined,
  }
}
