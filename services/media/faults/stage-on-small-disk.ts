import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { openSmallDisk, type SmallDisk } from './small-disk.ts'
import { openStage, type Stage } from './stage.ts'

const MiB = 1024 ** 2

/** Reserve of 64 MiB, and three times the largest file: a smaller disk accepts no file at all. */
const DISK_MIB = 160
const SETTINGS = { MEDIA_MAX_FILE_BYTES: String(20 * MiB) }

/** Opens a stage whose files are on a disk that a test can fill; skips the test where none can be mounted. */
export async function openStageOnSmallDisk(
  { skip, onTestFinished }: TestContext,
  { elsewhere }: { elsewhere?: 'work' } = {},
): Promise<{ disk: SmallDisk; stage: Stage }> {
  const disk = await openSmallDisk(DISK_MIB)
  if (!disk) return skip('no file system can be mounted here')
  const work = elsewhere && (await mkdtemp(join(tmpdir(), 'media-work-')))
  const stage = await openStage(SETTINGS, { blobs: disk.path, ...(work && { work }) })
  onTestFinished(async () => {
    await stage.end()
    await disk.close()
  }, 30_000)
  return { disk, stage }
}
