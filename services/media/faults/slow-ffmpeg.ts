import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedTools } from '../test/clips.ts'
import { heldFfmpeg } from '../test/held-ffmpeg.ts'
import { programsIn } from './programs.ts'

/** An ffmpeg that reads no faster than the clip plays, so that a test can interrupt it on any machine. */
export async function slowFfmpeg(): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'slow-ffmpeg-')), 'ffmpeg')
  await writeFile(path, `#!/bin/sh\nexec '${embeddedTools.ffmpeg.path}' -re "$@"\n`, { mode: 0o755 })
  return path
}

/** An ffmpeg that does not begin a run whose arguments have these words before `release`. */
export async function waitingFfmpeg(words: string) {
  const { tools, release } = await heldFfmpeg(undefined, { making: words })
  const { path } = tools.ffmpeg
  return {
    path,
    release,
    /**
     * Reports whether such a run waits for a process that works in the directory: in a sandbox it cannot say so itself.
     */
    isWaiting: async (workDirectory: string) =>
      (await programsIn(workDirectory)).some(
        ({ command: [, script, ...args] }) => script === path && args.join(' ').includes(words),
      ),
  }
}
