import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLogger } from './logger.ts'

test('a cause is logged as what it is: an error without the rows it quotes, a text as one text', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'logger-'))
  const file = join(directory, 'log')
  const log = createLogger({ name: 'test', level: 'info', file })
  const refusal = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (email)=(a@example.com)' })
  log.info({ err: refusal }, 'an error')
  log.info({ err: 'moov atom not found' }, 'a text')
  log.info({ err: undefined }, 'nothing')
  await new Promise<void>((done) => log.flush(() => done()))
  const text = await readFile(file, 'utf8')
  const [error, words, nothing] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(error.err).toMatchObject({ message: 'duplicate key', code: '23505' })
  expect(text).not.toContain('a@example.com')
  expect(words.err).toBe('moov atom not found')
  expect(nothing).not.toHaveProperty('err')
  await rm(directory, { recursive: true })
})
