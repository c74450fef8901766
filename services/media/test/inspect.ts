import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { embeddedTools } from './clips.ts'

const run = promisify(execFile)

export interface Inspected {
  format: { duration: string; start_time: string; tags?: Record<string, string> }
  streams: {
    codec_name: string
    width?: number
    height?: number
    pix_fmt?: string
    nb_read_frames: string
    sample_aspect_ratio?: string
    color_space?: string
    color_transfer?: string
    duration?: string
    tags?: Record<string, string>
    side_data_list?: unknown[]
  }[]
}

/** Decodes a whole file and describes it, independently of the code under test. */
export async function inspect(path: string): Promise<Inspected> {
  const { stdout } = await run(embeddedTools.ffprobe.path, [
    ...['-v', 'error', '-count_frames', '-show_streams', '-show_format', '-of', 'json', path],
  ])
  return JSON.parse(stdout)
}

/** Where the packets of the picture are in an mp4. */
export async function packetsOf(path: string): Promise<{ pos: number; size: number }[]> {
  const { stdout } = await run(embeddedTools.ffprobe.path, [
    ...['-v', 'error', '-select_streams', 'v:0', '-show_entries', 'packet=pos,size', '-of', 'csv=p=0', path],
  ])
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(',').map(Number))
    .map(([size = 0, pos = 0]) => ({ pos, size }))
}

/** The mean brightness of every frame, 0 to 255: enough to see which picture is shown when. */
export async function brightness(path: string): Promise<number[]> {
  const pixel = ['-vf', 'scale=1:1:flags=area', '-vsync', 'passthrough', '-pix_fmt', 'gray', '-f', 'rawvideo', '-']
  const { stdout } = await run(embeddedTools.ffmpeg.path, ['-v', 'error', '-i', path, ...pixel], { encoding: 'buffer' })
  return [...stdout]
}
