import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat, statfs } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { apiError } from '../errors.ts'

/**
 * Where files are on their way in and out: one directory per process, private to it (0700), named by machine and process,
 * so that what a killed process left is told from what a living one needs, also when machines share the disk.
 */
export interface WorkDirectory {
  /** A path nobody else has, for a file that is about to be written. */
  newPath(): string
  /** A new empty directory. Whoever asks removes it. */
  newDirectory(): Promise<string>
  /**
   * Runs `receive`, which writes a file of up to so many bytes. Throws unavailable when the disk has no room for it and
   * what will be made of it, beside the files that are on their way already: a file half-written helps nobody.
   */
  withSpace<T>(bytes: number, receive: () => Promise<T>): Promise<T>
  /** Removes what dead processes left; safe at any time. */
  sweep(): Promise<void>
  close(): Promise<void>
}

/** On another machine nobody can tell whether the process lives; no file is in use for this long. */
const FOREIGN_LEFTOVER_MS = 24 * 60 * 60 * 1000

/** The file, its stored original, and what is made of it (contract/media.md 4.5). */
const SPACE_PER_BYTE = 3

export async function openWorkDirectory(root: string, freeBytesOf = freeBytesOnDisk): Promise<WorkDirectory> {
  const machine = hostname().replaceAll(/[^A-Za-z0-9.-]/g, '')
  const own = `${machine}_${process.pid}_${randomUUID().slice(0, 8)}`
  const directory = join(root, own)
  await mkdir(directory, { recursive: true, mode: 0o700 })

  const sweep = async () => {
    for (const entry of await readdir(root)) {
      if (entry !== own && !mine.has(entry) && (await isLeftover(root, entry, machine))) {
        await rm(join(root, entry), { recursive: true, force: true })
      }
    }
  }
  mine.add(own)
  await sweep()
  /** To files that are being received. What of them is written already counts twice: better too careful. */
  let promised = 0
  return {
    newPath: () => join(directory, randomUUID()),
    newDirectory: async () => {
      const path = join(directory, randomUUID())
      await mkdir(path, { recursive: true, mode: 0o700 })
      return path
    },
    withSpace: async (bytes, receive) => {
      const free = await freeBytesOf(directory)
      if (free - promised < SPACE_PER_BYTE * bytes) {
        throw apiError('unavailable', { retryAfterSeconds: 60, cause: 'the disk of the work directory is nearly full' })
      }
      promised += bytes
      try {
        return await receive()
      } finally {
        promised -= bytes
      }
    },
    sweep,
    close: async () => {
      mine.delete(own)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function freeBytesOnDisk(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}

/** Directories of this process: in tests several services share one. */
const mine = new Set<string>()

async function isLeftover(root: string, entry: string, machine: string): Promise<boolean> {
  const [, host, pid] = /^(.+)_(\d+)_[0-9a-f]{8}$/.exec(entry) ?? []
  if (!host) return false
  // The same number is a predecessor: processes of a container are counted from one at each start.
  if (host === machine) return Number(pid) === process.pid || !isAlive(Number(pid))
  const found = await stat(join(root, entry)).catch(() => undefined)
  return found !== undefined && Date.now() - found.mtimeMs > FOREIGN_LEFTOVER_MS
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
