import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { PATIENCE_MS } from '../testing/patience.ts'
import { createLogger } from './logger.ts'

test('a cause is logged without quoted rows, and a text as one text', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'logger-'))
  const file = join(directory, 'log')
  const log = createLogger({ name: 'test', level: 'info', file })
  const refusal = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (email)=(a@example.com)' })
  log.info({ err: refusal }, 'an error')
  log.info({ err: 'moov atom not found' }, 'a text')
  log.info({ err: undefined }, 'nothing')
  await new Promise<void>((done) => log.flush(() => done()))
  const written = await readFile(file, 'utf8')
  const [error, words, nothing] = written
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(error.err).toMatchObject({ message: 'duplicate key', code: '23505' })
  expect(written).not.toContain('a@example.com')
  expect(words.err).toBe('moov atom not found')
  expect(nothing).not.toHaveProperty('err')
  await rm(directory, { recursive: true })
})

// Linux has a device that is always full.
test('a full disk neither ends a process nor prevents its end', { tags: 'linux' }, async () => {
  const program = `
    import { createLogger } from ${JSON.stringify(new URL('./logger.ts', import.meta.url).href)}
    const log = createLogger({ name: 'test', level: 'info', file: '/dev/full' })
    log.info('nobody reads this')
    process.stdin.once('data', () => {
      log.info('nor this')
      process.exit(0)
    })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { timeout: PATIENCE_MS })
  const exited = once(child, 'exit')
  let told = ''
  child.stderr.on('data', (text) => {
    told += text
    child.stdin.write('go on')
  })
  child.stdin.on('error', () => {})
  const [code] = await exited
  expect([code, told]).toEqual([0, 'log lines cannot be written (ENOSPC); serving goes on\n'])
})

test('a file that cannot be opened is a configuration error at start', () => {
  const open = () => createLogger({ name: 'test', level: 'info', file: tmpdir() })
  expect(open).toThrow('TEST_LOG_FILE cannot be opened for writing (EISDIR)')
})

test('waiting lines are written at exit', async () => {
  const program = `
    import { createLogger } from ${JSON.stringify(new URL('./logger.ts', import.meta.url).href)}
    const log = createLogger({ name: 'test', level: 'info' })
    for (let i = 0; i < 3; i++) log.info({ i, fill: 'ü'.repeat(100) }, 'line')
    process.exit(3)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  const lines = stdout.trim().split('\n')
  expect([code, lines.map((line) => JSON.parse(line).i)]).toEqual([3, [0, 1, 2]])
})

test('a line logged during a write does not wait for a third line', {
  tags: 'linux',
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'log-pipe-'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  // A pipe holds 64 KiB: the first line is not written before it is read.
  const reader = await open(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  const log = createLogger({ name: 'test', level: 'info', file: pipe })
  log.info('x'.repeat(200_000))
  let text = ''
  const read = async (length: number) => {
    const { buffer, bytesRead } = await reader
      .read(Buffer.alloc(length))
      .catch(() => ({ buffer: Buffer.alloc(0), bytesRead: 0 }))
    text += buffer.subarray(0, bytesRead)
    return text
  }
  await expect.poll(() => read(1)).toBe('{')
  log.info('second')
  await expect.poll(async () => (await read(65_536)).split('\n').filter(Boolean).length).toBe(2)
  await reader.close()
  await rm(folder, { recursive: true })
})
