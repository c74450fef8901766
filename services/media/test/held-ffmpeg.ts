import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { MediaTools } from '../src/ffmpeg/binaries.ts'
import { workFiles } from '../src/make/command/work-files.ts'
import { embeddedTools } from './clips.ts'

export interface HeldFfmpeg {
  tools: MediaTools
  /** Resolves once a clip is being made. */
  hasBegun(): Promise<void>
  /** Lets this and every later run finish at full speed. */
  release(): Promise<void>
}

/**
 * Installs an ffmpeg that starts and then waits for the test, so that requests arrive during a transcode on any
 * machine. Holds only clips that contain the word `marked`, or only runs that make the file `making`, if one is given.
 */
export async function heldFfmpeg(marked?: string, { making }: { making?: string } = {}): Promise<HeldFfmpeg> {
  const directory = await mkdtemp(join(tmpdir(), 'held-ffmpeg-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const [path, begun, released] = ['ffmpeg', 'begun', 'released'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  // A sandbox lets it write nowhere, and then it waits all the same.
  const wait = `touch '${begun}' 2>/dev/null; until [ -e '${released}' ]; do sleep 0.05; done`
  const isMarked = marked !== undefined && `grep -q '${marked}' ${workFiles.input}`
  const isMaking = making !== undefined && `echo "$*" | grep -qF '${making}'`
  const hold = [isMarked, isMaking].reduce<string>((held, only) => (only ? `if ${only}; then ${held}; fi` : held), wait)
  await writeFile(path, `#!/bin/sh\n${hold}\nexec '${embeddedTools.ffmpeg.path}' "$@"\n`, { mode: 0o755 })
  return {
    // A sandbox would not let it say that it has begun.
    tools: {
      ...embeddedTools,
      ffmpeg: { ...embeddedTools.ffmpeg, path },
      limiters: { ...embeddedTools.limiters, sandbox: null },
    },
    hasBegun: () =>
      expect
        .poll(() =>
          access(begun).then(
            () => true,
            () => false,
          ),
        )
        .toBe(true),
    release: () => writeFile(released, ''),
  }
}
