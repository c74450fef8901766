// Sources that are ready without a transcode of their own. A run transcodes a file once, for all its tests and workers;
// each service gets copies of the rows and files.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MainKind } from '../src/db/tables.ts'
import type { Deps } from '../src/deps.ts'
import { gif } from './gif-bytes.ts'

/** Rows as PostgreSQL writes them to JSON. */
interface ReadyRows {
  source: object
  renditions: { kind: MainKind; sha256: string; bytes: number }[]
}

/** A service that transcodes one file and is closed afterwards. */
export interface Transcoder {
  deps: Deps
  upload(file: Uint8Array): Promise<unknown>
  close(): Promise<void>
}

type StartTranscoder = () => Promise<Transcoder>

/** Makes the source of this file ready, unless the service has it. */
export async function addReadySource(deps: Deps, file: Uint8Array, start: StartTranscoder): Promise<void> {
  if (await isKnown(deps, file)) return
  const { rows, pathOf } = await transcodedOnce(file, start)
  for (const { kind, sha256 } of rows.renditions) await deps.blobs.put(nameOf(kind, sha256), pathOf(kind))
  await insertRows(deps, rows)
}

/**
 * Makes a source of this file ready with the files of a small GIF, which differ from those of any other source in a
 * comment.
 */
export async function addAlikeSource(deps: Deps, file: Uint8Array, start: StartTranscoder): Promise<void> {
  if (await isKnown(deps, file)) return
  const { rows, pathOf } = await transcodedOnce(gif(20, 12, [{ delay: 10 }]), start)
  const renditions: ReadyRows['renditions'] = []
  for (const rendition of rows.renditions) {
    const { kind } = rendition
    const content = Buffer.concat([await readFile(pathOf(kind)), commentOf(kind)])
    const path = join(folder(), randomUUID())
    await writeFile(path, content)
    const sha256 = `\\x${hashOf(content)}`
    await deps.blobs.put(nameOf(kind, sha256), path)
    await rm(path)
    renditions.push({ ...rendition, sha256, bytes: content.length })
  }
  const madeBytes = renditions.reduce((sum, { bytes }) => sum + bytes, 0)
  const own = { sha256: `\\x${hashOf(file)}`, bytes: file.length, rendition_bytes: madeBytes }
  await insertRows(deps, { renditions, source: { ...rows.source, ...own } })
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const nameOf = (kind: MainKind, sha256: string) => ({ sha256: sha256.replace('\\x', ''), extension: kind })

/** Random bytes that each format allows at its end. */
function commentOf(kind: MainKind): Buffer {
  const random = randomBytes(16)
  if (kind === 'mp4') return Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('free'), random])
  // Void (RFC 9559, 5.1.2).
  return kind === 'webm' ? Buffer.concat([Buffer.from([0xec, 0x90]), random]) : random
}

const folder = () => join(tmpdir(), 'ready-sources')

/** Rows and files of a transcode that happens once a run. */
async function transcodedOnce(file: Uint8Array, start: StartTranscoder) {
  const directory = join(folder(), hashOf(file))
  await mkdir(folder(), { recursive: true })
  await madeOnce(directory, async (draft) => {
    const transcoder = await start()
    await transcoder.upload(file)
    const { pool, blobs } = transcoder.deps
    const [source, renditions] = await Promise.all(
      ['sources', 'renditions'].map(
        async (table) => (await pool.query(`select to_jsonb(t) as row from ${table} t`)).rows,
      ),
    )
    const rows = { source: source?.[0].row, renditions: renditions?.map(({ row }) => row) } as ReadyRows
    for (const { kind, sha256 } of rows.renditions) {
      await blobs.copyTo(nameOf(kind, sha256), join(draft, kind), new AbortController().signal)
    }
    await writeFile(join(draft, 'rows.json'), JSON.stringify(rows))
    await transcoder.close()
  })
  const rows: ReadyRows = JSON.parse(await readFile(join(directory, 'rows.json'), 'utf8'))
  return { rows, pathOf: (kind: MainKind) => join(directory, kind) }
}

/** Fills a directory, while other workers that need it wait. */
async function madeOnce(directory: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const [lock, draft] = [`${directory}.lock`, `${directory}.draft`]
  while (!(await succeeds(access(directory)))) {
    if (!(await succeeds(mkdir(lock)))) {
      await sleep(20)
      continue
    }
    try {
      if (await succeeds(access(directory))) return
      await mkdir(draft)
      await fill(draft)
      await rename(draft, directory)
    } finally {
      await rm(draft, { recursive: true, force: true })
      await rm(lock, { recursive: true })
    }
  }
}

const succeeds = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  )

async function isKnown({ pool }: Deps, file: Uint8Array): Promise<boolean> {
  const { rowCount } = await pool.query(`select from sources where sha256 = $1 and state <> 'failed'`, [
    Buffer.from(hashOf(file), 'hex'),
  ])
  return rowCount !== 0
}

/** The next upload of the same bytes is the first clip of the source. */
async function insertRows({ pool, newId, now }: Deps, { source, renditions }: ReadyRows): Promise<void> {
  const id = newId()
  const own = { id, token_id: null, clip_count: 0, unreferenced_at: null, created_at: now(), finished_at: now() }
  await pool.query(
    `with source as (insert into sources select (jsonb_populate_record(null::sources, $1)).* returning id),
       file as (select * from jsonb_populate_recordset(null::renditions, $2)),
       blob as (insert into blobs (sha256, extension, bytes, reference_count) select sha256, kind, bytes, 1 from file
         on conflict (sha256, extension)
         do update set reference_count = blobs.reference_count + 1, unreferenced_at = null)
     insert into renditions select source.id, kind, sha256, bytes, width, height, copied from source, file`,
    [JSON.stringify({ ...source, ...own }), JSON.stringify(renditions)],
  )
}
