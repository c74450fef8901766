import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, rm, stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { cpuSeconds } from '@services/common/bench/cpu'
import { resolveTools } from '../src/ffmpeg/binaries.ts'
import type { GifProgramInput } from '../src/make/gif/write-gif.ts'

const run = promisify(execFile)
export const tools = await resolveTools({ searchPath: process.env.PATH ?? '' })

const HARD =
  '-nostdin -hide_banner -loglevel error -y -protocol_whitelist file -format_whitelist gif,mov,matroska ' +
  '-max_pixels 33177600 -max_alloc 536870912'

const DEMUXERS = { mp4: 'mov', webm: 'matroska', gif: 'gif' } as const
const END = '-map_metadata -1 -map_chapters -1 -t 30.5'
const SOUND = '-map 0:a:0? -sn -dn'

type Output = 'mp4' | 'webm' | 'gif' | 'frames' | 'poster'

interface Probed {
  source: string
  directory: string
  demuxer: string
  width: number
  height: number
  seconds: number
  /** Half a bit for each pixel. */
  webmBitRate: number
  gifSize: string
  gifRate: string
  gifFrames: number
}

/**
 * The commands of contract/media.md 5.9 as typed in a shell: probe, and one command for four files (for a gif three:
 * itself is kept). The GIF comes from our writer behind a pipe; with ffmpeg's palette that is made first. The poster's
 * last step, checks of the results and all else are left out.
 */
export async function runByHand(
  source: string,
  directory: string,
  { threads = 0, gif }: { threads?: number; gif: 'usual' | 'ours' },
): Promise<void> {
  await mkdir(directory, { recursive: true })
  const clip = await probe(source, directory)
  if (clip.demuxer === 'gif') {
    await makeOutputs(clip, ['mp4', 'webm', 'poster'], threads)
    await copyFile(clip.source, resolve(clip.directory, 'o.gif'))
  } else {
    if (gif === 'usual') await makePalette(clip)
    await makeOutputs(clip, ['mp4', 'webm', gif === 'usual' ? 'gif' : 'frames', 'poster'], threads)
  }
  await rm(directory, { recursive: true })
}

/** Measures the CPU seconds of one decode, and of each encoder beyond it; the GIF's is our writer. */
export async function leastCpuByHand(source: string, directory: string): Promise<number> {
  await mkdir(directory, { recursive: true })
  const clip = await probe(source, directory)
  const measured = async (work: () => Promise<unknown>) => {
    const before = cpuSeconds('self')
    await work()
    return cpuSeconds('self') - before
  }
  const decode = await measured(() => ffmpeg(clip, words(`${HARD} -f ${clip.demuxer} -i ${source} -f null -`)))
  let total = decode
  for (const output of ['mp4', 'webm'] as const)
    total += (await measured(() => makeOutputs(clip, [output], 0))) - decode
  if (clip.demuxer !== 'gif') total += (await measured(() => makeOutputs(clip, ['frames'], 0))) - decode
  await rm(directory, { recursive: true })
  return total
}

/**
 * Measures a GIF of the source at our size and rate, with ffmpeg's palette, and `ours`: bytes, SSIM in dB, and flicker.
 * Flicker is the mean error of the differences between neighbouring frames in steps of brightness.
 */
