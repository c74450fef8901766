import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Writes a shell script that does this, and answers its path. It is gone when the test has finished. */
export async function programThat(does: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'media-program-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const path = join(directory, 'program')
  await writeFile(path, `#!/bin/sh\n${does}\n`, { mode: 0o755 })
  return path
}
