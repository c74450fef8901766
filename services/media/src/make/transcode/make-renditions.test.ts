import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ClipName, clip, clipOf, unboxedTools, written } from '../../../test/clips.ts'
import { faulty } from '../../../test/faulty-ffmpeg.ts'
import { inspect, packetsOf } from '../../../test/inspect.ts'
import { expectSound, make, usualTests, workDirectory } from '../../../test/rendition-tests.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { probe } from '../probe/probe.ts'
import type { FirstFiles } from '../run/encode.ts'
import { makeRenditions } from './make-renditions.ts'

describe('with the embedded ffmpeg of 2018 makes gif, jpg, mp4 and webm', () => usualTests(unboxedTools))

/**
 * These tests are about our own steps: the embedded build starts in 2 ms, where a distribution's needs 100 of a core.
 */
test('progress rises to 1', async () => {
  const seen: number[] = []
  await make(unboxedTools, await clip('plain.mp4'), { onProgress: (fraction) => seen.push(fraction) })
  expect(seen.length).toBeGreaterThan(2)
  expect(seen.at(-1)).toBe(1)
  expect(seen).toEqual(seen.toSorted((a, b) => a - b))
})

const madeAlready: Partial<Record<ClipName, ReturnType<typeof make>>> = {}
/** The files of a clip, made once for all tests. */
const filesOf = (name: ClipName) => (madeAlready[name] ??= clip(name).then((path) => make(unboxedTools, path)))

test.each(['tiny.gif', 'small.mp4'] as const)('the same file gives the same bytes (%s)', async (name) => {
  const [first, second] = [await filesOf(name), await make(unboxedTools, await clip(name))]
  for (const kind of ['gif', 'jpg', 'mp4', 'webm'] as const) expect(first[kind].sha256).toBe(second[kind].sha256)
})

