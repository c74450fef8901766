import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Times of each kind: with a quarter of them late by 25 ms on average, the whole takes half a second longer. */
const TIMES = 80
const AT_LEAST_MS = 150

const kinds = {
  'timers of the language': () => new Promise<void>((resolve) => setTimeout(resolve, 0)),
  'timers as promises': () => wait(0),
  'timers made promises': () => promisify(setTimeout)(0),
  'bytes of a socket': echo,
  programs: () => promisify(execFile)('true'),
}

test.each(Object.entries(kinds))('%s are late', async (_, once) => {
  const startedAt = performance.now()
  for (let time = 0; time < TIMES; time++) await once()
  expect(performance.now() - startedAt).toBeGreaterThan(AT_LEAST_MS)
})

test('a program keeps its process id, its arguments and its exit code, and a missing one stays missing', async () => {
  for (let time = 0; time < TIMES / 4; time++) {
    const child = spawn('sh', ['-c', 'echo "$$ $1"; exit 3', 'sh', 'an argument'])
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    expect(await once(child, 'close')).toEqual([3, null])
    expect(output).toBe(`${child.pid} an argument\n`)
    const missing = spawn('/no/such/program')
    expect(await once(missing, 'error')).toMatchObject([{ code: 'ENOENT' }])
  }
})

test('bytes written before a socket is destroyed still arrive', async () => {
  for (let time = 0; time < TIMES / 4; time++) {
    const server = createServer((socket) => {
      socket.write('an answer')
      socket.destroySoon()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk))
    await once(socket, 'close')
    expect(answer).toBe('an answer')
    server.close()
  }
})

async function echo() {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('some bytes')
  await once(socket, 'data')
  socket.destroy()
  server.close()
}
