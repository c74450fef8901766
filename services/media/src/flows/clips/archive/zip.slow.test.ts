// The archive as another program reads it.
import { execFile, execFileSync } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { openZip } from './zip.ts'

const run = promisify(execFile)

function isThere(program: string): boolean {
  try {
    execFileSync(program, ['--version'])
    return true
  } catch {
    return false
  }
}

const READ = `import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
print(json.dumps([archive.testzip(), [[i.filename, i.file_size, i.date_time[0]] for i in archive.infolist()]]))`

test.skipIf(!isThere('python3'))('Python finds every file, whole and under its name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'zip-'))
  try {
    const path = join(folder, 'clips.zip')
    const files = Array.from({ length: 100 }, (_, n) => ({
      name: `Grüße 🎈 ${n}.mp4`,
      content: Buffer.alloc(n * 999, n),
    }))
    const entries = files.map(({ name, content }) => ({
      ...{ name, bytes: content.length, modifiedAt: new Date('2026-11-29T17:10:42Z') },
      open: async () => Readable.from([content], { objectMode: false }),
    }))
    await pipeline(await openZip(entries), createWriteStream(path))
    const { stdout } = await run('python3', ['-c', READ, path])
    expect(JSON.parse(stdout)).toEqual([null, files.map(({ name, content }) => [name, content.length, 2026])])
  } finally {
    await rm(folder, { recursive: true })
  }
})
