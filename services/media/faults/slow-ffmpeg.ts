import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedTools } from '../test/clips.ts'
import { programsIn } from './programs.ts'

/** An ffmpeg that reads no faster than the clip plays, so that a test can interrupt it on any machine. */
export async function slowFfmpeg(): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'slow-ffmpeg-')), 'ffmpeg')
  await writeFile(path, `#!/bin/sh\nexec '${embeddedTools.ffmpeg.path}' -re "$@"\n`, { mode: 0o755 })
  return path
}

/** An ffmpeg that does not begin a run whose arguments have these words before `release`. */
export async function waitingFfmpeg(words: string) {
  const directory = await mkdtemp(join(tmpdir(), 'waiting-ffmpeg-'))
  const [path, released] = [join(directory, 'ffmpeg'), join(directory, 'released')]
  const wait = `case "$*" in *'${words}'*) until [ -e '${released}' ]; do sleep 0.05; done;; esac`
  await writeFile(path, `#!/bin/sh\n${wait}\nexec '${embeddedTools.ffmpeg.path}' "$@"\n`, { mode: 0o755 })
  return {
    path,
    /** Reports whether such a run waits for a process that works in the directory. */
    isWaiting: async (workDirectory: string) =>
      (await programsIn(workDirectory)).some(
        ({ command: [, script, ...args] }) => script === path && args.join(' ').includes(words),
      ),
    release: () => writeFile(released, ''),
  }
}
