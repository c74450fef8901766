import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { clip, tools } from '../../test/clips.ts'
import { allowsSandbox } from '../../test/machine.ts'
import { probe } from '../make/probe/probe.ts'
import { makeRenditions } from '../make/transcode/make-renditions.ts'
import type { MediaTools } from './binaries.ts'
import { runConfined } from './run-confined.ts'
import { SANDBOX_PROGRAMS, SANDBOXES, type Sandbox } from './sandbox.ts'

const directory = await mkdtemp(join(tmpdir(), 'sandbox-'))
afterAll(() => rm(directory, { recursive: true, force: true }))

const sandboxOf = (kind: Sandbox['kind']): Sandbox => ({ kind, path: `/usr/bin/${SANDBOX_PROGRAMS[kind]}` })

async function make(sandbox: Sandbox | null) {
  const used: MediaTools = { ...tools, limiters: { ...tools.limiters, sandbox } }
  const path = await clip('sound.mp4')
  const workDirectory = await mkdtemp(join(directory, 'clip-'))
  const info = await probe(used, path)
  const { gif, jpg, mp4, webm, warnings } = await makeRenditions(
    used,
    { path, info },
    { workDirectory, threads: 1, gifEncoder: 'own', copy: 'auto' },
  )
  return { info, warnings, hashes: [gif, jpg, mp4, webm].map(({ sha256 }) => sha256) }
}

test.for(SANDBOXES)('a clip is probed and made in the sandbox of %s as it is without one', async (kind, { skip }) => {
  skip(
    !allowsSandbox(kind),
    `${kind} does not work on this machine: install bubblewrap and util-linux, and allow user namespaces`,
  )
  expect(await make(sandboxOf(kind))).toEqual({ ...(await make(null)), warnings: [] })
})

test('under bwrap only the work directory is writable, and nothing at all for a probe', async ({ skip }) => {
  skip(!allowsSandbox('bwrap'), 'bwrap does not work on this machine: install bubblewrap and allow user namespaces')
  const sandbox = sandboxOf('bwrap')
  const cwd = await mkdtemp(join(directory, 'own-'))
  const foreign = join(directory, 'foreign')
  await writeFile(foreign, 'untouched')
  const write = (fileBytes: number) =>
    runConfined('/bin/sh', ['-c', `echo x > ${foreign}; echo x > /tmp/foreign; echo x > own; cat ${foreign}`], {
      limits: { wallSeconds: 10, cpuSeconds: 10, memoryBytes: 2 * 1024 ** 3, fileBytes },
      // The kernel's limit on files would hide what the sandbox lets through.
      limiters: { ...tools.limiters, prlimit: null, sandbox },
      cwd,
    })
  expect(await write(0)).toMatchObject({ state: 'done', stdout: 'untouched' })
  expect(await readdir(cwd)).toEqual([])
  expect(await write(1_000)).toMatchObject({ state: 'done', stdout: 'untouched' })
  expect(await readFile(join(cwd, 'own'), 'utf8')).toBe('x\n')
})
