import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { access, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type MediaTools, resolveTools } from '../src/ffmpeg/binaries.ts'

const run = promisify(execFile)

/** Where tests look for the machine's own ffmpeg. */
export const systemPath = '/usr/local/bin:/usr/bin:/bin'

/** The tools that the service would find on this machine. */
export const machineTools: MediaTools = await resolveTools({ searchPath: systemPath })

/** The machine's limiters without niceness, and with a wall-clock limit that a busy machine does not reach. */
const limiters = { ...machineTools.limiters, nice: null, wallFactor: 60 }

export const tools: MediaTools = { ...machineTools, limiters }

/** The builds of the npm packages alone, as on a machine without ffmpeg. */
export const embeddedTools: MediaTools = { ...(await resolveTools({ searchPath: '' })), limiters }

/** A sandbox takes a fifth of the time of a small clip; run-confined.slow.test.ts and sandbox.slow.test.ts test it. */
export const unboxedTools: MediaTools = { ...embeddedTools, limiters: { ...limiters, sandbox: null } }

const picture = (seconds: number, options = '') => lavfi(`testsrc2=s=80x60:r=25:d=${seconds}${options}`)
const tone = (seconds: number) => lavfi(`sine=frequency=440:duration=${seconds}`)
const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '12']
const aac = ['-c:a', 'aac', '-ac', '1']

function lavfi(source: string): string[] {
  return ['-f', 'lavfi', '-i', source]
}

const latePicture = (sound: string[]) => [
  ...[...sound, '-itsoffset', '0.8', ...picture(1)],
  ...['-vsync', 'vfr', ...x264, ...aac, '-t', '1.8'],
]

