import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { expect, test } from 'vitest'
import { startLogFile } from './log-file.ts'
import { createDatabase, startTestService } from './service.ts'

/** A way to the database that can be cut. */
async function startDetour(databaseUrl: string) {
  const { hostname, port: databasePort } = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const onward = connect(Number(databasePort), hostname)
    for (const end of [socket, onward]) {
      sockets.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        socket.destroy()
        onward.destroy()
      })
    }
    socket.pipe(onward).pipe(socket)
  })
  // Not a port of the system's choice: while it is cut, the system might give it to another socket.
  const port = await findFreePort()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${port}`
  url.searchParams.delete('host')
  return {
    url: url.href,
    cut() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
    async mend() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}

test('a link followed while the database is away is no error of its own, and leads back with the reason', async () => {
  const database = await createDatabase()
  const detour = await startDetour(database.url)
  const log = await startLogFile()
  const service = await startTestService({ ...log.settings, AUTH_DATABASE_URL: detour.url })
  detour.cut()
  const { status, headers } = await service.get('/verify?type=signup&token=unknown')
  expect([status, headers.location]).toEqual([303, expect.stringContaining('error_code=service_unavailable')])
  await expect.poll(() => log.about('request refused')).toMatchObject([{ level: 'info', code: 'service_unavailable' }])
  expect(await log.about('request failed')).toEqual([])
  await detour.mend()
  await service.close()
  detour.cut()
  await database.drop()
})

test.for([
  ['false', 'warn'],
  ['true', 'error'],
])('leaks that cannot be looked up while AUTH_PASSWORD_HIBP_FAIL_CLOSED is %s: %s', async ([failClosed, level]) => {
  const log = await startLogFile()
  const service = await startTestService({
    ...log.settings,
    AUTH_PASSWORD_HIBP_ENABLED: 'true',
    AUTH_PASSWORD_HIBP_URL: 'http://127.0.0.1:1',
    AUTH_PASSWORD_HIBP_FAIL_CLOSED: failClosed as string,
  })
  await service.post('/signup', { email: 'ada@example.com', password: 'correct horse' })
  await expect.poll(() => log.about('look-up of leaked passwords failed')).toMatchObject([{ level }])
  await service.close()
})

test('that POST /magiclink is deprecated is said once, and in each answer', async () => {
  const log = await startLogFile()
  const service = await startTestService(log.settings)
  const asked = ['ada@example.com', 'bob@example.com', ''].map((email) => service.post('/magiclink', { email }))
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 422])
  for (const { headers } of answers) expect(headers.deprecation).toMatch(/^@\d+$/)
  await service.close()
  const message = 'POST /magiclink is deprecated, use POST /otp; logged once'
  await expect.poll(() => log.about(message)).toHaveLength(1)
})
