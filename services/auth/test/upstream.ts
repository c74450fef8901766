import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { createFarServer } from '@services/common/testing/http/far-server'
import { onTestFinished } from 'vitest'

export interface Upstream {
  url: string
  /** Requests in order. */
  requests: { method: string; path: string; headers: IncomingMessage['headers']; body: string }[]
  /** Sets the answer to the next requests. */
  answer(respond: Respond): void
  close(): Promise<void>
}

type Respond = (response: ServerResponse, body: string) => void

/** A service elsewhere, on a real socket: records what it is asked and answers as the test says. */
export async function startUpstream(first: Respond): Promise<Upstream> {
  let respond = first
  const requests: Upstream['requests'] = []
  const server = createFarServer(async (request, response) => {
    const body = await textOf(request).catch(() => undefined)
    // A caller that gave up in the middle of its request.
    if (body === undefined) return
    requests.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body })
    respond(response, body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: (next) => {
      respond = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Serves on a real socket until the test ends. The result is the server's address, without a path. */
export async function serveInTest(listener: RequestListener, host = '127.0.0.1'): Promise<string> {
  const server = createFarServer(listener).listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}`
}

export const json = (body: unknown, status = 200): Respond => text(JSON.stringify(body), status)

export const text =
  (body: string, status = 200): Respond =>
  (response) =>
    void response.writeHead(status).end(body)

/** The ways in which a service elsewhere fails, by name; the one that hangs is cut off by the caller's time limit. */
export const FAILURES: Record<string, Respond> = {
  'hangs before the answer': () => {},
  'hangs within the answer': (response) => void response.writeHead(200).write('{"success":'),
  'answers 500': text('oops', 500),
  'answers garbage': text('<html>not what you wanted</html>'),
  'answers without end': (response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  },
  'closes the connection': (response) => void response.destroy(),
  'closes the connection within the answer': (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('{"success":true')
    response.destroy()
  },
  redirects: (response) => void response.writeHead(307, { location: '/elsewhere' }).end(),
}
