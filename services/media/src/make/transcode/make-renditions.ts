// The files of one source: the first ones early, then all renditions, and extras afterwards.
import { rm, symlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isAnimation, type MediaInfo } from '../../db/media-info.ts'
import type { MainKind } from '../../db/tables.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { refuseFullDisk } from '../../ffmpeg/machine-faults.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { writeCaption } from '../command/draw-caption.ts'
import { overviewCommand, type RenditionsOfRun, renditionsCommand, seeks } from '../command/ffmpeg-command.ts'
import { collectGif, encodeWithGif, gifSourceOf, shrinkGif } from '../gif/make-gif.ts'
import { GifWriterFailed } from '../gif/write-gif.ts'
import { copyOf, type Misfit, misfitOf } from '../plan/copy-plan.ts'
import { fromBeginning } from '../plan/cut-filters.ts'
import { planRenditions, type RenditionPlan, simplerPlan } from '../plan/rendition-plan.ts'
import { choosePoster, collectPoster } from '../poster/choose-poster.ts'
import { isWholePoster } from '../poster/encode-poster.ts'
import { allToTheirEnd, ENCODING, encode, inWork, type TranscodeOptions, type TranscodeWork } from '../run/encode.ts'
import { ChangingPicture, mayRetry, refuseAsCorrupt, UnusableOutput } from '../run/failures.ts'
import type { FfmpegLog } from '../run/ffmpeg-log.ts'
import { measuredInfo, missingSeconds } from '../run/measured-info.ts'
import { stripSideData } from '../run/strip-side-data.ts'
import {
  type Rendition,
  requireDecoded,
  requireFitToItsEnd,
  requireWholeLength,
  verifyVideos,
} from '../run/verify-renditions.ts'
import { exists, keepAlphaInUse, writeFrames } from './animation-frames.ts'
import { dropSilence } from './drop-sound.ts'
import { makeFirstFiles } from './first-files.ts'

export interface Renditions extends EncodedFiles {
  /** Null where the source's own streams are its mp4 or webm, else why not; undefined for GIFs, which have neither. */
  misfit: Misfit | 'off' | 'changes' | 'damaged' | null | undefined
}

interface EncodedFiles extends Record<MainKind, Rendition> {
  /** Facts of the source as its files show it. */
  info: MediaInfo
  placeholder: Buffer
  /** False also for a silent sound track, which is dropped. */
  hasAudio: boolean
  /** Problems that did not prevent the renditions, for the log. */
  warnings: string[]
}

/**
 * This folder makes gif, jpg, mp4 and webm of a probed file with one decode. ffmpeg's exit code 0 proves nothing, so
 * every output is verified. `rendition-plan.ts` decides, `ffmpeg-command.ts` translates. Throws corrupt_media,
 * processing_timeout, the signal's reason, or an Error when the fault is ours.
 */
export async function makeRenditions(
  tools: MediaTools,
  source: { path: string; info: MediaInfo },
  options: TranscodeOptions,
): Promise<Renditions> {
  const planned = planRenditions(source.info, tools.ffmpeg)
  const threads = Math.min(options.threads, planned.mostThreads)
  const work: TranscodeWork = { tools, info: source.info, ...options, threads, onProgress: rising(options.onProgress) }
  await linkInput(work, source.path)
  await writeCaption(work, planned)
  await writeFrames(work, planned)
  const plan = await keepAlphaInUse(work, planned)
  const restart = async (error: Error, change: Partial<TranscodeOptions>, info = source.info) => {
    const made = await makeRenditions(tools, { ...source, info }, { ...work, onFirstFiles: undefined, ...change })
    return { ...made, warnings: [error.message, ...made.warnings] }
  }
  /** Returns undefined where only the simple way is left. */
  const makeOtherwise = async (error: unknown, failed: RenditionPlan): Promise<Renditions | undefined> => {
    if (!mayRetry(work, error)) throw error
    if (seeks(planned)) return restart(error, {}, fromBeginning(source.info))
    if (error instanceof GifWriterFailed) return restart(error, { gifEncoder: 'ffmpeg' })
    if (whyEncoded(work, failed) !== null) return undefined
    return {
      ...(await restart(error, { copy: 'never' })),
      misfit: error instanceof ChangingPicture ? 'changes' : 'damaged',
    }
  }
  const makeUsually = async (plan: RenditionPlan, hasOverview: boolean): Promise<Renditions> => {
    const misfit = whyEncoded(work, plan)
    const copies = misfit === null && !isAnimation(work.info) ? copyOf(work.info) : null
    return { ...(await encodeUsually(work, { ...plan, copies }, { hasOverview })), misfit }
  }
  const makeSimply = async (plan: RenditionPlan, warnings: string[]): Promise<Renditions> => {
    const misfit = whyEncoded(work, plan)
    return { ...(await encodeSimply(work, plan, warnings)), misfit: misfit === null ? 'damaged' : misfit }
  }

  const failures: string[] = []
  if (isOnePassEnough(work, plan)) {
    work.onProgress?.(ENCODING.from)
    try {
      return await makeUsually(plan, false)
    } catch (error) {
      const made = await makeOtherwise(error, plan)
      if (made) return made
      failures.push((error as Error).message)
      // If the sound caused the failure, retry without it; otherwise the second run would fail too.
      if (plan.audioStream === null) return makeSimply(plan, failures)
    }
  }
  const overview = await takeOverview(work, plan)
  const heard = { ...plan, audioStream: overview?.audible ? plan.audioStream : null }
  const soundLost = !overview && plan.audioStream !== null ? ['the sound could not be read'] : []
  if (!overview) return makeSimply(heard, [...failures, 'the overview failed', ...soundLost])
  if (failures.length > 0 && heard.audioStream !== null) return makeSimply(heard, failures)

  try {
    const made = await makeUsually(heard, true)
    return { ...made, warnings: [...failures, ...made.warnings] }
  } catch (error) {
    const made = await makeOtherwise(error, heard)
    return made ?? makeSimply(heard, [...failures, (error as Error).message])
  }
}

