import { once } from 'node:events'
import { createServer } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Opens the port of the console. Its connections are the app's, with all limits and the end of these; routes
 * distinguish them by the port (console-session.ts). Returns the stop step. Throws where the port is in use.
 */
export async function openConsolePort(
  { server: http }: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<() => void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => http.emit('connection', socket))
  await once(server.listen({ host, port }), 'listening')
  return () => void server.close()
}
