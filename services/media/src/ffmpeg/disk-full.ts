import { statfs } from 'node:fs/promises'

const SAYS_SO = /No space left on device|Disk quota exceeded/

/** Whether this, or what it came of, is a disk without room, met by ourselves or by ffmpeg: nothing a clip can help. */
export function isDiskFull(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, message, stderr, cause } = error as Partial<NodeJS.ErrnoException> & {
    stderr?: string
    cause?: unknown
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') return true
  return SAYS_SO.test(`${message} ${stderr}`) || isDiskFull(cause)
}

/** What ffmpeg could not write still fills the disk when we look; a disk in use has more than this. */
const HARDLY_ANY_BYTES = 16 * 1024 ** 2

/** For an ffmpeg that wrote too little and did not say why. */
export async function refuseFullDisk(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < HARDLY_ANY_BYTES) throw new Error('No space left on device')
}
