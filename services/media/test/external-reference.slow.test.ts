import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createFarServer } from '@services/common/testing/http/far-server'
import { expect } from 'vitest'
import { ALL_TYPES } from '../src/db/source-types.ts'
import { probe } from '../src/make/probe/probe.ts'
import { defaultProbeLimits } from '../src/make/probe/source-limits.ts'
import { clip, embeddedTools, tools } from './clips.ts'
import { test } from './service.ts'

const run = promisify(execFile)

/**
 * Builds `plain.mp4` without its pictures: the index alone. Its data reference (ISO 14496-12, 8.7.2; QuickTime aliases)
 * names another file that has them at the same offsets.
 */
async function indexOnly(reference: Buffer): Promise<Buffer> {
  const whole = await readFile(await clip('plain.mp4'))
  const [begin, moov] = [whole.subarray(0, whole.readUInt32BE(0)), whole.subarray(whole.indexOf('moov') - 4)]
  const dref = moov.indexOf('dref') - 4
  const end = dref + moov.readUInt32BE(dref)
  const entry = box(reference.toString('latin1', 0, 4), reference.subarray(4))
  const patched = Buffer.concat([moov.subarray(0, dref + 16), entry, moov.subarray(end)])
  for (const name of ['moov', 'trak', 'mdia', 'minf', 'dinf', 'dref']) {
    const at = patched.indexOf(name) - 4
    patched.writeUInt32BE(patched.readUInt32BE(at) + patched.length - moov.length, at)
  }
  return Buffer.concat([begin, patched])
}

function box(name: string, content: Buffer): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(8 + content.length)
  return Buffer.concat([size, Buffer.from(name), content])
}

/** Flags without the one that says "in this file". */
const urlReference = (url: string) => Buffer.from(`url \0\0\0\0${url}\0`)

/** A QuickTime alias by absolute path; with `levels` it is looked for that far from the file that refers to it. */
function aliasReference(path: string, levels: number): Buffer {
  const words = (...values: number[]) => Buffer.from(values.flatMap((value) => [value >> 8, value & 255]))
  const padded = Buffer.from(path.length % 2 === 0 ? path : `${path}\0`)
  return Buffer.concat([
    Buffer.from('alis\0\0\0\0'),
    Buffer.alloc(10 + 1 + 27 + 12 + 1 + 63 + 16),
    words(levels, levels),
    Buffer.alloc(16),
    words(2, padded.length),
    padded,
    words(0xffff, 0),
  ])
}

test('an mp4 or QuickTime file whose pictures are elsewhere, by path or address, is damaged: nothing is fetched from there', async ({
  service,
}) => {
  const directory = await mkdtemp(join(tmpdir(), 'references-'))
  const [foreign, uploaded] = [join(directory, 'foreign.mp4'), join(directory, 'uploaded.mp4')]
  await copyFile(await clip('plain.mp4'), foreign)
  let requests = 0
  const site = createFarServer(async (_request, response) => {
    requests++
    response.end(await readFile(foreign))
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  const address = `http://127.0.0.1:${(site.address() as AddressInfo).port}/foreign.mp4`

  const attacks = {
    'address of a server': urlReference(address),
    'address of a file': urlReference(`file://${foreign}`),
    'alias of a server': aliasReference(address, 0),
    'alias of a path': aliasReference(foreign, 0),
    'alias of a neighbour': aliasReference(foreign, 1),
  }
  for (const [name, reference] of Object.entries(attacks)) {
    const file = await indexOnly(reference)
    await writeFile(uploaded, file)
    // ffmpeg with everything allowed follows the reference: the refused file has a working one.
    if (name === 'alias of a path' || name === 'alias of a neighbour') {
      const follow = ['-enable_drefs', '1', '-use_absolute_path', '1', '-count_packets']
      const show = ['-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0']
      const { stdout } = await run(tools.ffprobe.path, ['-v', 'error', ...follow, ...show, uploaded])
      expect([name, stdout.trim()]).toEqual([name, '50'])
    }
    for (const anyTools of [tools, embeddedTools]) {
      await expect(probe(anyTools, uploaded), name).rejects.toMatchObject({ code: 'corrupt_media' })
    }
    const quickTime = Buffer.from(file)
    quickTime.write('qt  ', quickTime.indexOf('ftyp') + 4, 'latin1')
    await writeFile(uploaded, quickTime)
    const limits = { ...defaultProbeLimits, types: ALL_TYPES }
    for (const anyTools of [tools, embeddedTools]) {
      await expect(probe(anyTools, uploaded, { limits }), name).rejects.toMatchObject({ code: 'corrupt_media' })
    }
    const before = await service.traces()
    const { status, body } = await service.upload(file)
    expect([name, status, body.error.code]).toEqual([name, 422, 'corrupt_media'])
    expect(await service.traces()).toEqual(before)
  }
  expect(requests).toBe(0)
  site.close()
  await rm(directory, { recursive: true })
})
