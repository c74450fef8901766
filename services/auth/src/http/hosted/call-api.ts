// Pages are a client of this service's own API, in process. So limits, captcha, codes, audit, hooks and the silence
// about addresses are those of the API.
import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
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
  config: Pick<Config, 'limits' | 'server'>,
  request: FastifyRequest,
  call: ApiCall,
): Promise<ApiAnswer<Body>> {
  const { statusCode: status, headers, payload } = await app.inject(injectionOf(config, request, call))
  const json = payload === '' ? {} : (JSON.parse(payload) as Record<string, unknown>)
  if (status >= 400) return refusalOf(status, json, headers['retry-after'])
  return { ok: true, status, body: json as Body, headers: headers as Record<string, string | undefined> }
}

/** Calls an endpoint whose answer is passed on as it arrives. */
export async function streamApi(
  app: FastifyInstance,
  config: Pick<Config, 'limits' | 'server'>,
  request: FastifyRequest,
  call: ApiCall,
): Promise<ApiAnswer<Readable>> {
  const answer = await app.inject({ ...injectionOf(config, request, call), payloadAsStream: true })
  const { statusCode: status, headers } = answer
  const body = answer.stream()
  if (status < 400) return { ok: true, status, body, headers: headers as Record<string, string | undefined> }
  return refusalOf(status, (await json(body)) as Record<string, unknown>, headers['retry-after'])
}

function injectionOf(
  { limits, server }: Pick<Config, 'limits' | 'server'>,
  request: FastifyRequest,
  { method, url, body, token, headers = {} }: ApiCall,
): InjectOptions {
  const passedOn = [...PASSED_ON, limits.header, server.requestIdHeader].flatMap((name) => {
    const value = name === undefined ? undefined : request.headers[name]
    return value === undefined ? [] : [[name, value]]
  })
  return {
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
}

function refusalOf(status: number, body: Record<string, unknown>, retryAfter: unknown): ApiAnswer<never> {
  const seconds = Number(retryAfter)
  return {
    ok: false,
    status,
    code: String(body.error_code ?? 'unexpected_failure'),
    message: String(body.msg ?? ''),
    retryAfterSeconds: status === 429 && seconds > 0 ? seconds : undefined,
  }
}