/** ffmpeg's arguments for each clip; the file's ending picks the muxer. Small and short, to be made in tens of ms. */
const recipes = {
  'plain.mp4': [...picture(2), ...x264],
  // Large enough for the controls of a page.
  'page.mp4': [...lavfi('testsrc2=s=160x120:r=25:d=2'), ...x264],
  'faststart.mp4': [...picture(2), ...x264, '-movflags', '+faststart'],
  'sound.mp4': [...picture(2), ...tone(2), ...x264, ...aac, '-metadata', 'title=Secret title'],
  // Copied, because they are like our own files.
  'fits.mp4': [
    ...[...lavfi('testsrc2=s=160x120:r=25:d=2'), ...tone(2), '-c:v', 'libx264', '-preset', 'fast', '-crf', '40'],
    ...['-pix_fmt', 'yuv420p', '-g', '25', ...aac, '-metadata', 'title=Secret title'],
  ],
  'fits-short.mp4': [...lavfi('color=teal:s=160x120:r=25:d=0.6'), ...x264],
  'fits-silent.mp4': [
    ...[...lavfi('testsrc2=s=160x120:r=25:d=1'), ...lavfi('anullsrc=r=48000'), '-c:v', 'libx264', '-crf', '42'],
    ...['-pix_fmt', 'yuv420p', ...aac, '-t', '1'],
  ],
  'fits.webm': [
    ...[...lavfi('testsrc2=s=160x120:r=25:d=2'), '-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'],
    ...['-crf', '60', '-b:v', '0', '-pix_fmt', 'yuv420p', '-metadata', 'title=Secret title'],
  ],
  'fits-vp8.webm': [
    ...[...lavfi('testsrc2=s=160x120:r=25:d=2'), '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '-8'],
    ...['-crf', '50', '-b:v', '40k', '-pix_fmt', 'yuv420p', '-metadata', 'title=Secret title'],
  ],
  'small.mp4': [...lavfi('testsrc2=s=64x48:r=10:d=1'), ...x264],
  'small-sound.mp4': [...lavfi('testsrc2=s=48x64:r=10:d=1'), ...tone(1), ...x264, ...aac],
  'silence.mp4': [...picture(1), ...lavfi('anullsrc=r=48000'), ...x264, ...aac, '-t', '1'],
  'long-sound.mp4': [...picture(1), ...tone(3), ...x264, ...aac],
  'odd.mp4': [...lavfi('testsrc=s=161x121:r=25:d=1,setsar=2'), '-c:v', 'libx264', '-pix_fmt', 'yuv444p'],
  'sar.mp4': [...picture(1, ',setsar=2'), ...x264],
  // Black but for the second half second of two: the typical frame is black, the one at a third is not.
  'mostly-dark.mp4': [...picture(2, ",lutyuv=y=16:u=128:v=128:enable='not(between(t,0.5,0.9))'"), ...x264],
  // The same, two seconds after its sound.
  'late-mostly-dark.mp4': [
    ...[...tone(4), '-itsoffset', '2'],
    ...[...picture(2, ",lutyuv=y=16:u=128:v=128:enable='not(between(t,0.5,0.9))'"), '-vsync', 'vfr', ...x264, ...aac],
  ],
  // Wider than 480 pixels, so that each kind of variant is smaller.
  'low.mp4': [...lavfi('testsrc2=s=800x160:r=5:d=1.4'), ...x264],
  'fast.mp4': [...lavfi('testsrc2=s=80x60:r=120:d=1'), ...x264],
  // Shorter than one frame of the renditions.
  '3-frames-in-3-ms.mp4': [...lavfi('testsrc2=s=80x60:r=1000:d=0.003'), ...x264],
  '50-frames-in-50-us.mp4': [
    ...lavfi('testsrc2=s=80x60:r=1000000:d=0.00005'),
    ...[...x264, '-video_track_timescale', '1000000'],
  ],
  '1-frame-in-17-ms.mp4': [...lavfi('testsrc2=s=80x60:r=60'), ...x264, '-frames:v', '1'],
  'large.mp4': [...lavfi('testsrc2=s=2560x1440:r=10:d=0.2'), ...x264],
  'wide.mp4': [...lavfi('color=s=4098x32:r=5:d=0.4'), ...x264],
  'huge.mp4': [...lavfi('color=s=4100x2200:r=5:d=0.2'), ...x264],
  'huge.webm': [...lavfi('color=s=4100x2200:r=5:d=0.2'), '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
  // Its sound begins with the file, its picture later, as of a call or a cut film.
  'late-picture.mp4': latePicture(lavfi('anullsrc=r=48000')),
  'late-picture-sound.mp4': latePicture(tone(2)),
  'vfr.mp4': [...picture(2, ",select='lt(mod(n,10),4)'"), '-vsync', 'vfr', ...x264],
  'long.mp4': [...lavfi('color=s=64x48:r=5:d=31'), ...x264],
  'minute.mp4': [...lavfi('color=s=64x48:r=5:d=61'), ...x264],
  // A browser recording: no header has its length.
  'minute-piped.webm': [
    ...[...lavfi('color=s=64x48:r=2:d=60'), '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
    ...['-live', '1'],
  ],
  'just-30.mp4': [...lavfi('color=s=64x48:r=25:d=30.04'), ...x264],
  'audio-only.mp4': [...tone(1), ...aac],
  'hdr.mp4': [
    ...lavfi('testsrc2=s=80x60:r=25:d=1,format=yuv420p10le'),
    ...['-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1', '-color_primaries', 'bt2020'],
    ...['-color_trc', 'smpte2084', '-colorspace', 'bt2020nc', '-x265-params', 'log-level=none:transfer=smpte2084'],
  ],
  // A common kind of file: only the transfer function marks it as HDR.
  'hdr-bare.mp4': [
    ...lavfi('testsrc2=s=80x60:r=25:d=0.6,format=yuv420p10le'),
    ...['-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1', '-color_trc', 'smpte2084'],
    ...['-x265-params', 'log-level=none:transfer=smpte2084'],
  ],
  'piped.webm': [...picture(2), ...tone(2), '-c:v', 'libvpx', '-deadline', 'realtime', '-c:a', 'libopus', '-live', '1'],
  'sound-goes-on.webm': [
    ...[...lavfi('color=s=64x48:r=25:d=30'), ...tone(30.3), '-c:v', 'libvpx', '-deadline', 'realtime'],
    ...['-cpu-used', '8', '-c:a', 'libopus'],
  ],
  'alpha.webm': [
    ...lavfi('color=red@0.0:s=64x48:r=25:d=1,format=yuva420p'),
    ...['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-auto-alt-ref', '0'],
  ],
  'plain.mkv': [...picture(1), ...x264],
  'plain.mov': [...picture(1), ...x264],
  'mjpeg.mp4': [...picture(1), '-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p'],
  // The smallest mp4, for thousands of damaged copies.
  'tiny.mp4': [...lavfi('testsrc2=s=64x48:r=10:d=0.8'), ...tone(0.8), ...x264, ...aac, '-movflags', '+faststart'],
  'tiny-hevc.mp4': [
    ...[...lavfi('testsrc2=s=64x48:r=10:d=0.6,format=yuv420p10le'), '-c:v', 'libx265', '-preset', 'ultrafast'],
    ...['-tag:v', 'hvc1', '-x265-params', 'log-level=none'],
  ],
  'tiny.webm': [
    ...[...lavfi('testsrc2=s=64x48:r=10:d=0.8'), ...tone(0.8), '-c:v', 'libvpx-vp9', '-deadline', 'realtime'],
    ...['-cpu-used', '8', '-c:a', 'libopus'],
  ],
  'tiny-alpha.webm': [
    ...[...lavfi('color=red@0.5:s=64x48:r=10:d=0.6,format=yuva420p'), '-c:v', 'libvpx', '-auto-alt-ref', '0'],
  ],
  'tiny.gif': [...lavfi('testsrc2=s=64x48:r=10:d=0.8')],
  'hours.webm': [...lavfi('color=s=16x16:r=1/1000:d=36000'), '-c:v', 'libvpx'],
  'plain.gif': [...lavfi('testsrc2=s=160x120:r=10:d=1.5')],
} satisfies Record<string, string[]>

export type ClipName = keyof typeof recipes

/**
 * Kept between runs, in the checkout: a shared folder would belong to its first user. A changed recipe gets a new
 * folder.
 */
const recipeHash = createHash('sha256').update(JSON.stringify(recipes)).digest('hex').slice(0, 12)
const directory = fileURLToPath(new URL(`../../../node_modules/.cache/media-test-clips-${recipeHash}`, import.meta.url))

/** The path of a clip, made the first time any test asks for it. */
export async function clip(name: ClipName): Promise<string> {
  return madeOnce(name, (path) => ffmpeg([...recipes[name], path]))
}

/** A clip by a recipe of its own, kept under the name. */
export const clipOf = (name: string, args: string[]): Promise<string> =>
  madeOnce(name, (path) => ffmpeg([...args, path]))

/** A copy of `plain.mp4` whose picture stands on its side, as phones record it. */
export async function rotatedClip(): Promise<string> {
  const plain = await clip('plain.mp4')
  return madeOnce('rotated.mp4', (path) => ffmpeg(['-i', plain, '-c', 'copy', '-metadata:s:v:0', 'rotate=90', path]))
}

/** `plain.mp4` cut without encoding: frames before the cut are in the file, and an edit list hides them. */
export async function trimmedClip(): Promise<string> {
  const plain = await clip('plain.mp4')
  return madeOnce('trimmed.mp4', (path) => ffmpeg(['-ss', '0.6', '-i', plain, '-c', 'copy', path]))
}

/** A copy of an mp4 whose three headers each claim another duration. */
export async function lyingClip(name: ClipName, factor: number): Promise<string> {
  const bytes = Buffer.from(await readFile(await clip(name)))
  const durations = { mvhd: 20, tkhd: 24, mdhd: 20 }
  for (const [box, distance] of Object.entries(durations)) {
    const offset = bytes.indexOf(box) + distance
    bytes.writeUInt32BE(Math.round(bytes.readUInt32BE(offset) * factor), offset)
  }
  return written(`lying-${factor}-${name}`, bytes)
}

/** Keeps a file in the folder of clips under this name. */
async function madeOnce(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const path = join(directory, name)
  const isThere = await access(path).then(
    () => true,
    () => false,
  )
  if (isThere) return path
  await mkdir(directory, { recursive: true })
  await replaceFile(path, make)
  return path
}

/** A file of given bytes in the folder of clips. */
export async function written(name: string, bytes: string | Uint8Array): Promise<string> {
  await mkdir(directory, { recursive: true })
  const path = join(directory, name)
  await replaceFile(path, (unfinished) => writeFile(unfinished, bytes))
  return path
}

/** Test files run side by side and may make the same one: the last complete one wins. */
async function replaceFile(path: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = join(dirname(path), `${randomUUID()}-${basename(path)}`)
  await make(unfinished)
  await rename(unfinished, path)
}

/** Runs the npm package's build, so that every machine tests with the same bytes. */
async function ffmpeg(args: string[]): Promise<void> {
  await run(embeddedTools.ffmpeg.path, ['-y', '-v', 'error', ...args])
}
