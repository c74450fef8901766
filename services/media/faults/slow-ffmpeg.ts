import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedTools } from '../test/clips.ts'

/** An ffmpeg that reads no faster than the clip plays, so that a test can interrupt it on any machine. */
export async function slowFfmpeg(): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'slow-ffmpeg-')), 'ffmpeg')
  await writeFile(path, `#!/bin/sh\nexec '${embeddedTools.ffmpeg.path}' -re "$@"\n`, { mode: 0o755 })
  return path
}
