import { type FileHandle, open } from 'node:fs/promises'

/** Players request one part of a file after another; opening it each time costs as much as reading. */
const KEPT_MS = 1_000
const MAX_KEPT = 64

interface OpenFile {
  handle: Promise<FileHandle>
  readers: number
  isKept: boolean
}

export function createOpenFiles() {
  const kept = new Map<string, OpenFile>()

  const keep = (path: string): OpenFile => {
    const file: OpenFile = { handle: open(path), readers: 0, isKept: kept.size < MAX_KEPT }
    if (file.isKept) {
      kept.set(path, file)
      setTimeout(() => letGo(path, file), KEPT_MS).unref()
    }
    return file
  }

  const letGo = (path: string, file: OpenFile) => {
    if (!file.isKept) return
    file.isKept = false
    kept.delete(path)
    if (file.readers === 0) void close(file)
  }

  return {
    read: async <T>(path: string, read: (handle: FileHandle) => Promise<T>): Promise<T> => {
      const file = kept.get(path) ?? keep(path)
      file.readers++
      try {
        return await read(await file.handle)
      } catch (error) {
        letGo(path, file)
        throw error
      } finally {
        if (--file.readers === 0 && !file.isKept) await close(file)
      }
    },
    /** The path holds another file now, so the next reader opens it again. */
    forget: (path: string) => {
      const file = kept.get(path)
      if (file) letGo(path, file)
    },
    close: () => {
      for (const [path, file] of kept) letGo(path, file)
    },
  }
}

const close = (file: OpenFile): Promise<void> =>
  file.handle.then(
    (handle) => handle.close().catch(() => {}),
    () => {},
  )
