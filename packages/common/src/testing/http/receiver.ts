import { once } from 'node:events'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from './far-server.ts'

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** A receiver of webhooks on loopback, with its requests and its answer. */
export interface Receiver {
  url: string
  received: Received[]
  answer: (response: ServerResponse, request: Received) => void
  close(): void
}

export async function startReceiver(): Promise<Receiver> {
  const receiver: Receiver = {
    url: '',
    received: [],
    answer: (response) => response.writeHead(204).end(),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  const server = createFarServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const received = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() }
    receiver.received.push(received)
    receiver.answer(response, received)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return receiver
}
