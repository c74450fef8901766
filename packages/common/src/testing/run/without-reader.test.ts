import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runWithoutReader } from './without-reader.ts'

test.each([
  ['that is missing', ['./no-such-program'], 'ENOENT'],
  ['whose arguments are refused', [process.execPath, '\0'], 'ERR_INVALID_ARG_VALUE'],
])('a program %s is an error, and no folder stays', async (_kind, program, code) => {
  const folder = await mkdtemp(join(tmpdir(), 'without-reader-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  await expect(runWithoutReader(program, process.env)).rejects.toMatchObject({ code })
  expect(await readdir(folder)).toEqual([])
})

test('a program that writes has the code and the errors of one behind a closed pipe', async () => {
  const script = 'trap "" PIPE; echo lost || { echo "no reader" >&2; exit 3; }'
  expect(await runWithoutReader(['/bin/sh', '-c', script], process.env)).toEqual({
    code: 3,
    stderr: expect.stringContaining('no reader'),
  })
})
