import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, rmdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { isZombie, processBirth } from '@services/common/process-birth'
import { apiError } from '../../errors.ts'

/**
 * Where files are on their way in and out: one directory per process, private to it (0700), so that what a killed process
 * left is told from what a living one needs, also when machines share the disk. It is told by a sign of life: each
 * process changes its directory once a minute.
 */
export interface WorkDirectory {
  /** A path nobody else has, for a file that is about to be written. */
  newPath(): string
  /** A new empty directory. Whoever asks removes it. */
  newDirectory(): Promise<string>
  /**
   * Runs `receive`, which writes a file of up to so many bytes. Throws unavailable when its disk, or that of the store, has
   * no room for it and what will be made of it, beside the files that are on their way already: a file half-written helps nobody.
   */
  withSpace<T>(bytes: number, receive: () => Promise<T>): Promise<T>
  /** Removes what dead processes left; safe at any time. What cannot be removed keeps nothing else; then it throws. */
  sweep(): Promise<void>
  close(): Promise<void>
}

/** How often a process shows that it lives, and the silence after which it counts as dead: a machine may be suspended. */
const BEAT_EVERY_MS = 60_000
const DEAD_AFTER_MS = 60 * 60 * 1000

/** The file, its stored original, and what is made of it (contract/media.md 4.5). */
const SPACE_PER_BYTE = 3
/** A file of 200 bytes may be 4096 pixels wide: its raw poster alone takes 6 MB, and others are being made. */
const LEAST_SPACE_BYTES = 64 * 1024 ** 2

export interface WorkDirectoryOptions {
  /** Where what is made of the files goes, perhaps another disk. */
  store?: string
  freeBytesOf?: typeof freeBytesOnDisk
  /** How leftovers are removed. A test refuses: root may remove everything. */
  remove?: typeof removeFolder
}

export async function openWorkDirectory(
  root: string,
  { store = root, freeBytesOf = freeBytesOnDisk, remove = removeFolder }: WorkDirectoryOptions = {},
): Promise<WorkDirectory> {
  const [processes, life] = await Promise.all([readProcessSpace(), readOwnLife()])
  const own = `${processes}_${process.pid}_${life}${randomUUID().slice(0, 8)}`
  const directory = join(root, own)
  await mkdir(directory, { recursive: true, mode: 0o700 })

  /** A name that comes and goes changes the directory by the clock of the disk, which is the same for all machines. */
  const beat = async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await rmdir(await mkdtemp(join(directory, 'beat-')))
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
      if (entry !== own && (await isLeftover(root, entry, { processes, life, now }))) {
        await remove(join(root, entry)).catch((error) => failures.push(error))
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'some leftovers cannot be removed')
  }
  // Leftovers of another user keep nobody from starting; housekeeping tells of them.
  await sweep().catch(() => {})
  /** To files that are being received. What of them is written already counts twice: better too careful. */
  let promised = 0
  return {
    newPath: () => {
      // Somebody who tidies up by hand must not end all uploads until the next restart.
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return join(directory, randomUUID())
    },
    newDirectory: async () => {
      const path = join(directory, randomUUID())
      await mkdir(path, { recursive: true, mode: 0o700 })
      return path
    },
    withSpace: async (bytes, receive) => {
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

async function isLeftover(
  root: string,
  entry: string,
  { processes, life, now }: { processes: string; life: string; now: number },
): Promise<boolean> {
  const [, space, pid, lives] = /^(.+)_(\d+)_([0-9a-f]{8})?[0-9a-f]{8}$/.exec(entry) ?? []
  if (!space) return false
  // A process that we could see needs no wait for its silence; our own number may have been a predecessor's.
  if (space === processes && (Number(pid) === process.pid ? lives !== life : !(await isAlive(Number(pid), lives)))) {
    return true
  }
  const found = await stat(join(root, entry)).catch(() => undefined)
  return found !== undefined && now - found.mtimeMs > DEAD_AFTER_MS
}

/**
 * A name for the set of processes whose numbers we see: this boot of this kernel, and the container in it. A host name
 * would not do: containers share it, and the same number is another process in each. Where it cannot be told it is
 * random, and every other directory is judged by its signs of life alone.
 */
async function readProcessSpace(): Promise<string> {
  const facts = [readFile('/proc/sys/kernel/random/boot_id', 'utf8'), readlink('/proc/self/ns/pid')]
  const known = await Promise.all(facts).catch(() => [randomUUID()])
  return createHash('sha256').update(known.join()).digest('hex').slice(0, 12)
}

/**
 * Tells this process from an earlier one of the same number: when it began, in ticks of the kernel. Services of one process,
 * as in tests, leave each other's directories alone by it. Where it cannot be told it is random.
 */
async function readOwnLife(): Promise<string> {
  return lifeOf((await processBirth('self')) ?? randomUUID())
}

const lifeOf = (birth: string) => createHash('sha256').update(birth).digest('hex').slice(0, 8)

/** Whether the process of that number lives and, where both births are known, is the one that is meant. */
async function isAlive(pid: number, life: string | undefined): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  // A killed process keeps its number until its parent has asked for its exit.
  if (await isZombie(pid)) return false
  const birth = await processBirth(pid)
  return birth === undefined || life === undefined || lifeOf(birth) === life
}
