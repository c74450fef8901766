// A mail server that takes all mails and keeps none, in a thread of its own: what it costs is not the service's.
import { createServer } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { openPretendedConnection } from '../src/mail/pretended-mail-server.ts'

export async function startMailSink(): Promise<{ port: number; stop(): Promise<number> }> {
  const thread = new Worker(new URL(import.meta.url))
  const port = await new Promise<number>((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
  })
  return { port, stop: () => thread.terminate() }
}

if (!isMainThread) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(openPretendedConnection()).pipe(socket)
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address && typeof address === 'object') parentPort?.postMessage(address.port)
  })
}