export async function compareGifs(source: string, directory: string, ours: string) {
  await mkdir(directory, { recursive: true })
  const clip = await probe(source, directory)
  const usual = 'usual.gif'
  const frames = `fps=${clip.gifRate},scale=${clip.gifSize}:flags=lanczos`
  await ffmpeg(clip, [
    ...words(`${HARD} -i ${source} -filter_complex`),
    `[0:v:0]${frames},split[a][b];[a]palettegen[p];[b][p]paletteuse`,
    usual,
  ])
  // Both by way of RGB, where the colors of YUV depend on no guess.
  const inOrder = 'format=rgb24,format=yuv420p,settb=1/30,setpts=N'
  const ssim = async (gif: string) => {
    const graph = `[0:v]fps=${clip.gifRate},${inOrder}[a];[1:v:0]${frames},${inOrder}[b];[a][b]ssim=stats_file=-:shortest=1`
    const args = words(`-hide_banner -nostdin -loglevel info -i ${gif} -i ${source} -an -lavfi`)
    const { stderr } = await ffmpeg(clip, [...args, graph, ...words('-f null -')])
    const decibels = /All:[\d.]+ \(([\d.]+|inf)\)/.exec(stderr)?.[1]
    return Math.min(INDISTINGUISHABLE, decibels === 'inf' ? INDISTINGUISHABLE : Number(decibels))
  }
  const brightness = async (file: string, filters: string) => {
    const args = [...words(`${HARD} -i ${file} -an -vf ${filters},format=gray -f rawvideo -`)]
    const { stdout } = await run(tools.ffmpeg.path, args, { cwd: directory, encoding: 'buffer', maxBuffer: 1024 ** 3 })
    return stdout
  }
  const [width = 0, height = 0] = clip.gifSize.split(':').map(Number)
  const original = await brightness(source, frames)
  const flicker = async (gif: string) =>
    flickerOf(await brightness(gif, `fps=${clip.gifRate}`), original, width * height)
  const bytes = async (gif: string) => (await stat(resolve(directory, gif))).size
  const sides = [usual, ours].map(async (gif) => ({
    ...{ bytes: await bytes(gif), ssim: await ssim(gif), flicker: await flicker(gif) },
  }))
  const [ofUsual, ofOurs] = (await Promise.all(sides)) as [GifQuality, GifQuality]
  const result = { usual: ofUsual, ours: ofOurs }
  await rm(directory, { recursive: true })
  return result
}

/** SSIM in dB from which viewers see no difference; more counts as this. */
const INDISTINGUISHABLE = 25

interface GifQuality {
  bytes: number
  ssim: number
  flicker: number
}

function flickerOf(shown: Buffer, original: Buffer, pixels: number): number {
  const end = Math.min(shown.length, original.length)
  let sum = 0
  for (let at = pixels; at < end; at++) {
    const change = (frames: Buffer) => (frames[at] as number) - (frames[at - pixels] as number)
    sum += Math.abs(change(shown) - change(original))
  }
  return sum / (end - pixels)
}

async function probe(source: string, directory: string): Promise<Probed> {
  const demuxer = DEMUXERS[extname(source).slice(1) as keyof typeof DEMUXERS]
  const shown = words(`-v error -f ${demuxer} -show_streams -show_format -count_packets -of json ${source}`)
  const { streams, format } = JSON.parse((await run(tools.ffprobe.path, shown)).stdout)
  const video = streams.find((stream: { codec_type: string }) => stream.codec_type === 'video')
  const seconds = Number(format.duration)
  const [frames, ofSeconds] = video.avg_frame_rate.split('/').map(Number)
  const delay = Math.max(seconds <= 10 ? 6 : seconds <= 20 ? 8 : 10, Math.ceil((100 * ofSeconds) / frames - 0.1))
  const gifScale = Math.min(1, 480 / Math.max(video.width, video.height))
  const scale = Math.min(1, 1920 / video.width, 1080 / video.height)
  return {
    ...{ source, directory, demuxer, seconds, width: video.width * scale, height: video.height * scale },
    webmBitRate: Math.round((0.5 * video.width * video.height * scale ** 2 * frames) / ofSeconds),
    gifSize: `${Math.round(video.width * gifScale)}:${Math.round(video.height * gifScale)}`,
    gifRate: `100/${delay}`,
    gifFrames: Math.ceil((seconds * 100) / delay),
  }
}

const ffmpeg = ({ directory }: Probed, args: string[]) => run(tools.ffmpeg.path, args, { cwd: directory })

function makePalette(clip: Probed) {
  const graph = `[0:v:0]scale=${clip.gifSize}:flags=lanczos,hqdn3d=1:1:6:6,palettegen=stats_mode=full[p]`
  const start = words(`${HARD} -skip_frame nokey -f ${clip.demuxer} -i ${clip.source} -filter_complex`)
  return ffmpeg(clip, [...start, graph, ...words('-map [p] -frames:v 1 -update 1 pal.png')])
}