describe('a damaged file', () => {
  test('whose second half cannot be decoded is corrupt, though ffmpeg exits with 0', async () => {
    const bytes = Buffer.from(await readFile(await clip('faststart.mp4')))
    bytes.fill(0, bytes.length / 2)
    const path = await written('half-zero.mp4', bytes)
    await expect(make(unboxedTools, path)).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test('holds even if frames come at odd times and the last one would be held to the end', async () => {
    const odd = ['-f', 'lavfi', '-i', `testsrc2=s=64x48:r=30:d=2,select='not(between(n,20,24)+between(n,54,57))'`]
    const path = await clipOf('odd-times.mp4', [
      ...odd,
      '-vsync',
      'vfr',
      '-pix_fmt',
      'yuv420p',
      '-movflags',
      '+faststart',
    ])
    const bytes = Buffer.from(await readFile(path))
    bytes.fill(0, (bytes.indexOf('mdat') + bytes.length) / 2)
    await expect(make(unboxedTools, await written('odd-times-half.mp4', bytes))).rejects.toMatchObject({
      code: 'corrupt_media',
    })
    await expect(make(unboxedTools, path)).resolves.toMatchObject({ warnings: [] })
  })

  test.each([
    ['ends before its sound', 25, 50, 1],
    ['begins after its sound', 0, 25, 0.56],
  ])('whose picture %s is corrupt', async (how, from, to, actual) => {
    const source = await clip('sound.mp4')
    const bytes = Buffer.from(await readFile(source))
    for (const { pos, size } of (await packetsOf(source)).slice(from, to)) bytes.fill(0, pos, pos + size)
    const made = make(unboxedTools, await written(`picture-${how}.mp4`, bytes))
    await expect(made).rejects.toMatchObject({ code: 'corrupt_media', details: { declared: 2, actual } })
  })

  test('that decodes to nothing is corrupt', async () => {
    const bytes = Buffer.from(await readFile(await clip('faststart.mp4')))
    bytes.fill(0, bytes.indexOf('mdat') + 4)
    const path = await written('all-zero.mp4', bytes)
    const info = await probe(unboxedTools, await clip('faststart.mp4'))
    const made = makeRenditions(
      unboxedTools,
      { path, info },
      { workDirectory: await workDirectory(), threads: 1, gifEncoder: 'own', copy: 'auto' },
    )
    await expect(made).rejects.toMatchObject({ code: 'corrupt_media' })
  })
})

/** The same ffmpeg, and the arguments of its runs so far. */
async function counted(tools: MediaTools) {
  const directory = await workDirectory()
  const [path, log] = [join(directory, 'ffmpeg'), join(directory, 'log')]
  await writeFile(path, `#!/bin/sh\necho "$*" >>'${log}'\nexec '${tools.ffmpeg.path}' "$@"\n`, { mode: 0o755 })
  const runs = async () => (await readFile(log, 'utf8')).trim().split('\n')
  return { tools: { ...unboxedTools, ffmpeg: { ...tools.ffmpeg, path } }, runs }
}

/** Tools that list the command line of each program; `nice` starts all. */
async function listed() {
  const directory = await workDirectory()
  const [path, log] = [join(directory, 'nice'), join(directory, 'log')]
  await writeFile(path, `#!/bin/sh\nshift 2\necho "$*" >>'${log}'\nexec "$@"\n`, { mode: 0o755 })
  const programs = async () => (await readFile(log, 'utf8')).trim().split('\n')
  return { tools: { ...unboxedTools, limiters: { ...unboxedTools.limiters, nice: path } }, programs }
}

describe('passes over the source', () => {
  test.each([
    ['one for poster, volume and all files', 'small-sound.mp4', 'own', 1],
    ['one more for the palette of a GIF by ffmpeg', 'small-sound.mp4', 'ffmpeg', 2],
    ['one for a GIF, which is kept', 'tiny.gif', 'own', 1],
  ] as const)('%s', async (_, name, gifEncoder, count) => {
    const { tools, runs } = await counted(unboxedTools)
    const made = await make(tools, await clip(name), { gifEncoder, copy: 'never' })
    expect(made.warnings).toEqual([])
    expect(await runs()).toHaveLength(count)
  })

  test.each([
    [
      'one of a copy, which proves it, and gives the other files',
      false,
      ['out.webm out.mp4 out.sps pipe:0 poster.rgb'],
    ],
    [
      'one before it, without encoders, if its mp4 is published first',
      true,
      ['out.mp4 out.sps poster.rgb', 'out.webm pipe:0'],
    ],
  ])('%s; each video is read once more to verify it', async (_, isFirst, runs) => {
    const { tools, programs } = await listed()
    const made = await make(tools, await clip('fits.mp4'), isFirst ? { onFirstFiles: async () => {} } : {})
    expect(made).toMatchObject({ misfit: null, warnings: [], mp4: { copied: true } })
    const started = await programs()
    const outputs = /\bout\.\w+|poster\.rgb|pipe:0/g
    const ofSource = started.filter((line) => / -i in\.bin /.test(line))
    expect(ofSource.map((line) => line.match(outputs)?.join(' '))).toEqual(runs)
    const verified = started.flatMap((line) => / -i \S*(out\.\w+)$/.exec(line)?.[1] ?? [])
    expect(verified.toSorted()).toEqual(isFirst ? ['out.mp4', 'out.mp4', 'out.webm'] : ['out.mp4', 'out.webm'])
  })

  test('a silent track is left out by a copy of the finished videos', async () => {
    const { tools, runs } = await counted(unboxedTools)
    const made = await make(tools, await clip('silence.mp4'), { copy: 'never' })
    expect(made).toMatchObject({ hasAudio: false, warnings: [] })
    const { mp4, webm } = await expectSound(made)
    for (const { streams } of [mp4, webm]) {
      expect(streams).toMatchObject([{ codec_type: 'video', nb_read_frames: '25', start_time: '0.000000' }])
    }
    expect((await runs()).map((run) => / in\.bin /.test(run))).toEqual([true, false])
  })

  test('without it a transparent webm is still marked as transparent', async () => {
    const picture = ['-f', 'lavfi', '-i', 'color=red@0.0:s=64x48:r=25:d=1,format=yuva420p']
    const silence = ['-f', 'lavfi', '-i', 'aevalsrc=0:s=48000:d=1']
    const codecs = ['-c:v', 'libvpx', '-auto-alt-ref', '0', '-c:a', 'libopus']
    const made = await make(unboxedTools, await clipOf('silent-alpha.webm', [...picture, ...silence, ...codecs]))
    const { streams } = await inspect(made.webm.path)
    expect(streams).toMatchObject([{ codec_name: 'vp9', tags: { ALPHA_MODE: '1' } }])
  })

  test('after a failed one: the simple way, at once where there is no sound that may have been the reason', async () => {
    const { tools, runs } = await counted(await faulty('pipe:0', 'exit 1'))
    const made = await make(tools, await clip('small.mp4'), { copy: 'never' })
    expect(made.warnings).toEqual(['ffmpeg ended with 1'])
    expect((await runs()).map((run) => run.includes('pipe:0'))).toEqual([true, false])
  })

  test('of the first files the silent track is left out before they are shown', async () => {
    const { tools, runs } = await counted(unboxedTools)
    const first: FirstFiles[] = []
    const onFirstFiles = async (files: FirstFiles) => {
      first.push(files)
      expect((await inspect(files.mp4.path)).streams).toHaveLength(1)
    }
    const made = await make(tools, await clip('fits-silent.mp4'), { onFirstFiles })
    expect(first).toMatchObject([{ hasAudio: false, mp4: made.mp4 }])
    expect(made).toMatchObject({ hasAudio: false, misfit: null, warnings: [] })
    await expectSound(made)
    expect((await runs()).map((run) => / in\.bin /.test(run))).toEqual([true, false, true])
  })
})

describe('when ffmpeg fails', () => {
  test('when the usual command crashes the simple one runs', async () => {
    const made = await make(await faulty('pipe:0', 'kill -SEGV $$'), await clip('small-sound.mp4'))
    expect(made).toMatchObject({ hasAudio: true, warnings: ['ffmpeg ended with SIGSEGV'] })
    await expectSound(made)
  })

  test('when the pass with everything fails, the simple one runs, with the sound that the overview found', async () => {
    const tools = await faulty('out.mp4*volumedetect', 'exit 1')
    const made = await make(tools, await clip('small-sound.mp4'), { copy: 'never' })
    expect(made).toMatchObject({ hasAudio: true, warnings: ['ffmpeg ended with 1'] })
    await expectSound(made)
  })

  test('when it fails and there is no sound to hear, the usual one runs without it', async () => {
    const { tools, runs } = await counted(await faulty('out.mp4*volumedetect', 'exit 1'))
    const made = await make(tools, await clip('silence.mp4'), { copy: 'never' })
    expect(made).toMatchObject({ hasAudio: false, warnings: ['ffmpeg ended with 1'] })
    // The last is the usual one, whose GIF is ours.
    expect((await runs()).map((run) => run.includes('pipe:0'))).toEqual([true, false, true])
    await expectSound(made)
  })

  test('a success that wrote nothing is no success', async () => {
    const overview = 'case "$*" in *out.mp4*) ;; *) exit 0;; esac'
    const made = await make(await faulty('poster.rgb', overview), await clip('small.mp4'), { gifEncoder: 'ffmpeg' })
    expect(made.warnings).toEqual(['the overview failed'])
    await expectSound(made)
  })

  test.each([
    ['that wrote nothing', 'exit 0'],
    ['that wrote what cannot be read', `for f in gif mp4 webm; do echo x >out.$f; done`],
  ])('a success %s in the plain way too is the fault of the file', async (_, then) => {
    const made = make(
      await faulty('out.mp4', `${then}; '${unboxedTools.ffmpeg.path}' "$@"; ${then}; exit 0`),
      await clip('small.mp4'),
    )
    await expect(made).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test('a success that reports a full disk is not the fault of the file', async () => {
    const full = make(await faulty('', 'echo No space left on device >&2; exit 0'), await clip('small.mp4'))
    await expect(full).rejects.toSatisfy(isDiskFull)
  })

  test.each(['fits.mp4', 'small-sound.mp4', 'tiny.gif'] as const)(
    'a full disk ends the first attempt, and %s is not made in another way',
    async (name) => {
      const directory = await workDirectory()
      const full = await faulty('out.webm', 'echo run >>runs; echo No space left on device >&2; exit 1')
      const made = make(full, await clip(name), { workDirectory: directory })
      await expect(made).rejects.toSatisfy(isDiskFull)
      expect(await readFile(join(directory, 'runs'), 'utf8')).toBe('run\n')
    },
  )

  test('twice for the file: corrupt; twice by a crash too; killed or on a full disk: not the fault of the file', async () => {
    const path = await clip('small.mp4')
    await expect(make(await faulty('', 'exit 1'), path)).rejects.toMatchObject({ code: 'corrupt_media' })
    const crash = make(await faulty('', 'kill -SEGV $$'), path)
    await expect(crash).rejects.toMatchObject({ code: 'corrupt_media' })
    const killed = make(await faulty('', 'exit 137'), path)
    await expect(killed).rejects.toSatisfy((error) => !('code' in error) && /SIGKILL/.test(error.message))
    const full = make(await faulty('', 'echo No space left on device >&2; exit 1'), path)
    await expect(full).rejects.toSatisfy((error) => !('code' in error) && isDiskFull(error))
  })
})

describe('a copy', () => {
  const framesOf = async (path: string) => {
    const args = ['-v', 'error', '-i', path, '-map', '0:v:0', '-vsync', 'passthrough', '-f', 'framehash', '-']
    const { stdout } = spawnSync(unboxedTools.ffmpeg.path, args, { encoding: 'utf8' })
    // Hashes alone: times may have another scale.
    return stdout.split('\n').flatMap((line) => (line.startsWith('#') || !line ? [] : [line.split(',').at(-1)]))
  }
  test.each([
    ['mp4', 'fits.mp4'],
    ['webm', 'fits.webm'],
    ['webm', 'fits-vp8.webm'],
  ] as const)('of an %s (%s) shows the same frames, and has nothing of the source but them', async (kind, name) => {
    const [source, made] = [await clip(name), await filesOf(name)]
    expect(made).toMatchObject({ misfit: null, warnings: [], [kind]: { copied: true } })
    if (name !== 'fits-vp8.webm') await expectSound(made)
    const [ofSource, ofCopy] = [await framesOf(source), await framesOf(made[kind].path)]
    expect(ofSource).toHaveLength(50)
    expect(ofCopy).toEqual(ofSource)
    const bytes = (await readFile(made[kind].path)).toString('latin1')
    expect((await readFile(source)).toString('latin1')).toMatch(/Secret/)
    // The first frame of AAC names its encoder too, where nothing can be left out.
    expect(bytes).not.toMatch(/Secret|x264|libvpx/)
  })

  test('is not made where it is switched off', async () => {
    const made = await make(unboxedTools, await clip('fits-silent.mp4'), { copy: 'never' })
    expect(made).toMatchObject({ misfit: 'off', mp4: { copied: false } })
  })

  test('is not made in the simple way', async () => {
    const path = join(await workDirectory(), 'ffmpeg')
    const overview = 'case "$*" in *out.mp4*) ;; *poster.rgb*) exit 1;; esac'
    await writeFile(path, `#!/bin/sh\n${overview}\nexec '${unboxedTools.ffmpeg.path}' "$@"\n`, { mode: 0o755 })
    const tools = { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } }
    const made = await make(tools, await clip('fits.mp4'), { gifEncoder: 'ffmpeg' })
    expect(made).toMatchObject({ misfit: 'damaged', mp4: { copied: false } })
  })

  test('comes first where a caller waits for it, before any is encoded, and gives the same files', async () => {
    const source = await clip('fits.mp4')
    const [usual, first] = [await filesOf('fits.mp4'), [] as FirstFiles[]]
    const made = await make(unboxedTools, source, {
      onFirstFiles: async (files) => {
        first.push(files)
        const directory = dirname(files.mp4.path)
        expect((await readdir(directory)).filter((name) => /webm|gif/.test(name))).toEqual([])
      },
    })
    expect(made).toMatchObject({ misfit: null, warnings: [] })
    for (const kind of ['gif', 'jpg', 'webm'] as const) expect(made[kind].sha256).toBe(usual[kind].sha256)
    expect(await framesOf(made.mp4.path)).toEqual(await framesOf(source))
    const { jpg, mp4, placeholder } = made
    expect(first).toEqual([{ jpg, mp4, placeholder, hasAudio: true }])
  })
})

test.each([
  ['in the run that makes the other files', undefined],
  ['before it is published first', async () => expect.unreachable()],
])('a copy of which fewer frames were decoded %s than its source has is thrown away', async (_, onFirstFiles) => {
  const path = join(await workDirectory(), 'ffmpeg')
  const ffmpeg = unboxedTools.ffmpeg.path
  const losing = `case "$*" in *out.sps*) '${ffmpeg}' "$@" | sed s/^frame=50/frame=49/; exit;; esac`
  await writeFile(path, `#!/bin/sh\n${losing}\nexec '${ffmpeg}' "$@"\n`, { mode: 0o755 })
  const tools = { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } }
  const made = await make(tools, await clip('fits.mp4'), { onFirstFiles })
  expect(made.warnings[0]).toBe('not copied: 49 of 50 frames were decoded')
  expect(made).toMatchObject({ misfit: 'damaged', mp4: { copied: false } })
})

describe('the GIF', () => {
  /** Tools whose GIF writer does something else; `nice` starts all programs. */
  async function withWriter(instead: string): Promise<MediaTools> {
    const path = join(await workDirectory(), 'nice')
    const body = `#!/bin/sh\ncase "$*" in *gif-program*) ${instead};; esac\nshift 2\nexec "$@"\n`
    await writeFile(path, body, { mode: 0o755 })
    return { ...unboxedTools, limiters: { ...unboxedTools.limiters, nice: path } }
  }

  /** Only ffmpeg writes one table of colors for all frames, right behind the screen. */
  const hasOneTable = async (path: string) => ((await readFile(path))[10] ?? 0) >= 0x80

  test.each([
    ['own', false],
    ['ffmpeg', true],
  ] as const)('by %s', async (gifEncoder, oneTable) => {
    const made = await make(unboxedTools, await clip('small.mp4'), { gifEncoder })
    expect(made.warnings).toEqual([])
    expect(await hasOneTable(made.gif.path)).toBe(oneTable)
    await expectSound(made)
  })

  test.each([
    ['does not start', 'exit 1'],
    ['is killed', 'head -c 10000 >/dev/null; kill -KILL $$'],
  ])('is by ffmpeg if our writer %s', async (_, instead) => {
    const made = await make(await withWriter(instead), await clip('small-sound.mp4'))
    expect(made).toMatchObject({ hasAudio: true, warnings: ['the GIF writer failed'] })
    expect(await hasOneTable(made.gif.path)).toBe(true)
    expect(await expectSound(made)).toMatchObject({ seconds: 1, frames: '10' })
  })

  test('is not by ffmpeg if the disk is full', async () => {
    const full = make(
      await withWriter("echo 'Error: ENOSPC: no space left on device, write' >&2; exit 1"),
      await clip('small-sound.mp4'),
    )
    await expect(full).rejects.toSatisfy(isDiskFull)
  })
})

test('an abort ends ffmpeg and leaves no process behind', async () => {
  const path = join(await workDirectory(), 'ffmpeg')
  // A command line that no other process has, of another run neither.
  const sleep = `sleep 606.${randomInt(1e9)}`
  await writeFile(path, `#!/bin/sh\nexec ${sleep}\n`, { mode: 0o755 })
  const isRunning = () => spawnSync('pgrep', ['-xf', sleep]).status === 0
  const abort = new AbortController()
  const slow = { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } }
  const made = make(slow, await clip('small.mp4'), { signal: abort.signal })
  await expect.poll(isRunning).toBe(true)
  abort.abort(new Error('deleted'))
  await expect(made).rejects.toThrow('deleted')
  expect(isRunning()).toBe(false)
})
