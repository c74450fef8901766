import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { rm, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { startNameServer } from '../testing/http/name-server.ts'
import { PATIENCE_MS } from '../testing/patience.ts'
import { openEgress } from './open-egress.ts'
import { createResolve, type ResolveOptions } from './resolve-name.ts'

const ADDRESSES = { A: ['127.0.0.1'], AAAA: [] }
const ZONE = {
  'good.example': ADDRESSES,
  'old.example': { A: ['127.0.0.1'], AAAA: 'silent' },
  'mixed.example': { A: ['127.0.0.1'], AAAA: ['fd00::1'] },
  'private.example': { A: ['10.0.0.1'] },
  'many.example': { A: Array.from({ length: 25 }, () => '127.0.0.1') },
  'empty.example': {},
  'gone.example': 'NXDOMAIN',
  'broken.example': 'SERVFAIL',
  'hosts.example': { A: ['10.0.0.1'] },
} as const satisfies Record<string, unknown>

let port: number
beforeEach(async () => {
  const site = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(site, 'listening')
  onTestFinished(() => void site.close())
  port = (site.address() as AddressInfo).port
})

async function start(options: ResolveOptions = {}) {
  const server = await startNameServer(ZONE as unknown as Parameters<typeof startNameServer>[0])
  const resolve = createResolve({ servers: [server.address], hostsPath: '/nowhere', timeoutMs: 60_000, ...options })
  const egress = openEgress({ userAgent: 'test', allowCidrs: ['127.0.0.0/8'], resolve })
  onTestFinished(() => egress.close())
  const bounds = { timeoutMs: PATIENCE_MS, maxBytes: 100 }
  const status = async (name: string) => (await egress.fetch(`http://${name}:${port}/`, {}, bounds)).status
  return { ...server, resolve, status }
}

test('names whose server never answers delay no other look-up of this process', async () => {
  const { queries, status } = await start()
  const ended: unknown[] = []
  for (let n = 0; n < 16; n++) status(`silent-${n}.example`).catch((error) => ended.push(error))
  await expect.poll(() => queries.filter((name) => name.startsWith('silent')).length).toBeGreaterThanOrEqual(16)
  expect(await status('good.example')).toBe(200)
  expect((await lookup('localhost')).address).toBeTruthy()
  expect(ended).toEqual([])
})

test('a name without an answer is a timeout, not a wait', async () => {
  const { status } = await start({ timeoutMs: 500 })
  await expect(status('silent.example')).rejects.toMatchObject({ code: 'ETIMEDOUT' })
})

test.each(['gone.example', 'broken.example', 'empty.example', `${'x'.repeat(64)}.example`])(
  '%s is unreachable',
  async (name) => {
    const { status } = await start()
    await expect(status(name)).rejects.toMatchObject({ code: expect.stringMatching(/^E[A-Z]+$/) })
  },
)

test.each(['private.example', 'mixed.example'])('%s is refused by its addresses', async (name) => {
  const { status } = await start()
  await expect(status(name)).rejects.toMatchObject({ code: 'egress_refused' })
})

test('a name server that is silent about IPv6 costs half a second, not the answer', async () => {
  const { status } = await start()
  expect(await status('old.example')).toBe(200)
})

test('of very many addresses the first are enough', async () => {
  const { resolve } = await start()
  expect(await resolve('many.example')).toHaveLength(16)
})

test('the hosts file comes first, and is read again when it has changed', async () => {
  const hostsPath = join(tmpdir(), `hosts-${process.pid}-${port}`)
  onTestFinished(() => rm(hostsPath))
  await writeFile(hostsPath, '# local\nnot an address\n127.0.0.1\tother Hosts.example # ours\n::1 hosts.example\n')
  const { queries, resolve, status } = await start({ hostsPath, timeoutMs: 500 })
  expect(await resolve('hosts.example.')).toEqual([
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])
  expect(await status('other')).toBe(200)
  expect(queries).toEqual([])
  await writeFile(hostsPath, '127.0.0.1 hosts.example\n')
  await utimes(hostsPath, 1, 1)
  expect(await resolve('hosts.example')).toEqual([{ address: '127.0.0.1', family: 4 }])
  await expect(resolve('other')).rejects.toMatchObject({ code: 'ETIMEDOUT' })
})

test('localhost is this machine, whatever a name server would say', async () => {
  const { queries, resolve } = await start()
  for (const name of ['localhost', 'LOCALHOST.', 'a.localhost']) {
    expect((await resolve(name)).map(({ address }) => address)).toEqual(['127.0.0.1', '::1'])
  }
  expect(queries).toEqual([])
})
