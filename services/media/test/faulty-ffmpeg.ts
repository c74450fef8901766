import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MediaTools } from '../src/ffmpeg/binaries.ts'
import { unboxedTools } from './clips.ts'
import { workDirectory } from './rendition-tests.ts'

/** An ffmpeg that misbehaves for some commands and is the real one for the others. */
export async function faulty(when: string, then: string): Promise<MediaTools> {
  const path = join(await workDirectory(), 'ffmpeg')
  const body = `#!/bin/sh\ncase "$*" in *${when}*) ${then};; esac\nexec '${unboxedTools.ffmpeg.path}' "$@"\n`
  await writeFile(path, body, { mode: 0o755 })
  return { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } }
}
