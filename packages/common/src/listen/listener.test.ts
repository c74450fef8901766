import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openQueue } from '../queue/queue.ts'
import { createLogger } from '../telemetry/logger.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { startWay } from '../testing/database/way-to-server.ts'
import { keepListening } from './listener.ts'

const log = createLogger({ name: 'test', level: 'fatal' })

/** Terminate message of a client, and the error of a server that shuts down then. */
const GOODBYE = Buffer.from([0x58, 0, 0, 0, 4])
const LAST_WORDS = errorResponse({ S: 'FATAL', V: 'FATAL', C: '57P01', M: 'terminating connection' })

function errorResponse(fields: Record<string, string>): Buffer {
  const texts = Object.entries(fields).map(([type, text]) => `${type}${text}\0`)
  const body = Buffer.from(`${texts.join('')}\0`)
  const head = Buffer.from([0x45, 0, 0, 0, 0])
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** Proxy of the test server that shuts down whenever a client terminates. */
async function startDyingServer(url: string) {
  const open = new Set<Socket>()
  const proxy = createServer((client) => {
    const { hostname, port } = new URL(url)
    const server = connect(Number(port), hostname)
    for (const socket of [client, server]) {
      open.add(socket.on('error', () => {}))
      socket.on('close', () => open.delete(socket))
    }
    server.pipe(client)
    client.on('data', (chunk) => {
      if (!chunk.equals(GOODBYE)) return void server.write(chunk)
      server.unpipe(client)
      client.end(LAST_WORDS)
      server.end(chunk)
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  onTestFinished(() => {
    cut()
    proxy.close()
  })
  const proxied = new URL(url)
  proxied.port = String((proxy.address() as AddressInfo).port)
  proxied.searchParams.delete('host')
  return { url: proxied.href, cut }
}

async function newDatabase(): Promise<string> {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_listen`, async () => {})
  onTestFinished(() => database.drop())
  return database.url
}

/** Listens through `url`; notifications that check it are sent to the `database` itself. */
async function startListening(url: string, database: string): Promise<string[]> {
  const heard: string[] = []
  const checks = await connectTo(database)
  const listener = await keepListening({
    ...{ url, applicationName: 'listener', channel: 'news', log },
    onNotification: (payload) => void heard.push(payload),
    onListening: () => void heard.push('listening'),
    execute: (text, values) => checks.query(text, values),
  })
  onTestFinished(() => listener.close())
  return heard
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // of a test that cuts its connection
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

test('a queue that stops while its server shuts down raises no unhandled error', async () => {
  const server = await startDyingServer(await newDatabase())
  const names = { schema: 'jobs', applicationName: 'test', queues: [] }
  const queue = await openQueue({ url: server.url, ...names, log, migrate: true, supervise: false })
  const unheard: unknown[] = []
  const note = (error: unknown) => void unheard.push(error)
  process.on('uncaughtException', note)
  onTestFinished(() => void process.off('uncaughtException', note))
  await queue.stop(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(unheard).toEqual([])
})

test('a broken connection is replaced and reports that it listens again', async () => {
  const database = await newDatabase()
  const server = await startDyingServer(database)
  const heard = await startListening(server.url, database)
  const client = await connectTo(server.url)
  await client.query(`notify news, 'first'`)
  await expect.poll(() => heard).toEqual(['listening', 'first'])
  server.cut()
  await expect.poll(() => heard).toEqual(['listening', 'first', 'listening'])
})

test('a silent connection is replaced, and notifications arrive again', async () => {
  const url = await newDatabase()
  const way = await startWay(url)
  onTestFinished(way.close)
  const client = await connectTo(url)
  const heard = await startListening(way.url, url)
  await client.query(`notify news, 'before'`)
  await expect.poll(() => heard).toEqual(['listening', 'before'])
  way.silenceOpen()
  await client.query(`notify news, 'into silence'`)
  await expect.poll(() => heard.slice(0, 3)).toEqual(['listening', 'before', 'listening'])
  await client.query(`notify news, 'after'`)
  await expect.poll(() => heard).toContain('after')
  expect(heard).not.toContain('into silence')
})
