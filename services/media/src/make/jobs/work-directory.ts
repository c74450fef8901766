import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { mkdir, mkdtempDisposable, readdir, readFile, readlink, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { processBirth } from '@services/common/process/process-identity'
import { apiError } from '../../errors.ts'

/** Sign of life, and the silence after which a process counts as dead: an hour, because a machine may be suspended. */
const BEAT_EVERY_MS = 60_000
const DEAD_AFTER_MS = 60 * 60 * 1000

/** The file, its stored original, and its renditions (contract/media.md 4.5). */
const SPACE_PER_BYTE = 3
/** A file of 200 bytes may be 4096 pixels wide: its raw poster alone takes 6 MB, beside those of other clips. */
const LEAST_SPACE_BYTES = 64 * 1024 ** 2

export interface WorkDirectoryOptions {
  store?: string
  freeBytesOf?: typeof freeBytesOnDisk
  /** Replaced by a test that refuses, because root may remove everything. */
  remove?: typeof removeFolder
}

export type WorkDirectory = Awaited<ReturnType<typeof openWorkDirectory>>

/**
 * Opens the place of temporary files: one private directory (0700) per process. The leftovers of a killed process
 * differ from the files of a living one, also when machines share the disk. Each process shows that it lives by
 * changing its directory once a minute.
 */
export async function openWorkDirectory(
  root: string,
  { store = root, freeBytesOf = freeBytesOnDisk, remove = removeFolder }: WorkDirectoryOptions = {},
) {
  const [processes, birth] = await Promise.all([readProcessSpace(), processBirth('self')])
  const own = `${processes}_${process.pid}_${lifeOf(birth)}${randomUUID().slice(0, 8)}`
  const directory = join(root, own)
  await mkdir(directory, { recursive: true, mode: 0o700 })

  /** Adds and removes an entry, which sets the directory's mtime by the disk's clock, the same for all machines. */
  const beat = async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await (await mkdtempDisposable(join(directory, 'beat-'))).remove()
  }
  let beating = Promise.resolve()
  const timer = setInterval(() => {
    beating = beat().catch(() => {})
  }, BEAT_EVERY_MS).unref()
  const sweep = async () => {
    await beat()
    const { mtimeMs: now } = await stat(directory)
    const failures: unknown[] = []
    for (const entry of await readdir(root)) {
      if (entry !== own && (await isLeftover(root, entry, { processes, now }))) {
        await remove(join(root, entry)).catch((error) => failures.push(error))
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'some leftovers were not removed')
  }
  // Leftovers of another user do not stop the start; housekeeping reports them.
  await sweep().catch(() => {})
  /** Bytes reserved for files that are being received. Their written part counts twice, to be on the safe side. */
  let promised = 0
  return {
    newPath: () => {
      // A directory deleted by hand must not fail all uploads until the next restart.
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return join(directory, randomUUID())
    },
    /** Its disposal removes it with all its files. */
    newDirectory: async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      return mkdtempDisposable(join(directory, 'clip-'))
    },
    /**
     * Runs `receive`, which writes a file of up to `bytes`. Throws unavailable when its disk, or that of the store,
     * lacks space for the file and its renditions, beside the files that are being received.
     */
    withSpace: async <T>(bytes: number, receive: () => Promise<T>): Promise<T> => {
      for (const directory of new Set([root, store])) {
        if ((await freeBytesOf(directory)) - promised < LEAST_SPACE_BYTES + SPACE_PER_BYTE * bytes) {
          throw apiError('unavailable', { retryAfterSeconds: 60, cause: `the disk of ${directory} is nearly full` })
        }
      }
      promised += bytes
      try {
        return await receive()
      } finally {
        promised -= bytes
      }
    },
    /** Removes the leftovers of dead processes; safe at any time. Throws at the end if some could not be removed. */
    sweep,
    close: async () => {
      clearInterval(timer)
      await beating
      await removeFolder(directory)
    },
  }
}

const removeFolder = (path: string) => rm(path, { recursive: true, force: true })

async function freeBytesOnDisk(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}

/**
 * Another process of this namespace lives if its pid still has its start; all others by the time since their last beat.
 */
async function isLeftover(
  root: string,
  entry: string,
  { processes, now }: { processes: string; now: number },
): Promise<boolean> {
  const [, space, pid, life] = /^(.+)_(\d+)_([0-9a-f]{8})[0-9a-f]{8}$/.exec(entry) ?? []
  if (!space) return false
  if (space === processes) return lifeOf(await processBirth(Number(pid))) !== life
  const found = await stat(join(root, entry)).catch(() => undefined)
  return found !== undefined && now - found.mtimeMs > DEAD_AFTER_MS
}

/**
 * Identifies the pid namespace: this boot of this kernel, and the container in it. A host name does not, because
 * containers share it and use the same pids. Random where /proc is missing; other directories are then judged by their
 * signs of life alone.
 */
async function readProcessSpace(): Promise<string> {
  const facts = [readFile('/proc/sys/kernel/random/boot_id', 'utf8'), readlink('/proc/self/ns/pid')]
  const known = await Promise.all(facts).catch(() => [randomUUID()])
  return createHash('sha256').update(known.join()).digest('hex').slice(0, 12)
}

/**
 * Distinguishes a process from an earlier one with its pid: its start in kernel ticks. Services in one process share
 * it, as in tests, so that they leave each other's directories alone.
 */
const lifeOf = (birth = '') => createHash('sha256').update(birth).digest('hex').slice(0, 8)
