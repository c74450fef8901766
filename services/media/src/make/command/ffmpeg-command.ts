// Translates a plan into ffmpeg's arguments, with the options that the builds of 2018 and of today share. No name or
// address from outside is ever an argument; files have the names of work-files.ts. Codecs and limits of each file:
// ffmpeg-outputs.ts; filters: filter-graph.ts. Measurements: contract/media.md 5.9.
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import { hardenedGlobals, hardenedInput } from '../../ffmpeg/hardening.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import type { UnsurePixels } from '../plan/unsure-pixels.ts'
import {
  alphaMark,
  copyOutput,
  gifOutput,
  mp4Output,
  posterOutput,
  variableRate,
  volumeOutput,
  webmOutput,
  withoutMetadata,
  withoutTags,
} from './ffmpeg-outputs.ts'
import {
  denoise,
  type GifSource,
  gifFilters,
  inItsOwnTime,
  palettegen,
  pictureFilters,
  posterCandidates,
  posterFilters,
  seconds,
  sharedFrames,
  size,
  typicalFrame,
  wholeFrames,
} from './filter-graph.ts'
import { workFiles } from './work-files.ts'

/** One cheap pass over the keyframes: poster as raw RGB, peak volume, and on request the palette of a GIF by ffmpeg. */
export function overviewCommand(
  plan: RenditionPlan,
  { threads, palette }: { threads: number; palette: boolean },
): string[] {
  const gifSize = plan.gif.from === 'frames' ? plan.gif.size : plan.video
  const sampled = plan.overview === 'sampled' ? 'fps=2:round=up,' : ''
  const pictures = `[0:${plan.videoStream}]${wholeFrames(plan)}${sampled}${pictureFilters(inItsOwnTime(plan))}`
  const poster = `${posterFilters(plan)},thumbnail=${posterCandidates}[poster]`
  const graph = palette
    ? [
        `${pictures},split[a][b]`,
        `[a]scale=${size(gifSize)}:flags=lanczos,${denoise},${palettegen}[palette]`,
        `[b]${poster}`,
      ]
    : [`${pictures},${poster}`]
  const paletteOutput = ['-map', '[palette]', '-frames:v', '1', '-f', 'image2', '-update', '1', workFiles.palette]
  return [
    ...start(plan.audioStream === null ? 'error' : 'info'),
    ...(plan.overview === 'keyframes' ? ['-skip_frame:v', 'nokey'] : []),
    ...input(plan, threads),
    ...filterGraph(graph, threads),
    ...(palette ? paletteOutput : []),
    ...posterOutput(),
    ...volumeOutput(plan),
  ]
}

export interface RenditionsOfRun {
  threads: number
  videos: ('mp4' | 'webm')[]
  gif: GifSource
  poster: boolean
  /** Measures the peak of the sound. */
  volume: boolean
}

/** One decode for all files of a run: videos, and on request the GIF (or its frames) and the poster. */
export function renditionsCommand(ffmpeg: Ffmpeg, plan: RenditionPlan, run: RenditionsOfRun): string[] {
  const { threads, gif, poster, volume } = run
  const videos = run.videos.filter((video) => video !== plan.copies)
  const copied = run.videos.find((video) => video === plan.copies)
  const graph = [
    ...sharedFrames(plan, [
      ...videos,
      ...(gif === 'none' ? [] : ['frames' as const]),
      ...(poster ? ['still' as const] : []),
    ]),
    ...gifFilters(plan, gif),
    ...(poster ? [posterFilter(plan)] : []),
  ]
  return [
    ...start(logLevel(plan, run)),
    ...input(plan, threads),
    ...(gif === 'palette-file' ? paletteInput() : []),
    ...filterGraph(graph, threads),
    ...(videos.includes('mp4') ? mp4Output(ffmpeg, plan, threads) : []),
    ...(videos.includes('webm') ? webmOutput(ffmpeg, plan, threads) : []),
    ...(copied ? copyOutput(plan, copied) : []),
    ...gifOutput(ffmpeg, plan, gif),
    ...(poster ? posterOutput() : []),
    ...(volume ? volumeOutput(plan) : []),
    ...['-progress', 'pipe:1', '-nostats'],
  ]
}

/**
 * The log has the number of decoded frames where the source is decoded from its beginning; of a copy, their sizes and
 * pixels.
 */