/**
 * Poster and volume come from the encoders' own pass, unless something before it depends on them. That is the palette
 * of a GIF by ffmpeg, and whether a sound that keeps a clip from being copied is silent.
 */
function isOnePassEnough(work: TranscodeWork, plan: RenditionPlan): boolean {
  if (plan.gif.from === 'rewrite') return true
  return work.gifEncoder === 'own' && whyEncoded(work, plan) !== 'sound'
}

function whyEncoded({ info, copy }: TranscodeWork, plan: RenditionPlan): Misfit | 'off' | 'damaged' | null | undefined {
  if (isAnimation(info)) return undefined
  if (info.repaired) return 'damaged'
  return copy === 'never' ? 'off' : misfitOf(info, plan)
}

/** Null when ffmpeg failed: then the simple way, which needs no overview, decides. */
async function takeOverview(work: TranscodeWork, plan: RenditionPlan): Promise<{ audible: boolean } | null> {
  try {
    // A run that failed may have left one.
    await rm(inWork(work, 'poster'), { force: true })
    const palette = work.gifEncoder === 'ffmpeg'
    const log = await encode(work, overviewCommand(plan, { threads: work.threads, palette }))
    work.onProgress?.(ENCODING.from)
    const found = await Promise.all([
      isWholePoster(inWork(work, 'poster'), plan.video),
      !palette || exists(inWork(work, 'palette')),
    ])
    return found.every(Boolean) ? { audible: log.isAudible } : null
  } catch (error) {
    if (!mayRetry(work, error)) throw error
    return null
  }
}

async function encodeUsually(
  work: TranscodeWork,
  plan: RenditionPlan,
  { hasOverview }: { hasOverview: boolean },
): Promise<EncodedFiles> {
  const gif = gifSourceOf(work, plan)
  if (plan.copies === 'mp4' && work.onFirstFiles) {
    const first = await makeFirstFiles(work, plan)
    await work.onFirstFiles(first)
    const heard = first.hasAudio ? plan : { ...plan, audioStream: null }
    const log = await encodeRun(work, heard, { videos: ['webm'], gif, poster: false, volume: false })
    await shrinkGif(work, heard, gif)
    return collect(work, heard, { log, warnings: [], poster: Promise.resolve() })
  }
  const more = { gif, poster: !hasOverview && plan.posterSeconds === null, volume: !hasOverview }
  const log = await encodeAll(work, plan, more)
  await shrinkGif(work, plan, gif)
  const made = hasOverview ? plan : await dropSilence(work, plan, { log, videos: ['mp4', 'webm'] })
  // After the encoders, because the frame for a second poster takes up to 100 MB.
  return collect(work, made, { log, warnings: [], poster: choosePoster(work, made) })
}

/**
 * One thread, no denoiser, palette and poster in one pass (contract/media.md 5.10). A failure here is the file's fault.
 */