/** Runs ffmpeg with our writer behind a pipe of the shell. */
function ffmpegToWriter(clip: Probed, args: string[]) {
  const [width = 0, height = 0] = clip.gifSize.split(':').map(Number)
  const delayCentiseconds = Number(clip.gifRate.split('/')[1])
  const budget = { bytes: 8_000_000, frames: clip.gifFrames }
  const format = { width, height, delayCentiseconds, loopCount: 0, hasAlpha: false, budget }
  const input: GifProgramInput = { file: 'o.gif', format, totalCentiseconds: 0 }
  const program = resolve(import.meta.dirname, '../src/make/gif/gif-program.ts')
  const quoted = (words: string[]) => words.map((word) => `'${word}'`).join(' ')
  const command = `${quoted([tools.ffmpeg.path, ...args])} | ${quoted([process.execPath, program, JSON.stringify(input)])}`
  return run('bash', ['-o', 'pipefail', '-c', command], { cwd: clip.directory })
}

function makeOutputs(clip: Probed, outputs: Output[], threads: number) {
  const { demuxer, source, width, height, seconds, gifSize, gifRate } = clip
  const picture = demuxer === 'gif' ? onWhite(clip) : `scale=${width}:${height}:flags=bicubic,setsar=1,format=yuv420p`
  const graph = [
    `[0:v:0]${picture},split=${outputs.length}${outputs.map((output) => `[${output}]`).join('')}`,
    ...(outputs.includes('frames') ? [`[frames]fps=${gifRate},scale=${gifSize}:flags=lanczos,format=rgb24[r]`] : []),
    ...(outputs.includes('gif')
      ? [
          `[gif]fps=${gifRate},scale=${gifSize}:flags=lanczos,hqdn3d=1:1:6:6[gx]`,
          '[gx][1:v]paletteuse=dither=bayer:bayer_scale=5:diff_mode=rectangle[g]',
        ]
      : []),
    ...(outputs.includes('poster')
      ? [`[poster]fps=${(8 / seconds).toFixed(4)},thumbnail=8,scale=${width}:${height},format=rgb24[j]`]
      : []),
  ]
  const crf = demuxer === 'gif' ? { mp4: 20, webm: 30 } : { mp4: 23, webm: 36 }
  const ends = {
    mp4:
      `-map [mp4] ${SOUND} -c:v libx264 -preset veryfast -crf ${crf.mp4} -maxrate 6M -bufsize 12M -profile:v high -g 60 ` +
      `-threads ${threads} -c:a aac -b:a 128k -ac 2 -ar 48000 -movflags +faststart ${END} o.mp4`,
    webm:
      `-map [webm] ${SOUND} -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -crf ${crf.webm} ` +
      `-b:v ${clip.webmBitRate} -lag-in-frames 0 -row-mt 1 -tile-columns 2 -g 120 -threads ${threads} ` +
      `-c:a libopus -b:a 96k -ac 2 -ar 48000 ${END} o.webm`,
    gif: '-map [g] -loop 0 -t 30.5 o.gif',
    frames: '-map [r] -t 30.5 -c:v rawvideo -f fifo -fifo_format rawvideo -queue_size 8 pipe:1',
    poster: '-map [j] -frames:v 1 -f rawvideo poster.rgb',
  }
  const args = [
    ...words(`${HARD} -threads ${threads} -f ${demuxer} -i ${source}`),
    ...(outputs.includes('gif')
      ? words('-protocol_whitelist file -format_whitelist png_pipe -f png_pipe -i pal.png')
      : []),
    ...['-filter_complex', graph.join(';')],
    ...outputs.flatMap((output) => words(ends[output])),
  ]
  return outputs.includes('frames') ? ffmpegToWriter(clip, args) : ffmpeg(clip, args)
}

const onWhite = ({ width, height }: Probed) =>
  `scale=${width}:${height}:flags=bicubic,format=rgba,split[a][b];[a]lutrgb=r=255:g=255:b=255:a=255[w];` +
  '[w][b]overlay=format=auto,setsar=1,format=yuv420p'

export async function hashFile(path: string): Promise<void> {
  await pipeline(createReadStream(path), createHash('sha256'))
}

const words = (text: string) => text.split(' ').filter(Boolean)
