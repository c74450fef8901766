import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type BlobName, type BlobStorage, type ByteRange, blobKey, isLeftover, parseBlobKey } from './blob-storage.ts'
import { createOpenFiles } from './open-files.ts'
import { createFilePipes } from './piped-file.ts'

/**
 * Time of change of every stored file. A web server in front reports it, or compares it with conditions; the true one
 * would reveal when the same bytes were first uploaded. The inode's own time says when the file was stored.
 */
const SAME_TIME = new Date('2000-01-01T00:00:00Z')

export async function createDiskBlobs(root: string): Promise<BlobStorage> {
  // Shares the volume of the blobs, so that the rename is atomic; separate, so that leftovers are found.
  const incoming = join(root, 'incoming')
  await mkdir(incoming, { recursive: true })
  const pathOf = (name: BlobName) => join(root, blobKey(name))
  const openFiles = createOpenFiles()
  const pipeFile = createFilePipes()

  return {
    put: async (name, path) => {
      const target = pathOf(name)
      if (await isPresent(target, path)) return
      const copy = join(incoming, randomUUID())
      try {
        await copyDurably(path, copy)
        await moveDurably(copy, target, root)
        // Not before: an old file among the incoming ones is a leftover.
        await unlessMissing(utimes(target, SAME_TIME, SAME_TIME))
        openFiles.forget(target)
      } finally {
        await rm(copy, { force: true })
      }
    },
    open: async (name, range) => {
      const file = await unlessMissing(open(pathOf(name)))
      if (!file) return undefined
      return range ? pipeFile(file, range) : file.createReadStream()
    },
    copyTo: async (name, path, signal) => {
      const isCopied = (await unlessMissing(copyNew(pathOf(name), path).then(() => true))) ?? false
      // The kernel's copy cannot be interrupted.
      signal.throwIfAborted()
      return isCopied
    },
    readPart: (name, range) => unlessMissing(openFiles.read(pathOf(name), (file) => readPart(file, range))),
    stat: (name) => statBlob(pathOf(name)),
    delete: (name) => rm(pathOf(name), { force: true }),
    list: () => listBlobs(root),
    listUnfinished: () => listIncoming(incoming),
    sweep: async () => {
      for await (const put of listIncoming(incoming)) if (isLeftover(put)) await rm(put.path, { force: true })
    },
    close: async () => openFiles.close(),
  }
}

async function readPart(file: FileHandle, { start, end }: ByteRange): Promise<Buffer> {
  const part = Buffer.allocUnsafe(end - start + 1)
  const { bytesRead } = await file.read(part, 0, part.length, start)
  if (bytesRead < part.length) throw new Error('a stored file became shorter')
  return part
}

/** A file of another size under this name is damaged and is replaced. */
async function isPresent(target: string, source: string): Promise<boolean> {
  const [existing, wanted] = await Promise.all([statBlob(target), stat(source)])
  return existing?.bytes === wanted.size
}

/** Shares the bytes where the file system can; otherwise the kernel copies them. */
const copyNew = (source: string, copy: string) =>
  copyFile(source, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)

async function copyDurably(source: string, copy: string): Promise<void> {
  await copyNew(source, copy)
  // Temporary files are private; a web server that runs as another user must be able to read blobs.
  await chmod(copy, 0o644)
  await sync(copy, 'r+')
}

/** After a power cut the name exists with all its bytes or not at all. */
async function moveDurably(copy: string, target: string, root: string): Promise<void> {
  const directory = dirname(target)
  const created = await mkdir(directory, { recursive: true })
  await rename(copy, target)
  await syncDirectory(directory)
  if (!created) return
  await syncDirectory(dirname(directory))
  await syncDirectory(root)
}

/** Windows cannot open a directory; its file system makes names durable itself. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform !== 'win32') await sync(path, 'r')
}

async function sync(path: string, flags: 'r' | 'r+'): Promise<void> {
  await using handle = await open(path, flags)
  await handle.sync()
}

async function statBlob(path: string) {
  const found = await unlessMissing(stat(path))
  return found && { bytes: found.size, storedAt: found.ctime }
}

async function* listBlobs(root: string) {
  for (const upper of await listShards(root)) {
    for (const lower of await listShards(join(root, upper))) {
      const files = (await unlessMissing(readdir(join(root, upper, lower)))) ?? []
      for (const file of files.sort()) {
        const name = parseBlobKey(`${upper}/${lower}/${file}`)
        const found = name && (await statBlob(join(root, upper, lower, file)))
        if (found) yield { name, ...found }
      }
    }
  }
}

async function listShards(directory: string): Promise<string[]> {
  const entries = (await unlessMissing(readdir(directory))) ?? []
  return entries.filter((entry) => /^[0-9a-f]{2}$/.test(entry)).sort()
}

async function* listIncoming(incoming: string) {
  for (const file of await readdir(incoming)) {
    const path = join(incoming, file)
    const found = await unlessMissing(stat(path))
    if (found) yield { path, startedAt: found.mtime }
  }
}

const unlessMissing = <T>(result: Promise<T>): Promise<T | undefined> =>
  result.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