function logLevel(plan: RenditionPlan, { volume }: Pick<RenditionsOfRun, 'volume'>): LogLevel {
  if (plan.copies || !seeks(plan)) return 'verbose'
  return volume && plan.audioStream !== null ? 'info' : 'error'
}

/** Copies finished videos without their sound. */
export function withoutSoundCommand(plan: RenditionPlan, videos: ('mp4' | 'webm')[]): string[] {
  const outputs = {
    mp4: ['-movflags', '+faststart', '-f', 'mp4', workFiles.silentMp4],
    // Opus begins before the picture, which it delays by 14 ms.
    webm: [
      ...(plan.keepsAlpha ? alphaMark : []),
      '-avoid_negative_ts',
      'make_zero',
      '-f',
      'webm',
      workFiles.silentWebm,
    ],
  }
  return [
    ...start('error'),
    ...videos.flatMap((video) => [...hardenedInput(video === 'mp4' ? 'mov' : 'matroska'), '-i', workFiles[video]]),
    ...videos.flatMap((video, input) => ['-map', `${input}:v:0`, '-c', 'copy', ...withoutMetadata, ...outputs[video]]),
  ]
}

/**
 * Copies the source's streams into the mp4 and decodes every frame, which is the first output of its progress. Volume
 * and poster are those of `renditionsCommand`.
 */
export function copyCommand(
  ffmpeg: Ffmpeg,
  plan: RenditionPlan,
  run: Pick<RenditionsOfRun, 'threads' | 'poster'>,
): string[] {
  const poster = [...sharedFrames(plan, ['still']), posterFilter(plan)]
  return [
    ...[...start(logLevel(plan, { volume: true })), ...input(plan, run.threads)],
    ...(run.poster ? filterGraph(poster, run.threads) : []),
    ...['-map', `0:${plan.videoStream}`, ffmpeg.frameRateModeFlag, 'passthrough', ...withoutTags, '-f', 'null', '-'],
    ...copyOutput(plan, 'mp4'),
    ...(run.poster ? posterOutput() : []),
    ...volumeOutput(plan),
    ...['-progress', 'pipe:1', '-nostats'],
  ]
}

/** The frame at a given time, where the typical one is too dark, or the one that the result of an edit shows then. */
export function posterCommand(plan: RenditionPlan, atSeconds: number): string[] {
  const at = seconds(atSeconds)
  // A picture may be held from long before, and the last one to the end.
  const shown = `${wholeFrames(plan)}tpad=stop_mode=clone:stop=-1,fps=1000:start_time=${at}`
  const frame = plan.cut ? `${shown},` : `trim=start=${at},${wholeFrames(plan)}`
  const graph = [`[0:${plan.videoStream}]${frame}${pictureFilters(inItsOwnTime(plan))},${posterFilters(plan)}[poster]`]
  return [...start('error'), ...input(plan, 1), ...filterGraph(graph, 1), ...posterOutput()]
}

/** A smaller GIF from the finished mp4, or from the webm that keeps alpha. */
export function smallerGifCommand(
  ffmpeg: Ffmpeg,
  plan: RenditionPlan,
  { threads, gif }: Pick<RenditionsOfRun, 'threads' | 'gif'>,
): string[] {
  const made = plan.keepsAlpha
    ? { demuxer: 'matroska' as const, decoder: ffmpeg.webmVideoEncoder, name: workFiles.webm, cut: null }
    : { demuxer: 'mov' as const, decoder: null, name: workFiles.mp4, cut: null }
  const graph = ['[0:0]null[frames]', ...gifFilters(plan, gif)]
  return [
    ...start('error'),
    ...input({ ...plan, ...made }, threads, made.name),
    ...(gif === 'palette-file' ? paletteInput() : []),
    ...filterGraph(graph, threads),
    ...gifOutput(ffmpeg, plan, gif),
  ]
}

/** Ends after the first frame with a transparent pixel in the given place; the file stays empty if there is none. */
export function transparencyCommand(plan: RenditionPlan, { area, frames }: UnsurePixels): string[] {
  // A build of 2018 selects every frame without metadata, so `blackframe` gives each one some.
  const isClear = 'blackframe=amount=0,negate,bbox=min_val=127,metadata=select:key=lavfi.bbox.x1'
  const place = `crop=${area.width}:${area.height}:${area.left}:${area.top}:exact=1`
  const looked = `trim=end_frame=${frames},format=rgba,${place},alphaextract,format=gray`
  return [
    ...[...start('error'), ...input(plan, 1), '-map', `0:${plan.videoStream}`],
    ...['-vf', `${looked},${isClear},scale=2:2`, '-frames:v', '1', '-pix_fmt', 'gray'],
    ...['-f', 'rawvideo', workFiles.transparency],
  ]
}

