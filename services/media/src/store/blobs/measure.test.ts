import { pbkdf2 } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { writeMeasured } from './measure.ts'

test('a file that is refused is not created after its writer has failed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'measure-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'file')
  // All threads that open files are busy.
  for (let n = 0; n < 8; n++) pbkdf2('', '', 30_000, 64, 'sha512', () => {})
  const limit = { maxBytes: 1, refuse: () => new Error('too large') }
  await expect(writeMeasured(path, Readable.from([Buffer.alloc(2)]), { limit })).rejects.toThrow('too large')
  expect(existsSync(path)).toBe(true)
})
