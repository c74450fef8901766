import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { resolveTools } from '../src/transcode/binaries.ts'

const run = promisify(execFile)
const tools = await resolveTools({ searchPath: process.env.PATH ?? '' })

/** Moving pictures with some grain, and a tone: neither the easiest nor the hardest thing to encode. */
export async function makeClip(path: string, size: string, seconds: number): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=30:d=${seconds},noise=alls=6:allf=t`]
  const sound = ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`]
  const codecs = ['-c:v', 'libx264', '-preset', 'fast', '-pix_fmt', 'yuv420p', '-g', '60', '-c:a', 'aac']
  await run(tools.ffmpeg.path, ['-v', 'error', '-y', ...picture, ...sound, ...codecs, path])
}

const HARD =
  '-nostdin -hide_banner -loglevel error -y -protocol_whitelist file -format_whitelist gif,mov,matroska ' +
  '-max_pixels 33177600 -max_alloc 536870912'

/**
 * The commands of contract/media.md 5.9 as somebody would type them: probe, keyframe pass, one command for three files.
 * Without the poster's last step, without a look at the results, without anything around them.
 */
export async function runByHand(source: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const probed = await run(
    tools.ffprobe.path,
    words(`-v error -f mov -show_streams -show_format -count_packets -of json ${source}`),
  )
  const { streams, format } = JSON.parse(probed.stdout)
  const { width, height } = streams[0]
  const seconds = Number(format.duration)
  const scale = Math.min(1, 480 / Math.max(width, height))
  const small = `${Math.round(width * scale)}:${Math.round(height * scale)}`
  const gifFps = seconds <= 10 ? '16.67' : seconds <= 20 ? '12.5' : '10'
  const ffmpeg = (args: string[]) => run(tools.ffmpeg.path, args, { cwd: directory })
  await ffmpeg([
    ...words(`${HARD} -skip_frame nokey -f mov -i ${source} -filter_complex`),
    `[0:v:0]split[a][b];[a]scale=${small}:flags=lanczos,hqdn3d=1:1:6:6,palettegen=stats_mode=full[p];` +
      `[b]thumbnail=8,scale=${width}:${height},format=yuvj420p[j]`,
    ...words('-map [p] -frames:v 1 -update 1 pal.png -map [j] -frames:v 1 -update 1 -q:v 2 poster0.jpg'),
  ])
  const sound = '-map 0:a:0? -sn -dn'
  const end = '-map_metadata -1 -map_chapters -1 -t 30.5'
  await ffmpeg([
    ...words(`${HARD} -threads 0 -f mov -i ${source}`),
    ...words('-protocol_whitelist file -format_whitelist png_pipe -f png_pipe -i pal.png -filter_complex'),
    `[0:v:0]scale=${width}:${height}:flags=bicubic,setsar=1,format=yuv420p,split=3[v1][v2][v3];` +
      `[v3]fps=${gifFps},scale=${small}:flags=lanczos,hqdn3d=1:1:6:6[gx];` +
      '[gx][1:v]paletteuse=dither=bayer:bayer_scale=5:diff_mode=rectangle[g]',
    ...words(`-map [v1] ${sound} -c:v libx264 -preset veryfast -crf 23 -maxrate 6M -bufsize 12M -profile:v high -g 60`),
    ...words(`-c:a aac -b:a 128k -ac 2 -ar 48000 -movflags +faststart ${end} o.mp4`),
    ...words(`-map [v2] ${sound} -c:v libvpx-vp9 -deadline realtime -cpu-used 7 -crf 32 -b:v 0 -row-mt 1`),
    ...words(`-tile-columns 2 -g 120 -c:a libopus -b:a 96k -ac 2 -ar 48000 ${end} o.webm`),
    ...words('-map [g] -loop 0 -t 30.5 o.gif -progress pipe:1'),
  ])
  await rm(directory, { recursive: true })
}

export async function hashFile(path: string): Promise<void> {
  await pipeline(createReadStream(path), createHash('sha256'))
}

const words = (text: string) => text.split(' ').filter(Boolean)
