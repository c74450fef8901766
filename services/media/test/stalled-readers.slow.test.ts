import { once } from 'node:events'
import { truncate } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { clip } from './clips.ts'
import { formOf, idIn, startTestService, type TestService, test } from './service.ts'

/** More than the buffers of both ends of a connection hold. */
const LARGE = 48 * 1024 * 1024

/** The path of a file so large that sending it needs a reader. */
async function largeFile(service: TestService): Promise<string> {
  const id = idIn(await service.upload(await clip('plain.gif')))
  const [mp4 = ''] = (await service.traces()).files.filter((path) => path.endsWith('.mp4'))
  await truncate(join(service.blobsDir, mp4), LARGE)
  await service.deps.pool.query(`update renditions set bytes = $1 where kind = 'mp4'`, [LARGE])
  return `/f/${id}.mp4`
}

/** Asks for the file and reads nothing of the answer. */
function ask(service: TestService, path: string): Socket {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  onTestFinished(() => void socket.destroy())
  return socket
}

const connectionsOf = ({ app: { server } }: TestService) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

test('clients that read nothing are disconnected; one that reads slowly gets its whole file', async () => {
  const service = await startTestService({}, { timeLimits: { stalledAnswerMs: 4_000 } })
  const path = await largeFile(service)
  const stalled = Array.from({ length: 20 }, () => ask(service, path))
  const slow = ask(service, path)
  let received = 0
  // A little at a time until the readers that took nothing are gone, and then the rest. The connection of the upload
  // may be left.
  for await (const chunk of slow) {
    received += chunk.length
    if (received < LARGE / 2 && (await connectionsOf(service)) > 2) await sleep(50)
  }
  expect(received).toBeGreaterThan(LARGE)
  expect(stalled.every((socket) => socket.bytesRead < LARGE)).toBe(true)
  await expect.poll(() => connectionsOf(service)).toBeLessThanOrEqual(1)
  await service.close()
})

test('an answer that has not begun is waited for, even behind another one on its connection', async () => {
  const service = await startTestService(
    { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '1s' },
    { timeLimits: { stalledAnswerMs: 200 } },
  )
  const form = new Response(await formOf(await clip('plain.gif')))
  const body = Buffer.from(await form.arrayBuffer())
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.write(
    `GET /health/live HTTP/1.1\r\nHost: a\r\n\r\nPOST /media/upload HTTP/1.1\r\nHost: a\r\nToken: ${service.token}\r\n` +
      `Content-Type: ${form.headers.get('content-type')}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
  )
  socket.write(body)
  expect(await text(socket)).toMatch(/HTTP\/1.1 200[\s\S]*HTTP\/1.1 201/)
  await service.close()
})

test('connections beyond the limit are closed at once, and those within are served', async () => {
  const service = await startTestService({ MEDIA_MAX_CONNECTIONS: '3', MEDIA_WORKERS_ENABLED: 'false' })
  const open = () => connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
  const held = Array.from({ length: 3 }, open)
  await expect.poll(() => connectionsOf(service)).toBe(3)
  const refused = open()
  await once(refused.resume(), 'close')
  expect(held.some(({ closed }) => closed)).toBe(false)
  held[0]?.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n')
  expect(String((await once(held[0] as Socket, 'data'))[0])).toContain('HTTP/1.1 200')
  for (const socket of held) socket.destroy()
  await service.close()
})
