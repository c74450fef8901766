import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { signMessage } from '@services/common/webhooks/sign-message'
import { findRenditions } from '../../core/clips/renditions.store.ts'
import { originalOf, type SourceRow } from '../../core/sources/sources.store.ts'
import { VERDICTS, type Verdict } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { runConfined } from '../../ffmpeg/run-confined.ts'
import { scanFrameCommand } from '../command/ffmpeg-command.ts'
import { workFiles } from '../command/work-files.ts'

/** Parts of the clip's length at which its frames are taken. */
const MOMENTS = [0.25, 0.5, 0.75]

const LIMITS = { wallSeconds: 60, cpuSeconds: 60, memoryBytes: 2 * 1024 ** 3, fileBytes: 16 * 1024 ** 2 }

type Scanner = NonNullable<Deps['config']['moderation']['scanner']>

/** Sends poster and frames of the finished mp4. Throws for anything but a verdict within the time limit. */
export async function askScanner(
  deps: Deps,
  { url, secret }: Scanner,
  source: SourceRow,
  signal: AbortSignal,
): Promise<Verdict> {
  const images = await takePictures(deps, source, signal)
  const timestamp = deps.now()
  const { durationSeconds: duration, width, height } = source.info
  const data = { sha256: originalOf(source).sha256, duration, width, height, images }
  const body = JSON.stringify({ type: 'media.scan', timestamp: timestamp.toISOString(), data })
  const headers = await signMessage([secret], { id: `scan_${source.id}`, body, timestamp })
  const { status, answer } = await deps.trustedRemote.post(url, {
    ...{ body, headers, totalMs: deps.timeLimits.scanAnswerMs, readsAnswer: true },
  })
  if (status < 200 || status >= 300) throw new Error(`the scanner answered ${status}`)
  return readVerdict(answer)
}

function readVerdict(answer: string): Verdict {
  const { verdict } = (JSON.parse(answer) ?? {}) as { verdict?: unknown }
  const known = VERDICTS.find((each) => each === verdict)
  if (!known) throw new Error('the scanner answered no verdict that is known')
  return known
}

interface Picture {
  /** Second of the clip; the poster's is unknown. */
  at: number | null
  type: 'image/jpeg'
  base64: string
}

async function takePictures(deps: Deps, { id, info }: SourceRow, signal: AbortSignal): Promise<Picture[]> {
  const { mp4, jpg } = await findRenditions(deps.db, id)
  if (!mp4 || !jpg) throw new Error(`source ${id} has no files to scan`)
  await using directory = await deps.work.newDirectory()
  const at = (name: string) => join(directory.path, name)
  const read = async (name: string, seconds: number | null): Promise<Picture> => ({
    ...{ at: seconds, type: 'image/jpeg', base64: await readFile(at(name), 'base64') },
  })
  const fetched = [
    { extension: 'mp4', sha256: mp4.sha256, file: workFiles.input },
    { extension: 'jpg', sha256: jpg.sha256, file: workFiles.jpg },
  ] as const
  for (const { extension, sha256, file } of fetched) {
    if (!(await deps.blobs.copyTo({ sha256, extension }, at(file), signal)))
      throw new Error(`${sha256} is not in the store`)
  }
  const pictures = [await read(workFiles.jpg, null)]
  for (const moment of MOMENTS) {
    const seconds = Math.round(moment * (info.durationSeconds ?? 0) * 1000) / 1000
    const how = { limits: LIMITS, limiters: deps.tools.limiters, cwd: directory.path, niceness: 10, signal }
    const { state } = await runConfined(deps.tools.ffmpeg.path, scanFrameCommand(seconds), how)
    signal.throwIfAborted()
    if (state !== 'done') throw new Error('ffmpeg took no frame', { cause: state })
    // A clip of one frame has none later.
    const frame = await read(workFiles.scanFrame, seconds).catch(() => undefined)
    if (frame) pictures.push(frame)
    await rm(at(workFiles.scanFrame), { force: true })
  }
  return pictures
}
