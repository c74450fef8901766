// Requests at endpoints, and what of an answer may differ from that about another clip. Every cell goes through a real
// socket, over connections that stay open, because there are thousands.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { expect } from 'vitest'
import type { Answer, TestService } from '../service.ts'
import { type Endpoint, MP4_ETAG } from './endpoints.ts'
import { SECRET_TITLE, type Stage, type StagedClip } from './stage.ts'
import { queryOf, type Visitor } from './states.ts'

export interface EndpointAnswer {
  status: number
  text: string
  headers: IncomingMessage['headers']
}

export interface Visit {
  it: StagedClip
  visitor: Visitor
  /** Id in the address instead of the clip's own. */
  id?: string
  method?: 'GET' | 'HEAD'
}

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

export async function requestEndpoint(
  { url }: Pick<TestService, 'url'>,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<EndpointAnswer> {
  const client = request(url + path, { method, headers, agent }).end()
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  const text = (await buffer(response)).toString('latin1')
  return { status: response.statusCode ?? 0, text, headers: response.headers }
}

/** Asks at each endpoint as the visitor does. */
export async function requestAll(
  service: Pick<TestService, 'url'>,
  { mp4Etag }: Pick<Stage, 'mp4Etag'>,
  endpoints: readonly Endpoint[],
  { it, visitor, id = it.id, method = 'GET' }: Visit,
): Promise<Record<string, EndpointAnswer>> {
  const answers = endpoints.map(async ({ name, target, path, headers }): Promise<[string, EndpointAnswer]> => {
    const given = Object.entries(headers).map(([header, value]) => [header, value.replace(MP4_ETAG, mp4Etag)])
    return [
      name,
      await requestEndpoint(service, method, path(id, queryOf(visitor, it, target)), Object.fromEntries(given)),
    ]
  })
  return Object.fromEntries(await Promise.all(answers))
}

/** A part of each answer, by endpoint. */
export const pick = <Part>(
  answers: Record<string, EndpointAnswer>,
  of: (answer: EndpointAnswer) => Part,
): Record<string, Part> =>
  Object.fromEntries(Object.entries(answers).map(([endpoint, answer]) => [endpoint, of(answer)]))

export const statusOf = ({ status }: EndpointAnswer) => status

/** The answer without what differs between any two requests. */
export function comparable({ status, text, headers }: Pick<Answer | EndpointAnswer, 'status' | 'text' | 'headers'>) {
  const { date, 'x-request-id': id, ...rest } = headers instanceof Headers ? Object.fromEntries(headers) : headers
  return { status, text: text.replaceAll(/"request_id":"[^"]*"/g, ''), headers: rest }
}

/** The same without its body, as HEAD has it. */
export const headOf = (answer: EndpointAnswer) => ({ ...comparable(answer), text: '' })

/** Headers of a clip's answers, none of which a refusal has. */
const TELLING = [
  ...['etag', 'last-modified', 'accept-ranges', 'content-range', 'content-disposition', 'location', 'retry-after'],
  'x-accel-redirect',
]

/** Holds that a refusal names nothing of the clip, and that no cache keeps it. */
export function expectSilence({ text, headers }: EndpointAnswer, endpoint: string): void {
  expect(text, endpoint).not.toContain(SECRET_TITLE)
  expect(
    TELLING.filter((name) => name in headers),
    endpoint,
  ).toEqual([])
  expect(headers['cache-control'], endpoint).toBe('no-store')
}