async function encodeSimply(work: TranscodeWork, usual: RenditionPlan, warnings: string[]): Promise<EncodedFiles> {
  const simple = { ...work, threads: 1 }
  const plan = simplerPlan(usual, work.info)
  const gif = plan.gif.from === 'rewrite' ? 'none' : 'palette-inside'
  try {
    const log = await encodeAll(simple, plan, { gif, poster: true, volume: false })
    return await collect(simple, plan, { log, warnings, poster: choosePoster(simple, plan) })
  } catch (error) {
    if (error instanceof UnusableOutput) await refuseFullDisk(work.workDirectory)
    throw refuseAsCorrupt(error)
  }
}

/** Returns the log of the run that measures the volume. */
async function encodeAll(
  work: TranscodeWork,
  plan: RenditionPlan,
  more: Pick<RenditionsOfRun, 'gif' | 'poster' | 'volume'>,
): Promise<FfmpegLog> {
  // A copy takes no memory.
  if (!plan.encodesInTurn || plan.copies) return encodeRun(work, plan, { videos: ['mp4', 'webm'], ...more })
  const half = (ENCODING.from + ENCODING.to) / 2
  const log = await encodeRun(work, plan, { ...more, videos: ['mp4'], poster: false }, { ...ENCODING, to: half })
  // The candidates for the poster take 25 MB, and VP9 less than H.264 beside the GIF.
  const { poster } = more
  const webm = { videos: ['webm' as const], gif: 'none' as const, poster, volume: false }
  await encodeRun(work, plan, webm, { ...ENCODING, from: half })
  return log
}

async function encodeRun(
  work: TranscodeWork,
  plan: RenditionPlan,
  run: Omit<RenditionsOfRun, 'threads'>,
  progress = ENCODING,
): Promise<FfmpegLog> {
  const command = renditionsCommand(work.tools.ffmpeg, plan, { ...run, threads: work.threads })
  const log = await encodeWithGif(work, plan, { command, gif: run.gif, progress })
  if (!isAnimation(work.info)) {
    const made = run.videos.filter((video) => video !== plan.copies)
    for (const video of made) if (await exists(inWork(work, video))) await stripSideData(inWork(work, video), video)
  }
  requireDecoded(log, plan, work.info)
  const { complaint } = log
  if (plan.copies) await requireFitToItsEnd(log, { directory: work.workDirectory, plan, info: work.info })
  // Frames before the part may have been missing: from the beginning they are not.
  if (seeks(plan) && complaint) throw new UnusableOutput(`not from a keyframe: ${complaint}`)
  return log
}

/** Verifies and hashes all files; `poster` is still in progress. */
async function collect(
  work: TranscodeWork,
  plan: RenditionPlan,
  { log, warnings, poster }: { log: FfmpegLog; warnings: string[]; poster: Promise<void> },
): Promise<EncodedFiles> {
  const { tools, info, signal, workDirectory: directory } = work
  const [seconds, { seconds: gifSeconds, ...gif }, pictures, mp4, webm] = await allToTheirEnd(
    verifyVideos(tools, { directory, plan, info, signal }),
    collectGif(work, plan),
    poster.then(() => collectPoster(work, plan)),
    hashFile(inWork(work, 'mp4')),
    hashFile(inWork(work, 'webm')),
  )
  requireWholeLength(plan, info, { ...seconds, gif: gifSeconds })
  const missing = missingSeconds(info, seconds.mp4)
  work.onProgress?.(1)
  const shorter = missing > 0 ? [`${missing.toFixed(3)} s could not be decoded`] : []
  const { video } = plan
  return {
    info: measuredInfo(info, plan, { log, madeSeconds: seconds.mp4 }),
    gif,
    mp4: { ...mp4, ...video, copied: plan.copies === 'mp4' },
    webm: { ...webm, ...video, copied: plan.copies === 'webm' },
    ...pictures,
    hasAudio: plan.audioStream !== null,
    warnings: [...warnings, ...shorter],
  }
}

/** Hides that a second attempt starts from the beginning. */
function rising(report: TranscodeOptions['onProgress']): TranscodeOptions['onProgress'] {
  let highest = 0
  return (fraction) => {
    if (fraction <= highest) return
    highest = fraction
    report?.(fraction)
  }
}

/** Gives the input a fixed name, because ffmpeg must not see one from outside. */
async function linkInput(work: TranscodeWork, path: string): Promise<void> {
  const link = inWork(work, 'input')
  if (resolve(path) === link) return
  await rm(link, { force: true })
  await symlink(resolve(path), link)
}
