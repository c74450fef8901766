import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { onTestFinished } from 'vitest'

/** Reply of one address. */
export type Reply = (request: IncomingMessage, response: ServerResponse, body: string) => void
export type Replies = Record<string, Reply>

export const bytes =
  (content: Uint8Array, headers: Record<string, string> = {}): Reply =>
  (_request, response) =>
    response.writeHead(200, { 'content-length': content.length, ...headers }).end(content)
export const json =
  (content: unknown, status = 200, headers: Record<string, string | string[]> = {}): Reply =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(content))
export const html =
  (content: string, status = 200, type = 'text/html; charset=utf-8'): Reply =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': type }).end(content)
export const moved =
  (location: string): Reply =>
  (_request, response) =>
    response.writeHead(302, { location }).end()
export const status =
  (code: number): Reply =>
  (_request, response) =>
    response.writeHead(code).end()

/**
 * Starts one server on loopback that plays every host of MEDIA_IMPORT_SITE_BASES. An address without a reply is 404;
 * `requested` lists every address in the order of the requests.
 */
export async function startFarSide(hosts: readonly string[]) {
  let replies: Replies = {}
  let requested: string[] = []
  const server = createFarServer(async (request, response) => {
    const address = `https:/${request.url}`
    requested.push(address)
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const reply = replies[address] ?? replies[address.replace(/\?.*/, '')] ?? status(404)
    reply(request, response, Buffer.concat(parts).toString())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    base,
    settings: { MEDIA_IMPORT_SITE_BASES: hosts.map((host) => `${host}=${base}/${host}`).join() },
    /** Sets the replies for the calling test. */
    answers: (given: Replies) => {
      replies = given
      requested = []
      onTestFinished(() => {
        replies = {}
      })
    },
    requested: () => requested,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