export function clearPosterCommand(ffmpeg: Ffmpeg, file: string, atSeconds: number): string[] {
  const ofWebm = { file: 'input', demuxer: 'matroska', moreDecoders: [], deinterlacer: null, cut: null } as const
  const webm = { ...ofWebm, decoder: ffmpeg.webmVideoEncoder }
  return [
    ...[...start('error'), ...input(webm, 1, file), '-map', '0:v:0', '-ss', seconds(atSeconds), '-frames:v', '1'],
    ...['-vf', 'format=rgba', '-f', 'rawvideo', workFiles.clearPoster],
  ]
}

/**
 * The AV1 copy of the finished mp4 in `input`: picture encoded again, sound copied. Preset 8 is the slowest that is
 * quicker than VP9 at its usual speed, and its files are half as large (contract/media.md 5.4 and 5.9).
 */
export function av1Command(ffmpeg: Ffmpeg): string[] {
  return [
    ...[...start('error'), '-threads', '1', ...hardenedInput('mov'), '-i', workFiles.input],
    ...['-map', '0:v:0', '-map', '0:a:0?', ...variableRate(ffmpeg), '-c:v', 'libsvtav1', '-preset', '8', '-crf', '38'],
    ...['-g', '120', '-svtav1-params', 'lp=1', '-pix_fmt', 'yuv420p', '-c:a', 'copy'],
    ...['-movflags', '+faststart', ...withoutMetadata, '-f', 'mp4', workFiles.av1],
  ]
}

/** A frame of the finished mp4 in `input` for the scanner, 720 pixels at most; no file if the clip has none so late. */
export function scanFrameCommand(atSeconds: number): string[] {
  const inside = "scale='min(720,iw)':'min(720,ih)':force_original_aspect_ratio=decrease"
  return [
    ...[...start('error'), '-threads', '1', '-ss', seconds(atSeconds), ...hardenedInput('mov'), '-i', workFiles.input],
    ...['-map', '0:v:0', '-frames:v', '1', '-vf', `${inside},format=yuvj420p`, '-c:v', 'mjpeg', '-q:v', '4'],
    ...['-f', 'image2', '-update', '1', workFiles.scanFrame],
  ]
}

/** True if decoding starts in the middle of the file. */
export const seeks = ({ cut }: Pick<RenditionPlan, 'cut'>): boolean => cut !== null && cut.seekSeconds > 0

type LogLevel = 'error' | 'info' | 'verbose'

/** Every message has its level, which text of the file has not (ffmpeg-log.ts). */
function start(logLevel: LogLevel): string[] {
  return ['-nostdin', ...hardenedGlobals, '-loglevel', `level+${logLevel}`, '-nostats', '-y']
}

function input(
  plan: Pick<RenditionPlan, 'file' | 'decoder' | 'demuxer' | 'moreDecoders' | 'deinterlacer' | 'cut'>,
  threads: number,
  file: string = workFiles[plan.file],
): string[] {
  const decoder = plan.decoder ? ['-c:v', plan.decoder] : []
  // When the size of the picture changes, as in calls, ffmpeg would start new filters and lose the frames in the old
  // ones. Ours scale first, which takes any size; deinterlacers take one.
  const filters = plan.deinterlacer ? [] : ['-reinit_filter:v', '0']
  const seek = plan.cut && seeks(plan) ? ['-ss', plan.cut.seekSeconds.toFixed(6)] : []
  return [
    '-threads',
    String(threads),
    ...decoder,
    ...filters,
    ...seek,
    ...hardenedInput(plan.demuxer, plan.moreDecoders),
    '-i',
    file,
  ]
}

function paletteInput(): string[] {
  const png = ['-protocol_whitelist', 'file', '-format_whitelist', 'png_pipe', '-codec_whitelist', 'png']
  return [...png, '-f', 'png_pipe', '-i', workFiles.palette]
}

function filterGraph(chains: string[], threads: number): string[] {
  return ['-filter_complex_threads', String(threads), '-filter_complex', chains.join(';')]
}

function posterFilter(plan: RenditionPlan): string {
  return `[still]${typicalFrame(plan)}${posterFilters(plan)}[poster]`
}
