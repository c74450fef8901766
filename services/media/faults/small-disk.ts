import { execFile } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const MiB = 1024 ** 2

/** A separate file system that can really be full. */
export interface SmallDisk {
  path: string
  /** Fills the disk, as another program would. */
  fill(): Promise<void>
  /** Frees the space again. */
  makeRoom(): Promise<void>
  close(): Promise<void>
}

/** Mounts a small disk; undefined without the right to mount: it takes root, or a sudo without a password. */
export async function openSmallDisk(megabytes: number): Promise<SmallDisk | undefined> {
  const path = await mkdtemp(join(tmpdir(), 'small-disk-'))
  const { uid, gid } = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  const as = uid === 0 ? [] : ['sudo', '-n']
  const call = ([command = '', ...args]: string[]) => run(command, args)
  try {
    await call([...as, 'mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,uid=${uid},gid=${gid}`, 'tmpfs', path])
  } catch {
    await rm(path, { recursive: true })
    return undefined
  }
  const ballast = join(path, 'ballast')
  return {
    path,
    fill: async () => {
      const file = await open(ballast, 'a')
      try {
        for (let size = MiB; size >= 1; ) {
          const { bytesWritten } = await file.write(Buffer.alloc(size)).catch(() => ({ bytesWritten: 0 }))
          if (bytesWritten < size) size = Math.floor(size / 16)
        }
      } finally {
        await file.close()
      }
    },
    makeRoom: () => rm(ballast, { force: true }),
    close: async () => {
      await call([...as, 'umount', '-l', path])
      await rm(path, { recursive: true, force: true })
    },
  }
}
